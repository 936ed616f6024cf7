//! Who walks which shard: advisory locks of a session. A process that dies or is stopped loses its session, and with it the lock.

use kinfolk_core::Shard;
use tokio_postgres::Row;

use crate::postgres::{Failure, Host, Pooled};

/// The class of the locks: not that of writers, nor those of relays.
const SHARDS: i32 = 0x6b69;

/// The host ends a session that is silent for longer.
const SILENCE_MAX: &str = "10s";

/// The session of one process on one host.
pub(super) struct Turns {
    /// Never used by anybody else: its locks are its session's.
    session: Pooled,
    /// The name of the host.
    pub(super) host: String,
}

impl Turns {
    pub(super) async fn begin(host: &Host) -> Result<Self, Failure> {
        let session = host.writer().await?;
        session.discard();
        let turns = Self { session, host: host.name.clone() };
        turns.ask(host, &format!("SET idle_session_timeout = '{SILENCE_MAX}'")).await?;
        Ok(turns)
    }

    /// Takes a shard, unless another process is at it.
    pub(super) async fn take(&self, host: &Host, shard: Shard) -> Result<bool, Failure> {
        let rows = self.ask(host, &format!("SELECT pg_try_advisory_lock({SHARDS}, {})", shard.0)).await?;
        Ok(rows.first().is_some_and(|row| row.get(0)))
    }

    pub(super) async fn free(&self, host: &Host, shard: Shard) -> Result<(), Failure> {
        self.ask(host, &format!("SELECT pg_advisory_unlock({SHARDS}, {})", shard.0)).await.map(drop)
    }

    /// Keeps the session alive.
    pub(super) async fn renew(&self, host: &Host) -> Result<(), Failure> {
        self.ask(host, "SELECT 1").await.map(drop)
    }

    async fn ask(&self, host: &Host, statement: &str) -> Result<Vec<Row>, Failure> {
        host.ask_by(&self.session, statement).await
    }
}
