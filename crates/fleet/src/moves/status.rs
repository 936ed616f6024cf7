//! Moves as an operator sees them.

use kinfolk_core::{Result, Shard};

use crate::catalog::Move;
use crate::fleet::Shared;
use crate::postgres::Failure;
use crate::read::Reader;
use crate::{Fleet, FleetStatus};

/// Where a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveStep {
    /// Rows are copied: so many so far.
    Copying(u64),
    /// All rows are copied, and changes follow.
    Following,
    /// The shard takes no writes.
    HandingOver,
    /// The new host has the shard; what the old one has is removed.
    CleaningUp,
}

/// A move that has begun and is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveStatus {
    /// Which shard.
    pub shard: Shard,
    /// Its old host.
    pub from: String,
    /// Its new host.
    pub to: String,
    /// Where the move is. None while a host does not answer.
    pub step: Option<MoveStep>,
}

impl Fleet {
    /// The moves that have begun and are not over, whether or not a process is at them.
    pub async fn moves(&self) -> Result<Vec<MoveStatus>> {
        self.read(kinfolk_core::Frontier::EMPTY, |reader| async move { reader.moves().await }).await
    }
}

impl Fleet {
    /// As [`Fleet::status`] and [`Fleet::moves`]. It waits for the hosts and must not be called on a thread of an async runtime.
    pub fn status_and_moves(&self) -> Result<(FleetStatus, Vec<MoveStatus>)> {
        self.handle().block_on(async { Ok((self.status().await?, self.moves().await?)) })
    }
}

impl Reader {
    async fn moves(&self) -> std::result::Result<Vec<MoveStatus>, Failure> {
        let moves = self.shared.catalog().moves().await.map_err(Failure::Final)?;
        let mut found = Vec::new();
        for moved in moves {
            let step = step(&self.shared, &moved).await.ok();
            let Move { shard, from, to, .. } = moved;
            found.push(MoveStatus { shard, from, to, step });
        }
        Ok(found)
    }
}

async fn step(shared: &Shared, moved: &Move) -> std::result::Result<MoveStep, Failure> {
    let topology = shared.topology();
    let host =
        |name: &str| topology.host_named(name).map(|index| &topology.hosts[index]).ok_or(Failure::Moved);
    let (from, to) = (host(&moved.from)?, host(&moved.to)?);
    let (shard, term) = (moved.shard.0, moved.term + 1);
    let of_new = format!(
        "SELECT EXISTS (SELECT FROM shards WHERE shard = {shard} AND term = {term}),
                (SELECT stage FROM incoming WHERE shard = {shard}),
                (SELECT copied FROM incoming WHERE shard = {shard})"
    );
    let rows = to.ask(&of_new).await?;
    let row = rows.first().ok_or(Failure::Moved)?;
    if row.get(0) {
        return Ok(MoveStep::CleaningUp);
    }
    let of_old = format!("SELECT EXISTS (SELECT FROM shards WHERE shard = {shard} AND state <> 'open')");
    let rows = from.ask(&of_old).await?;
    if rows.first().is_some_and(|row| row.get(0)) {
        return Ok(MoveStep::HandingOver);
    }
    let (stage, copied): (Option<i16>, Option<i64>) = (row.get(1), row.get(2));
    Ok(if stage == Some(2) { MoveStep::Following } else { MoveStep::Copying(copied.unwrap_or(0) as u64) })
}
