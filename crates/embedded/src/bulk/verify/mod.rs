//! Compares every projection with the truth, on demand: lists, index and counts with the pairs; posts and comments with their
//! records; idempotency keys with the log; inboxes with what their contract says.
//!
//! Writes go on meanwhile, so that much only seems to differ. It is looked at again between two batches of the writer, some at
//! a time as it is found: however long a pass takes and whatever is written, no more than that is held.

mod keys;

use std::sync::atomic::Ordering;

use kinfolk_core::bulk::VerifyReport;
use kinfolk_core::{Error, Result};

use crate::engine::store::Store;
use crate::projection::{Difference, Projection, Recount, Suspects};
use crate::{Embedded, Progress};

/// How many rows are counted before it is seen whether there are more.
const COUNTED_TOGETHER: usize = 65_536;

impl Embedded {
    /// Compares all that is derived with the truth; repairs what differs if asked to. Writes go on; what seems to differ is
    /// looked at again between two of them.
    pub fn verify(&self, repair: bool, progress: &dyn Fn(Progress)) -> Result<VerifyReport> {
        /// One repair can uncover another: a list that is right again has another length.
        const ROUNDS_MAX: usize = 10;
        let mut report = self.verify_once(repair, progress)?;
        if !repair || report.difference_count == 0 {
            return Ok(report);
        }
        for _ in 0..ROUNDS_MAX {
            if self.verify_once(true, progress)?.difference_count == 0 {
                report.repaired = true;
                return Ok(report);
            }
        }
        let detail = "some differences could not be repaired; restore from a backup".into();
        Err(Error::Corrupt { detail })
    }

    fn verify_once(&self, repair: bool, progress: &dyn Fn(Progress)) -> Result<VerifyReport> {
        if repair { self.flush() } else { self.settle_rows() }?;
        let settle = |suspected| self.settle(suspected, repair);
        let mut suspects = Suspects::new(&settle, progress);
        let store = &*self.store;
        for projection in store.projections.all() {
            projection.compare(store.newest_time(), &mut suspects)?;
        }
        keys::compare(store, &mut suspects)?;
        let report = suspects.finish()?;
        if repair && report.difference_count > 0 {
            // Repairs are not in the log: they last once they are in flushed rows and in a snapshot.
            self.ask_writer(|writer| {
                writer.store.flush_now()?;
                let _open = writer.store.snapshot_gate.lock();
                writer.store.snapshot()
            })?;
        }
        Ok(report)
    }

    /// Looks again at what seems to differ, and repairs it if asked to. Returns what really differs.
    fn settle(&self, suspected: Vec<Difference>, repair: bool) -> Result<Vec<Difference>> {
        let settled = self.ask_writer(move |writer| settle(&writer.store, &suspected, repair))?;
        let Settled { mut real, mut recounts } = settled;
        for recount in &mut recounts {
            while recount.count(COUNTED_TOGETHER)? == COUNTED_TOGETHER {}
        }
        real.extend(recounts.iter().filter_map(Recount::difference));
        if repair && recounts.iter().any(|recount| recount.difference().is_some()) {
            self.ask_writer(move |writer| correct(&writer.store, &recounts))?;
        }
        Ok(real)
    }
}

/// What was looked at again.
pub(crate) struct Settled {
    /// What really differs.
    pub real: Vec<Difference>,
    /// Counts that have to be counted again.
    pub recounts: Vec<Recount>,
}

/// Looks again at what seemed to differ, and repairs it if asked to. Runs on the writer's thread, where nothing changes
/// meanwhile: a write in the middle of a pass can look like a difference.
pub(crate) fn settle(store: &Store, suspected: &[Difference], repair: bool) -> Result<Settled> {
    let mut real = Vec::new();
    for difference in suspected {
        let now = store.newest_time();
        let Some(difference) = difference.recheck(now)? else { continue };
        if repair {
            difference.repair(now)?;
        }
        real.push(difference);
    }
    if repair && !real.is_empty() {
        repaired(store, real.len());
        if real.iter().any(|difference| difference.spreads()) {
            store.projections.all().try_for_each(Projection::source_repaired)?;
        }
    }
    // What these count is repaired by now.
    let repairs = store.counters.repairs();
    let begun = suspected.iter().filter_map(|suspected| Recount::begin(suspected, repairs).transpose());
    Ok(Settled { real, recounts: begun.collect::<Result<_>>()? })
}

/// Corrects counts that were found wrong, all of them counted to the end; returns how many. What else was repaired since may
/// have changed rows without their counts: then nothing is corrected, and the next pass counts again. Runs on the writer's
/// thread.
pub(crate) fn correct(store: &Store, recounts: &[Recount]) -> Result<usize> {
    let wrong: Vec<&Recount> = recounts.iter().filter(|recount| recount.difference().is_some()).collect();
    let is_current = |recount: &&Recount| recount.repairs == store.counters.repairs();
    if wrong.is_empty() || !wrong.iter().all(is_current) {
        return Ok(0);
    }
    wrong.iter().try_for_each(|recount| recount.correct())?;
    repaired(store, wrong.len());
    Ok(wrong.len())
}

/// Notes that differences were repaired. Repairs are not in the log: they last once they are in flushed rows and in a
/// snapshot.
fn repaired(store: &Store, differences: usize) {
    store.repaired.store(true, Ordering::Release);
    store.counters.repaired(differences);
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::write_commands;
    use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand};
    use kinfolk_core::{EdgeKind, Id, IdKind, Timestamp};

    use super::*;
    use crate::Settings;
    use crate::edges::{Row, Tree};

    const FOLLOW: EdgeKind = EdgeKind::Follow;

    fn edge(follower: u64, followee: u64) -> Edge {
        Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) }
    }

    fn row(edge: Edge, since: Timestamp) -> Row {
        Row { kind: FOLLOW, edge, since }
    }

    /// Everything that can differ, differs; a repair brings it back, for good.
    #[test]
    fn differences_are_found_and_repaired() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::create(folder.path(), IdKind::Integer, Settings::default()).unwrap();
        let commands: Vec<_> = (0..200)
            .map(|n| EdgeCommand { action: EdgeAction::Follow, edge: edge(n % 10 + 1, n + 100) })
            .collect();
        write_commands(&store, FOLLOW, &commands, 1_000).unwrap();
        let truth: Vec<_> = store.edges(FOLLOW).unwrap().map(Result::unwrap).collect();
        assert_eq!(store.verify(false, &|_| {}).unwrap().difference_count, 0);

        let (rows, index) = (&store.store.edges.rows, &store.store.edges.index);
        let (present, since) = truth[7];
        rows.repair(Tree::Followers, row(present, since), false);
        rows.repair(Tree::Following, row(truth[8].0, truth[8].1), false);
        rows.repair(Tree::Followers, row(edge(1, 9_999), since), true);
        index.of(FOLLOW).remove(truth[20].0);
        index.of(FOLLOW).insert(edge(77, 100));
        index.of(FOLLOW).set_follower_count(Id::Integer(100), 9);

        let found = store.verify(false, &|_| {}).unwrap();
        assert!(found.difference_count >= 6, "{:?}", found.differences);
        assert!(!found.repaired);
        let repaired = store.verify(true, &|_| {}).unwrap();
        assert!(repaired.repaired);
        assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
        assert_eq!(store.edges(FOLLOW).unwrap().map(Result::unwrap).collect::<Vec<_>>(), truth);
        assert!(!store.follows(FOLLOW, edge(77, 100)));
        store.close().unwrap();
        let store = Embedded::open(folder.path(), Settings::default()).unwrap();
        assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
        assert_eq!(store.edge_count(FOLLOW), 200);
    }
}
