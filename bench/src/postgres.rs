//! A PostgreSQL of its own for a comparison: started by `scripts/stack`, durable, stopped with its guard.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::run;
use crate::server::cpu_seconds_with_children;
use crate::stack::Stack;
use crate::survey::Users;

/// Settings with which PostgreSQL is at ease on a machine of this size; durability stays at its default, on.
const SETTINGS: &[&str] = &[
    "fsync=on",
    "synchronous_commit=on",
    "shared_buffers=2GB",
    "maintenance_work_mem=1GB",
    "max_wal_size=8GB",
    "checkpoint_timeout=15min",
    "max_connections=100",
];

/// A running PostgreSQL.
#[derive(Debug)]
pub struct Postgres(Stack);

/// What pgbench measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Upserts {
    pub per_second: f64,
    pub mean_ms: f64,
}

impl Postgres {
    /// Starts a new, empty cluster in a folder.
    pub fn start(folder: &Path) -> Result<Self> {
        eprintln!("starting PostgreSQL");
        Ok(Self(Stack::start("postgres", folder, SETTINGS)?))
    }

    /// Makes the table anew, empty and without indexes.
    pub fn create_table(&self) -> Result<()> {
        self.execute(
            "drop table if exists follows;
             create table follows (
                 follower bigint not null,
                 followee bigint not null,
                 since timestamptz not null default now()
             )",
        )
    }

    /// The primary key for checks and following lists, and the index for follower lists.
    pub fn create_indexes(&self) -> Result<()> {
        self.execute(
            "alter table follows add primary key (follower, followee);
             create index on follows (followee, since desc, follower desc)",
        )
    }

    /// Loads a CSV file of edges with `COPY`.
    pub fn copy(&self, csv: &Path) -> Result<()> {
        let csv = csv.canonicalize()?;
        self.execute(&format!("\\copy follows from '{}' with (format csv)", csv.display()))
    }

    /// Upserts of random pairs by pgbench, each a transaction of its own.
    pub fn upserts(&self, clients: u64, seconds: u64, users: Users) -> Result<Upserts> {
        let script = self.folder().join("upsert.sql");
        fs::write(
            &script,
            format!(
                "\\set follower random({first}, {last})\n\\set followee random({first}, {last})\n\
                 insert into follows (follower, followee, since) values (:follower, :followee, now()) \
                 on conflict do nothing;\n",
                first = users.first,
                last = users.last
            ),
        )?;
        let printed = run(self
            .command("pgbench")?
            .args(["--no-vacuum", "--protocol=prepared", "--jobs=2"])
            .arg(format!("--client={clients}"))
            .arg(format!("--time={seconds}"))
            .arg("--file")
            .arg(&script))?;
        parse_pgbench(&printed).with_context(|| format!("pgbench printed no rate: {printed}"))
    }

    pub fn execute(&self, sql: &str) -> Result<()> {
        self.query(sql).map(drop)
    }

    /// What a statement answers, a line a row.
    pub fn query(&self, sql: &str) -> Result<String> {
        run(self
            .command("psql")?
            .args([
                "--no-psqlrc",
                "--quiet",
                "--set=ON_ERROR_STOP=1",
                "--tuples-only",
                "--no-align",
                "--command",
            ])
            .arg(sql))
    }

    /// The processor time that all of its processes have used, in seconds.
    pub fn cpu_seconds(&self) -> Result<f64> {
        let file = self.folder().join("run/data/postmaster.pid");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let process = text.lines().next().and_then(|line| line.trim().parse().ok());
        Ok(cpu_seconds_with_children(process.context("PostgreSQL did not tell its process")?))
    }

    pub fn folder(&self) -> &Path {
        self.0.folder()
    }

    /// A client program of the server's version that connects to this server.
    pub fn command(&self, program: &str) -> Result<Command> {
        let mut command = Command::new(Path::new(self.0.fact("PGBIN")?).join(program));
        command.envs(self.0.facts().iter().filter(|(name, _)| *name != "PGBIN"));
        Ok(command)
    }
}

fn parse_pgbench(printed: &str) -> Option<Upserts> {
    let after = |name: &str| printed.lines().find_map(|line| line.trim().strip_prefix(name));
    let first = |text: &str| text.split_whitespace().next()?.parse().ok();
    Some(Upserts {
        per_second: after("tps = ").and_then(first)?,
        mean_ms: after("latency average = ").and_then(first)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pgbench_prints_is_read() {
        let printed = "number of clients: 64\nlatency average = 4.011 ms\ninitial connection time = 61 ms\n\
                       tps = 15956.503427 (without initial connection time)\n";
        assert_eq!(parse_pgbench(printed), Some(Upserts { per_second: 15_956.503_427, mean_ms: 4.011 }));
        assert_eq!(parse_pgbench("no rate"), None);
    }
}
