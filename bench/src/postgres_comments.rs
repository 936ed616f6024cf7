//! The textbook's comments in PostgreSQL, under the same load as a hot thread: pgbench writes, another pgbench reads.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::commenting::PAGE;
use crate::histogram::Histogram;
use crate::hot_thread::{Hot, Load, READERS, WRITERS, at_once};
use crate::postgres::Postgres;
use crate::process::run;
use crate::survey::Users;

const TABLES: &str = "
    create table comments (
        id uuid primary key,
        post_id bigint not null,
        author_id bigint not null,
        reply_to uuid,
        body text not null,
        version int not null,
        created_at timestamptz not null,
        edited_at timestamptz,
        status smallint not null,
        idempotency_key text not null,
        unique (author_id, idempotency_key)
    );
    create index on comments (post_id, created_at, id);
    create table comment_counts (post_id bigint primary key, count bigint not null)";

/// What every comment says, but for its end; 120 characters with that.
const BODY: &str = "the morning train along the river was quiet, but maybe another evening in the garden would bring \
                    ";

/// A PostgreSQL with as many comments as Kinfolk begins with.
#[derive(Debug)]
pub struct PostgresComments {
    postgres: Postgres,
    users: Users,
    posts: u64,
}

impl PostgresComments {
    pub fn fill(postgres: Postgres, users: Users, comments: u64) -> Result<Self> {
        eprintln!("writing {comments} comments to PostgreSQL");
        postgres.execute(TABLES)?;
        let filled = Self { postgres, users, posts: 0 };
        filled.insert(0, comments)?;
        filled.postgres.execute("vacuum analyze comments")?;
        filled.postgres.execute("checkpoint")?;
        Ok(filled)
    }

    /// What a comment takes with its index entries; the log of writes is not counted.
    pub fn disk_bytes(&self) -> Result<f64> {
        let sql = "select pg_total_relation_size('comments')::float8 / count(*) from comments";
        let printed = self.postgres.query(sql)?;
        printed.trim().parse().with_context(|| format!("PostgreSQL answered {printed:?}"))
    }

    /// A new post under load. With `counted`, a row with the number of its comments is updated in each transaction.
    pub fn hot(&mut self, load: Load, counted: bool) -> Result<Hot> {
        self.posts += 1;
        let post = self.posts;
        self.insert(post, PAGE as u64)?;
        let insert = format!(
            "insert into comments (id, post_id, author_id, body, version, created_at, status, idempotency_key) values \
             (gen_random_uuid(), {post}, :author, '{BODY}' || cast(:key as text), 1, now(), 0, cast(:key as text)) \
             on conflict (author_id, idempotency_key) do nothing;\n"
        );
        let variables = format!(
            "\\set author random({}, {})\n\\set key random(1000000000000000000, 9000000000000000000)\n",
            self.users.first, self.users.last
        );
        // Sent at once, so that the count is locked for no longer than the commit takes.
        let transaction = format!(
            "\\startpipeline\nbegin;\n{insert}update comment_counts set count = count + 1 where post_id = {post};\n\
             commit;\n\\endpipeline\n"
        );
        let write = variables + if counted { &transaction } else { &insert };
        let read = format!(
            "select id, author_id, reply_to, body, version, created_at, edited_at, status from comments \
             where post_id = {post} order by created_at desc, id desc limit {PAGE};\n"
        );
        let read = || self.pgbench("read", &read, (READERS as usize, 1), load.time, Some(load.pages()));
        let write = || self.pgbench("write", &write, (WRITERS, 2), load.time, None);
        let hot = at_once(1, read, write, || self.postgres.cpu_seconds())?;
        // Without the start of pgbench.
        Ok(Hot { elapsed: (load.time, load.time), ..hot })
    }

    /// Adds comments of different ages to a post, and sets its count.
    fn insert(&self, post: u64, comments: u64) -> Result<()> {
        let Users { first, last } = self.users;
        self.postgres.execute(&format!(
            "insert into comments select gen_random_uuid(), {post}, {first} + n % ({last} - {first} + 1), null, \
             left(md5(n::text) || md5(n::text || 'a') || md5(n::text || 'b') || md5(n::text || 'c'), 120), 1, \
             now() - ({comments} - n) * interval '1 ms', null, 0, 'filled-{post}-' || n \
             from generate_series(1, {comments}) n"
        ))?;
        self.postgres.execute(&format!("insert into comment_counts values ({post}, {comments})"))
    }

    /// Runs a script for a time and tells how long each transaction took.
    fn pgbench(
        &self,
        name: &str,
        script: &str,
        (clients, threads): (usize, usize),
        time: Duration,
        rate: Option<u32>,
    ) -> Result<Histogram> {
        let folder = self.postgres.folder().canonicalize()?;
        let file = folder.join(format!("{name}.sql"));
        fs::write(&file, script)?;
        let log = format!("{name}.log");
        let mut command = self.postgres.command("pgbench")?;
        command.args(["--no-vacuum", "--protocol=prepared", "--log"]);
        command.arg(format!("--log-prefix={}", folder.join(&log).display())).arg("--file").arg(file);
        command.arg(format!("--client={clients}")).arg(format!("--jobs={threads}"));
        command.arg(format!("--time={}", time.as_secs()));
        if let Some(rate) = rate {
            command.arg(format!("--rate={rate}"));
        }
        run(&mut command)?;
        read_logs(&folder, &format!("{log}."))
    }
}

/// Reads the files that pgbench has written, one for each of its threads, and removes them.
fn read_logs(folder: &Path, prefix: &str) -> Result<Histogram> {
    let mut latency = Histogram::default();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            let mut free = HashMap::new();
            for line in fs::read_to_string(entry.path())?.lines() {
                let micros = parse(line, &mut free).with_context(|| format!("pgbench logged {line:?}"))?;
                latency.record(Duration::from_micros(micros));
            }
            fs::remove_file(entry.path())?;
        }
    }
    Ok(latency)
}

/// How many microseconds a transaction took, by the rule of [`crate::pace`]: from when it was due if the client was held up
/// by the one before, else from when it was sent. `free` tells since when each client has been free.
fn parse(line: &str, free: &mut HashMap<u64, u64>) -> Option<u64> {
    let fields: Vec<u64> = line.split_whitespace().map(|field| field.parse().ok()).collect::<Option<_>>()?;
    // The script and the transaction have numbers too. Only what waited for its turn has the last field.
    let (&[client, _, elapsed, _, seconds, micros], late) = fields.split_first_chunk()?;
    let ended = seconds * 1_000_000 + micros;
    let due = ended.checked_sub(elapsed)?;
    let held_up = free.insert(client, ended).is_some_and(|free| free > due);
    elapsed.checked_sub(late.first().copied().filter(|_| !held_up).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pgbench_logs_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("write.log.17", "0 1 950 0 1700000000 2000\n1 1 1050 0 1700000000 2000\n");
        write("write.log.17.1", "2 1 2000 0 1700000000 5000 1000\n");
        write("write.sql", "select 1;\n");
        let latency = read_logs(folder.path(), "write.log.").unwrap();
        assert_eq!((latency.total(), latency.percentile_us(1.0) as u64 / 100), (3, 10));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(parse("0 1 failed 0 1700000000 12", &mut HashMap::new()), None);
    }

    #[test]
    fn a_transaction_counts_from_when_it_was_due_if_one_before_held_it_up() {
        let mut free = HashMap::new();
        let mut took = |line| parse(line, &mut free).unwrap();
        assert_eq!(took("0 1 5000 0 10 10000 100"), 4_900);
        assert_eq!(took("0 2 3000 0 10 11000 2000"), 3_000, "due at 8000, but free since 10000");
        assert_eq!(took("1 3 3000 0 10 11000 2000"), 1_000, "another client");
        assert_eq!(took("0 4 500 0 10 12000 200"), 300);
    }
}
