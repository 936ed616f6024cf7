//! The part of an import on one host: edges are copied into a table beside the graph, where they wait until the whole input was
//! read. No shard is locked meanwhile.

use bytes::Bytes;
use futures_util::SinkExt;
use kinfolk_core::bulk::{ImportOptions, ImportReport};
use kinfolk_core::graph::Edge;
use kinfolk_core::{Error, IdKind, Result, Sequence, Shard, Timestamp};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::postgres::{Failure, IdValue, id_min};
use crate::write::LOCK_CLASS;

/// The `since` of a staged edge that came without one: later than any time.
pub(super) const NO_SINCE: i64 = i64::MAX;

/// Kept by the session of an import, and shared by those of moves; the locks of shards have numbers from 0 on.
pub(crate) const OWNER: i32 = -1;

/// Which import it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    fingerprint: String,
    kind: i16,
    following_limit: Option<i64>,
}

impl Manifest {
    pub(super) fn of(options: &ImportOptions) -> Self {
        Self {
            fingerprint: options.fingerprint.clone(),
            kind: options.kind.number().into(),
            following_limit: options.following_limit.map(Into::into),
        }
    }

    /// The kind of the import's edges and the limit of followees, unless they are of a later version.
    pub(super) fn options(&self) -> Result<ImportOptions> {
        let kind = u8::try_from(self.kind).ok().and_then(kinfolk_core::EdgeKind::from_number);
        Ok(ImportOptions {
            kind: kind.ok_or_else(|| Error::Corrupt { detail: "an import has an unknown kind".into() })?,
            following_limit: self.following_limit.and_then(|limit| u32::try_from(limit).ok()),
            fingerprint: self.fingerprint.clone(),
            sort_memory: 0,
        })
    }
}

/// The import that a host has.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) manifest: Manifest,
    pub(super) is_complete: bool,
    taken: u64,
    self_follows: u64,
}

/// The staged edges of one host, and the session that owns them.
pub(super) struct Staging {
    name: String,
    client: Client,
    /// So many edges of the input are staged durably.
    pub(super) taken: u64,
    self_follows: u64,
    /// Edges that are not staged yet, as lines for COPY.
    waiting: String,
}

impl Staging {
    /// Takes the staging of a host. Refused while another import has it.
    pub(super) async fn open(name: &str, client: Client) -> Result<Self> {
        // The session of a process that was killed a moment ago may live on for a moment.
        let own = format!("SET lock_timeout = '2s'; SELECT pg_advisory_lock({LOCK_CLASS}, {OWNER})");
        let owned = client.batch_execute(&own).await;
        let staging =
            Self { name: name.to_owned(), client, taken: 0, self_follows: 0, waiting: String::new() };
        owned.map_err(|error| match error.code() {
            Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                let detail =
                    "another import is running, or a shard is being moved; try again when it is done";
                Error::InUse { detail: detail.into() }
            }
            _ => staging.failed(&error),
        })?;
        // An interrupted move has nobody who holds the lock.
        let moved = "SELECT FROM outgoing UNION ALL SELECT FROM incoming LIMIT 1";
        if !staging.query(moved, &[]).await?.is_empty() {
            let detail = format!("a shard of host {name} is being moved: finish that move or abort it first");
            return Err(Error::InUse { detail });
        }
        Ok(staging)
    }

    async fn query(&self, text: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>> {
        self.client.query(text, parameters).await.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &tokio_postgres::Error) -> Error {
        Failure::of_statement(&self.name, error).into_error()
    }

    /// The import that is here.
    pub(super) async fn found(&self) -> Result<Option<Found>> {
        let text = "SELECT fingerprint, kind, following_limit, complete, taken, self_follows FROM import";
        let rows = self.query(text, &[]).await?;
        Ok(rows.first().map(|row| Found {
            manifest: Manifest { fingerprint: row.get(0), kind: row.get(1), following_limit: row.get(2) },
            is_complete: row.get(3),
            taken: row.get::<_, i64>(4) as u64,
            self_follows: row.get::<_, i64>(5) as u64,
        }))
    }

    /// Goes on with the import that is here.
    pub(super) fn resume(&mut self, found: &Found) {
        (self.taken, self.self_follows) = (found.taken, found.self_follows);
    }

    /// Begins an import where there is none.
    pub(super) async fn begin(
        &mut self,
        manifest: &Manifest,
        shards: &[Shard],
        id_kind: IdKind,
    ) -> Result<()> {
        (self.taken, self.self_follows) = (0, 0);
        let shards: Vec<i16> = shards.iter().map(|shard| shard.0 as i16).collect();
        let before_all = IdValue(id_min(id_kind));
        let text = "
            WITH progress AS (
                INSERT INTO import_progress
                SELECT shard, 0, $5, -1, $5, 0, 0, 0, 0, 0 FROM unnest($4::smallint[]) AS held (shard)
            )
            INSERT INTO import (fingerprint, kind, following_limit, taken, self_follows, complete)
            VALUES ($1, $2, $3, 0, 0, false)";
        let Manifest { fingerprint, kind, following_limit } = manifest;
        self.query(text, &[fingerprint, kind, following_limit, &shards, &before_all]).await.map(drop)
    }

    /// Takes an edge of the input that this host stages, unless an earlier run has staged it.
    pub(super) fn add(&mut self, line: u64, shard: Shard, edge: Edge, since: Option<Timestamp>) {
        use std::fmt::Write;
        if line <= self.taken {
            return;
        }
        let Edge { follower, followee } = edge;
        if follower == followee {
            self.self_follows += 1;
            return;
        }
        let since = since.map_or(NO_SINCE, |since| since.millis() as i64);
        // Neither an id nor a number has to be escaped.
        writeln!(self.waiting, "{}\t{follower}\t{since}\t{followee}\t{line}", shard.0)
            .expect("a string takes everything");
    }

    /// Makes all that was added durable: everything of the input up to a line.
    pub(super) async fn flush(&mut self, line: u64) -> Result<()> {
        if line <= self.taken {
            return Ok(());
        }
        let edges = Bytes::from(std::mem::take(&mut self.waiting));
        self.copy(edges, line).await.map_err(|error| self.failed(&error))?;
        self.taken = line;
        Ok(())
    }

    async fn copy(&self, edges: Bytes, line: u64) -> std::result::Result<(), tokio_postgres::Error> {
        self.client.batch_execute("BEGIN").await?;
        let copy = "COPY staged_edges (shard, follower, since, followee, line) FROM STDIN";
        let mut sink = Box::pin(self.client.copy_in::<_, Bytes>(copy).await?);
        sink.send(edges).await?;
        sink.close().await?;
        let record = "UPDATE import SET taken = $1, self_follows = $2";
        self.client.execute(record, &[&(line as i64), &(self.self_follows as i64)]).await?;
        self.client.batch_execute("COMMIT").await
    }

    /// Notes that the whole input is staged.
    pub(super) async fn complete(&self) -> Result<()> {
        self.query("UPDATE import SET complete = true", &[]).await.map(drop)
    }

    /// How many edges are staged.
    pub(super) async fn count(&self) -> Result<u64> {
        let rows = self.query("SELECT count(*) FROM staged_edges", &[]).await?;
        Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0) as u64))
    }

    /// Adds what the import has done here to its report.
    pub(super) async fn report(&self, report: &mut ImportReport) -> Result<()> {
        let text = "SELECT shard, added, duplicates, over_limit, sequence FROM import_progress";
        report.self_follows += self.self_follows;
        for row in self.query(text, &[]).await? {
            let number = |column| row.get::<_, i64>(column) as u64;
            report.added += number(1);
            report.duplicates += number(2);
            report.over_limit += number(3);
            if number(4) > 0 {
                report.frontier.advance(Sequence(number(4)).on(Shard(row.get::<_, i16>(0) as u16)));
            }
        }
        Ok(())
    }

    /// Removes the import from this host.
    pub(super) async fn clear(&self) -> Result<()> {
        let script = "TRUNCATE import, import_progress, staged_edges";
        self.client.batch_execute(script).await.map_err(|error| self.failed(&error))
    }
}
