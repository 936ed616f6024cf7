//! Who relays which shard: advisory locks of a session. A process that dies or is stopped loses its session, and with it the locks.

use std::collections::BTreeSet;
use std::time::Duration;

use kinfolk_core::Shard;
use tokio::time::timeout;
use tokio_postgres::Row;

use crate::ProcessStatus;
use crate::postgres::{Failure, Host, Pooled, process_of, unavailable};

/// The class of the locks of shards.
const SHARDS: i32 = 0x6b67;

/// The class of the lock that every relay shares with the others, which tells how many there are.
const RELAYS: i32 = 0x6b68;

/// The host ends a session that is silent for longer.
const SILENCE_MAX: &str = "3s";

/// How long a host may take for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

const OF_THIS_DATABASE: &str =
    "locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The locks of one process on one host.
pub(super) struct Ownership {
    /// Never used by anybody else: its locks are its session's.
    session: Pooled,
    host: String,
    shards: BTreeSet<Shard>,
}

impl Ownership {
    pub(super) async fn begin(host: &Host) -> Result<Self, Failure> {
        let session = host.writer().await?;
        session.discard();
        let ownership = Self { session, host: host.name.clone(), shards: BTreeSet::new() };
        let begin = format!(
            "SET idle_session_timeout = '{SILENCE_MAX}'; SELECT pg_advisory_lock_shared({RELAYS}, 0)"
        );
        ownership.ask(ownership.session.client().batch_execute(&begin)).await?;
        Ok(ownership)
    }

    async fn ask<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Failure> {
        match timeout(ANSWER_MAX, answer).await {
            Ok(answer) => answer.map_err(|error| Failure::of_statement(&self.host, &error)),
            Err(_) => Err(Failure::Transient(unavailable(&self.host, "it did not answer in time"))),
        }
    }

    /// Keeps the session alive, and takes or frees shards of the host until this process has its share of them. Returns its shards.
    pub(super) async fn renew(&mut self, all: &BTreeSet<Shard>) -> Result<&BTreeSet<Shard>, Failure> {
        let client = self.session.client();
        let count = format!("SELECT count(*) FROM pg_locks WHERE {OF_THIS_DATABASE} AND classid = {RELAYS}");
        let relays = self.ask(client.query_one(&count, &[])).await?.get::<_, i64>(0).max(1) as usize;
        let share = all.len().div_ceil(relays);
        let numbers = |shards: &mut dyn Iterator<Item = &Shard>| -> Vec<i32> {
            shards.map(|shard| i32::from(shard.0)).collect()
        };
        if self.shards.len() > share {
            let freed = numbers(&mut self.shards.iter().skip(share));
            let free = format!(
                "SELECT count(pg_advisory_unlock({SHARDS}, shard)) FROM unnest($1::integer[]) AS own (shard)"
            );
            self.ask(client.query(&free, &[&freed])).await?;
            self.shards = self.shards.iter().copied().take(share).collect();
        } else if self.shards.len() < share {
            let wanted = numbers(&mut all.difference(&self.shards));
            let most = (share - self.shards.len()) as i64;
            let take = format!(
                "SELECT shard FROM unnest($1::integer[]) AS wanted (shard)
                 WHERE pg_try_advisory_lock({SHARDS}, shard) LIMIT $2"
            );
            let taken = self.ask(client.query(&take, &[&wanted, &most])).await?;
            self.shards.extend(taken.iter().map(|row| Shard(row.get::<_, i32>(0) as u16)));
        }
        Ok(&self.shards)
    }
}

/// A process that relays a shard.
pub(crate) struct Owner {
    pub(crate) shard: Shard,
    pub(crate) process: ProcessStatus,
}

/// Who relays the shards of a host.
pub(crate) async fn owners(host: &Host) -> Result<Vec<Owner>, Failure> {
    let ask = format!(
        "SELECT objid::bigint, application_name, coalesce(host(client_addr), 'local')
         FROM pg_locks JOIN pg_stat_activity USING (pid)
         WHERE {OF_THIS_DATABASE} AND classid = {SHARDS} AND granted"
    );
    let rows = host.ask(&ask).await?;
    let owner = |row: &Row| {
        let process = process_of(row.get(1), row.get(2))?;
        Some(Owner { shard: Shard(row.get::<_, i64>(0) as u16), process })
    };
    Ok(rows.iter().filter_map(owner).collect())
}
