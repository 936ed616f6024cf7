//! The port of the change log.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kinfolk_core::changes::{Change, ChangeLog, LogPage, LogSpan};
use kinfolk_core::{Error, Frontier, Position, Result, Sequence, Shard};
use tokio::time::{Instant, timeout};

use super::{LogReader, ShardSpan};
use crate::Fleet;
use crate::postgres::Failure;
use crate::read::Reader;

/// How long to wait for a change.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// How often the hosts are asked meanwhile: other processes write, too.
const PAUSE: Duration = Duration::from_millis(20);

impl ChangeLog for Fleet {
    async fn span(&self) -> Result<LogSpan> {
        self.read(Frontier::EMPTY, |reader| async move { reader.span().await }).await
    }

    async fn changes(&self, after: &Frontier, limit: usize) -> Result<LogPage> {
        self.read(after, move |reader| async move { reader.log_page(limit).await }).await
    }

    async fn wait_for_changes(&self, after: &Frontier) -> Result<bool> {
        self.read(after, |reader| async move { reader.wait_for_changes().await }).await
    }
}

impl Reader {
    fn log(&self) -> LogReader<'_> {
        LogReader { shared: &self.shared, topology: &self.topology }
    }

    async fn span(&self) -> std::result::Result<LogSpan, Failure> {
        let spans = self.log().spans().await?;
        let trimmed = spans.iter().map(|(&shard, span)| span.trimmed().on(shard)).collect();
        let newest = spans.iter().map(|(&shard, span)| span.newest().on(shard)).collect();
        Ok(LogSpan { epoch: self.topology.epoch, trimmed, newest })
    }

    /// Changes after what the reader has seen.
    async fn log_page(&self, limit: usize) -> std::result::Result<LogPage, Failure> {
        loop {
            let spans = self.visible_spans().await?;
            let after = self.starts(&spans)?;
            let logged = self.log().changes(&rotated(&after), limit).await?;
            let mut changes: Vec<Change> = logged.into_iter().map(|logged| logged.change).collect();
            let mut next: Frontier = after.into_iter().collect();
            let is_contiguous = changes.iter().all(|change| {
                let follows =
                    next.get(change.position.shard).map(Sequence::next) == Some(change.position.sequence);
                next.advance(change.position);
                follows
            });
            if is_contiguous {
                changes.sort_by_key(|change| change.position.shard);
                return Ok(LogPage { changes, next });
            }
            // The beginning was trimmed since its span was read. Trimming is rare: the next look finds it done.
        }
    }

    /// The spans of all shards, once they have what the reader has seen.
    async fn visible_spans(&self) -> std::result::Result<BTreeMap<Shard, ShardSpan>, Failure> {
        loop {
            let mut progress = self.shared.watch_progress();
            let spans = self.log().spans().await?;
            let newest = |shard: Shard| spans.get(&shard).copied().unwrap_or_default().newest();
            let Some(asked) = self.at_least.iter().find(|asked| newest(asked.shard) < asked.sequence) else {
                return Ok(spans);
            };
            let Some(left) = self.time_left() else {
                return Err(Failure::Final(self.not_yet_visible(asked.shard, newest(asked.shard))));
            };
            _ = timeout(PAUSE.min(left), progress.changed()).await;
        }
    }

    /// Where each shard's part of a page starts: after what was seen of it, or at the oldest kept.
    fn starts(&self, spans: &BTreeMap<Shard, ShardSpan>) -> std::result::Result<Vec<Position>, Failure> {
        let start = |(&shard, span): (&Shard, &ShardSpan)| match self.at_least.get(shard) {
            Some(seen) if seen < span.trimmed() => {
                let (asked, oldest) = (seen.on(shard), span.trimmed().next().on(shard));
                Err(Failure::Final(Error::PositionExpired { asked, oldest }))
            }
            Some(seen) => Ok(seen.on(shard)),
            None => Ok(span.trimmed().on(shard)),
        };
        spans.iter().map(start).collect()
    }

    async fn wait_for_changes(&self) -> std::result::Result<bool, Failure> {
        let deadline = Instant::now() + WAIT_MAX;
        loop {
            let mut progress = self.shared.watch_progress();
            let spans = self.log().spans().await?;
            let has_more = spans.iter().any(|(&shard, span)| match self.at_least.get(shard) {
                Some(seen) => span.newest() > seen,
                None => span.newest.is_some(),
            });
            let left = deadline.saturating_duration_since(Instant::now());
            if has_more || left.is_zero() {
                return Ok(has_more);
            }
            _ = timeout(PAUSE.min(left), progress.changed()).await;
        }
    }
}

/// The same positions, beginning with another shard each time: a shard with a long backlog does not keep the others from being
/// read.
pub(crate) fn rotated(after: &[Position]) -> Vec<Position> {
    static TURN: AtomicUsize = AtomicUsize::new(0);
    let mut rotated = after.to_vec();
    rotated.rotate_left(TURN.fetch_add(1, Ordering::Relaxed) % after.len().max(1));
    rotated
}
