//! A cache-aside as people build it, on one Redis and one table: a check that misses reads all followees and stores them as a set for an
//! hour; a write commits, then changes the set or deletes it. Nothing orders fills and writes.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_postgres::{Client, NoTls, Statement};

use super::graph::Graph;
use super::store::Store;
use crate::redis::Redis;
use crate::survey::Pair;

/// The row of an edge, and an index for each list, as in textbooks.
const TABLE: &str = "
    DROP TABLE IF EXISTS follows;
    CREATE TABLE follows (
        follower bigint NOT NULL, followee bigint NOT NULL, since timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (follower, followee)
    );
    CREATE INDEX ON follows (followee, since DESC, follower DESC);";

/// Edges that are inserted at once.
const INSERTED: usize = 10_000;

const EXPIRE_SECONDS: u32 = 3_600;

/// What a write does to the set of its follower after its commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnWrite {
    /// `SADD` or `SREM`.
    Change,
    /// `DEL`.
    Delete,
}

/// The servers of a cache-aside: a Redis of its own, and a table on a host of the fleet.
pub struct CacheAside<'a> {
    redis: Redis,
    postgres: &'a str,
}

impl<'a> CacheAside<'a> {
    /// Starts it with a graph in its table and nothing cached.
    pub async fn start(folder: &Path, postgres: &'a str, graph: &Graph) -> Result<Self> {
        let redis = Redis::start(&folder.join("redis"))?;
        eprintln!("inserting {} edges into a table", graph.edges.len());
        let client = connect(postgres).await?;
        client.batch_execute(TABLE).await?;
        let insert =
            "INSERT INTO follows (follower, followee) SELECT * FROM unnest($1::bigint[], $2::bigint[])";
        for edges in graph.edges.chunks(INSERTED) {
            let followers: Vec<i64> = edges.iter().map(|pair| pair.follower as i64).collect();
            let followees: Vec<i64> = edges.iter().map(|pair| pair.followee as i64).collect();
            client.execute(insert, &[&followers, &followees]).await?;
        }
        client.batch_execute("ANALYZE follows").await?;
        Ok(Self { redis, postgres })
    }

    pub fn redis(&self) -> SocketAddr {
        self.redis.address
    }

    /// Caches the sets of everybody, as checks would.
    pub fn fill(&self, graph: &Graph) -> Result<()> {
        self.redis.fill(|commands| {
            for &follower in &graph.followers {
                commands.write_all(set_commands(follower, graph.following(follower)).as_bytes())?;
            }
            Ok(())
        })
    }

    /// Some workers, each with connections of its own.
    pub async fn workers(&self, count: usize, on_write: OnWrite) -> Result<Vec<AsideWorker>> {
        let mut workers = Vec::new();
        for _ in 0..count {
            workers.push(AsideWorker::connect(self.redis.address, self.postgres, on_write).await?);
        }
        Ok(workers)
    }
}

/// Stores a set, and says when it ends.
fn set_commands(follower: u64, followees: &[u64]) -> String {
    let mut commands = format!("SADD following:{follower}");
    followees.iter().for_each(|followee| _ = write!(commands, " {followee}"));
    _ = write!(commands, "\r\nEXPIRE following:{follower} {EXPIRE_SECONDS}\r\n");
    commands
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// One worker.
pub struct AsideWorker {
    redis: BufReader<TcpStream>,
    postgres: Client,
    select: Statement,
    insert: Statement,
    delete: Statement,
    on_write: OnWrite,
    line: String,
}

impl AsideWorker {
    async fn connect(redis: SocketAddr, postgres: &str, on_write: OnWrite) -> Result<Self> {
        let stream = TcpStream::connect(redis).await?;
        stream.set_nodelay(true)?;
        let postgres = connect(postgres).await?;
        let insert = "INSERT INTO follows (follower, followee) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        let (select, insert, delete) = (
            postgres.prepare("SELECT followee FROM follows WHERE follower = $1").await?,
            postgres.prepare(insert).await?,
            postgres.prepare("DELETE FROM follows WHERE follower = $1 AND followee = $2").await?,
        );
        Ok(Self {
            redis: BufReader::new(stream),
            postgres,
            select,
            insert,
            delete,
            on_write,
            line: String::new(),
        })
    }

    /// Sends commands at once; each is answered with a number.
    async fn numbers<const N: usize>(&mut self, commands: &str) -> Result<[i64; N]> {
        self.redis.get_mut().write_all(commands.as_bytes()).await?;
        let mut numbers = [0; N];
        for number in &mut numbers {
            self.line.clear();
            self.redis.read_line(&mut self.line).await?;
            let reply = self.line.trim_end().strip_prefix(':');
            *number = reply.with_context(|| format!("Redis replied {:?}", self.line))?.parse()?;
        }
        Ok(numbers)
    }
}

impl Store for AsideWorker {
    async fn check(&mut self, Pair { follower, followee }: Pair) -> Result<bool> {
        // Both in one round trip.
        let commands =
            format!("EXISTS following:{follower}\r\nSISMEMBER following:{follower} {followee}\r\n");
        let [is_cached, is_member] = self.numbers(&commands).await?;
        if is_cached == 1 {
            return Ok(is_member == 1);
        }
        let rows = self.postgres.query(&self.select, &[&(follower as i64)]).await?;
        let followees: Vec<u64> = rows.iter().map(|row| row.get::<_, i64>(0) as u64).collect();
        if !followees.is_empty() {
            self.numbers::<2>(&set_commands(follower, &followees)).await?;
        }
        Ok(followees.contains(&followee))
    }

    async fn write(&mut self, Pair { follower, followee }: Pair, exists: bool) -> Result<()> {
        let statement = if exists { &self.insert } else { &self.delete };
        let changed = self.postgres.execute(statement, &[&(follower as i64), &(followee as i64)]).await?;
        if changed != 1 {
            bail!("a write changed {changed} rows");
        }
        let command = match (self.on_write, exists) {
            (OnWrite::Change, true) => format!("SADD following:{follower} {followee}\r\n"),
            (OnWrite::Change, false) => format!("SREM following:{follower} {followee}\r\n"),
            (OnWrite::Delete, _) => format!("DEL following:{follower}\r\n"),
        };
        // The write is committed, whatever becomes of the set.
        _ = self.numbers::<1>(&command).await;
        Ok(())
    }
}
