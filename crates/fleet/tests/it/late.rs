//! A source of changes that brings them late, twice, out of order and with gaps, as a seed has it.

use std::sync::Mutex;
use std::time::Duration;

use kinfolk_core::{Frontier, Position, Result, Sequence};
use kinfolk_fleet::{ChangeSource, LogSource, SourceBatch};

/// The log, seen through a bad network.
pub struct Late {
    log: LogSource,
    random: Mutex<u64>,
    always_with_gaps: bool,
}

impl Late {
    pub fn new(log: LogSource, seed: u64) -> Self {
        Self { log, random: Mutex::new(seed | 1), always_with_gaps: false }
    }

    /// Never brings the change that a mark waits for.
    pub fn with_gaps(log: LogSource) -> Self {
        Self { always_with_gaps: true, ..Self::new(log, 1) }
    }

    /// A number below a bound (xorshift).
    fn below(&self, bound: u64) -> u64 {
        let mut random = self.random.lock().unwrap();
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        (*random >> 11) % bound
    }

    /// Drops, repeats, cuts and swaps.
    fn damage(&self, mut batch: SourceBatch) -> Option<SourceBatch> {
        let changes = &mut batch.changes;
        match if self.always_with_gaps { 1 } else { self.below(8) } {
            0 => return None,
            1 => drop(changes.remove(0)),
            2 => changes.truncate(1),
            3 => changes.reverse(),
            4 => changes.extend_from_within(..),
            _ => {}
        }
        (!changes.is_empty()).then_some(batch)
    }
}

impl ChangeSource for Late {
    async fn changes(&self, host: usize, after: &Frontier, limit: usize) -> Result<Vec<SourceBatch>> {
        tokio::time::sleep(Duration::from_millis(self.below(12))).await;
        // Sometimes from further back than asked for.
        let back = if self.always_with_gaps { 0 } else { self.below(3) };
        let earlier = |mark: Position| Sequence(mark.sequence.0.saturating_sub(back)).on(mark.shard);
        let after: Frontier = after.iter().map(earlier).collect();
        let limit = if self.below(3) == 0 { 3 } else { limit };
        let batches = self.log.changes(host, &after, limit).await?;
        Ok(batches.into_iter().filter_map(|batch| self.damage(batch)).collect())
    }
}
