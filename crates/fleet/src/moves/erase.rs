//! Deletes the rows of a shard from a host that does not hold it, or no longer does.

use kinfolk_core::Shard;

use super::cutover::LOCK_ALL_MARKS;
use super::{Mover, TRANSACTION_MAX};
use crate::postgres::{Failure, Host, Pooled};

/// Rows that one statement removes.
const STEP: i64 = 5_000;

/// Every table with rows of a shard, but those that say that it is there, and the key of a row within its shard.
const TABLES: [(&str, &[&str]); 5] = [
    ("following", &["kind", "follower", "followee"]),
    ("followers", &["kind", "followee", "follower"]),
    ("users", &["kind", "id"]),
    ("follower_counts", &["kind", "followee", "bucket"]),
    ("log", &["sequence"]),
];

/// Removes the rows of a shard from a host, a few at a time, for as long as a condition holds. A statement whose condition has ceased to
/// hold while it runs removes no rows that have come since.
pub(crate) async fn erase(host: &Host, shard: Shard, condition: &str) -> Result<(), Failure> {
    for (table, key) in TABLES {
        let mut after = None;
        while let Some(last) = erase_next(host, (table, key), shard, condition, after.as_deref()).await? {
            after = Some(last);
        }
    }
    Ok(())
}

/// Removes the rows that follow on a key, and returns the key of the last one. Each step begins where the one before has ended: what was
/// removed stays in the index until it is vacuumed, and walking over it again and again would take longer each time.
async fn erase_next(
    host: &Host,
    (table, key): (&str, &[&str]),
    shard: Shard,
    condition: &str,
    after: Option<&str>,
) -> Result<Option<String>, Failure> {
    let (columns, number) = (key.join(", "), shard.0);
    let rest = after.map(|after| format!("AND ({columns}) > ({after})")).unwrap_or_default();
    let literals: Vec<String> = key.iter().map(|column| format!("quote_literal({column})")).collect();
    let (literals, descending) = (literals.join(" || ', ' || "), key.join(" DESC, "));
    let step = format!(
        "WITH step AS MATERIALIZED (
             SELECT ctid AS row_id, {columns}
             FROM {table}
             WHERE shard = {number} AND {condition} {rest}
             ORDER BY {columns}
             LIMIT {STEP}
         ),
         gone AS (
             DELETE FROM {table} WHERE {condition} AND ctid = ANY (ARRAY(SELECT row_id FROM step))
         )
         SELECT {literals} FROM step ORDER BY {descending} DESC LIMIT 1"
    );
    let rows = host.ask_durable(&step).await?;
    Ok(rows.first().map(|row| row.get(0)))
}

impl Mover<'_> {
    /// Removes the shard from its old host: first what says that it is there, so that nobody with an old map writes or reads its rows, then
    /// the rows.
    pub(super) async fn clean_up(&self, host: &Host) -> Result<(), Failure> {
        let (shard, term, number) = (self.number_of_shard(), self.moved.term, self.number.get());
        let failed = |error: tokio_postgres::Error| Failure::of_statement(&host.name, &error);
        let left = host.transaction(TRANSACTION_MAX, async |connection: &Pooled| {
            let client = connection.client();
            client.query(LOCK_ALL_MARKS, &[]).await.map_err(failed)?;
            let mover = "SELECT mover FROM outgoing WHERE shard = $1 FOR UPDATE";
            let mover = client.query_opt(mover, &[&shard]).await.map_err(failed)?;
            match mover.map(|row| row.get::<_, i64>(0)) {
                // All was done, and the reply was lost.
                None => return Ok(()),
                Some(mover) if mover != number => return Err(self.replaced()),
                Some(_) => {}
            }
            let leave = "DELETE FROM shards WHERE shard = $1 AND term = $2";
            client.execute(leave, &[&shard, &term]).await.map(drop).map_err(failed)
        });
        left.await?;
        // And the shard is nowhere on its way back.
        let is_own = format!(
            "EXISTS (SELECT FROM outgoing WHERE shard = {shard} AND mover = {number})
             AND NOT EXISTS (SELECT FROM shards WHERE shard = {shard})
             AND NOT EXISTS (SELECT FROM incoming WHERE shard = {shard})"
        );
        erase(host, self.moved.shard, &is_own).await?;
        host.change(&format!("DELETE FROM relayed WHERE shard = {shard} AND {is_own}")).await?;
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
