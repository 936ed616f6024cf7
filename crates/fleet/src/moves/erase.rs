//! Deletes the rows of a shard from a host that does not hold it, or no longer does.

use kinfolk_core::Shard;

use super::Mover;
use crate::postgres::{Failure, Host};

/// Rows that one statement removes.
const STEP: i64 = 5_000;

/// Every table with rows of a shard, but those that say that it is there.
const TABLES: [&str; 5] = ["following", "followers", "users", "follower_counts", "log"];

/// Removes the rows of a shard from a host, a few at a time.
pub(crate) async fn erase(host: &Host, shard: Shard) -> Result<(), Failure> {
    for table in TABLES {
        let number = shard.0;
        let step = format!(
            "DELETE FROM {table}
             WHERE ctid = ANY (ARRAY(SELECT ctid FROM {table} WHERE shard = {number} LIMIT {STEP}))"
        );
        while host.change(&step).await? == STEP as u64 {}
    }
    Ok(())
}

impl Mover<'_> {
    /// Removes the shard from its old host, and then what says that it was there.
    pub(super) async fn clean_up(&self, host: &Host) -> Result<(), Failure> {
        erase(host, self.moved.shard).await?;
        let (shard, term) = (self.number_of_shard(), self.moved.term);
        host.change(&format!("DELETE FROM relayed WHERE shard = {shard}")).await?;
        host.change(&format!("DELETE FROM shards WHERE shard = {shard} AND term = {term}")).await?;
        host.change(&format!("DELETE FROM outgoing WHERE shard = {shard}")).await.map(drop)
    }
}
