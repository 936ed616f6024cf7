//! Deletes the rows of a shard from a host that does not hold it, or no longer does.

use kinfolk_core::Shard;

use super::Mover;
use crate::postgres::{Failure, Host};

/// Rows that one statement removes.
const STEP: i64 = 5_000;

/// Every table with rows of a shard, but those that say that it is there.
const TABLES: [&str; 5] = ["following", "followers", "users", "follower_counts", "log"];

/// Removes the rows of a shard from a host, a few at a time, for as long as a condition holds. A statement whose condition has ceased to
/// hold while it runs removes no rows that have come since.
pub(crate) async fn erase(host: &Host, shard: Shard, condition: &str) -> Result<(), Failure> {
    for table in TABLES {
        let number = shard.0;
        let step = format!(
            "DELETE FROM {table}
             WHERE {condition}
               AND ctid = ANY (ARRAY(SELECT ctid FROM {table} WHERE shard = {number} LIMIT {STEP}))"
        );
        while host.change(&step).await? == STEP as u64 {}
    }
    Ok(())
}

impl Mover<'_> {
    /// Removes the shard from its old host, and then what says that it was there.
    pub(super) async fn clean_up(&self, host: &Host) -> Result<(), Failure> {
        let (shard, term, number) = (self.number_of_shard(), self.moved.term, self.number.get());
        let is_own = format!("EXISTS (SELECT FROM outgoing WHERE shard = {shard} AND mover = {number})");
        erase(host, self.moved.shard, &is_own).await?;
        host.change(&format!("DELETE FROM relayed WHERE shard = {shard} AND {is_own}")).await?;
        host.change(&format!("DELETE FROM shards WHERE shard = {shard} AND term = {term} AND {is_own}"))
            .await?;
        host.change(&format!("DELETE FROM outgoing WHERE shard = {shard} AND mover = {number}"))
            .await
            .map(drop)
    }

    /// Removes what the new host has of a shard that it does not hold, unless another process is at it.
    pub(super) async fn erase_copy(&self) -> Result<(), Failure> {
        let (shard, number) = (self.number_of_shard(), self.number.get());
        let is_nobodys = format!(
            "NOT EXISTS (SELECT FROM shards WHERE shard = {shard})
             AND NOT EXISTS (SELECT FROM incoming WHERE shard = {shard} AND mover <> {number})"
        );
        erase(&self.to, self.moved.shard, &is_nobodys).await
    }
}
