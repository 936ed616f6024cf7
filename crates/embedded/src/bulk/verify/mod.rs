//! Compares every projection with the truth, on demand: lists, index and counts with the pairs; posts and comments with their
//! records; idempotency keys with the log; inboxes with what their contract says.
//!
//! Writes go on meanwhile, so that much only seems to differ. It is looked at again between two batches of the writer, some at
//! a time as it is found: however long a pass takes and whatever is written, no more than that is held.

mod difference;
mod keys;
mod recount;

use std::sync::atomic::Ordering;

use kinfolk_core::bulk::VerifyReport;
use kinfolk_core::{EdgeKind, Error, Result};

pub use difference::Difference;
pub use recount::{Counting, Recount, correct};

use crate::edges;
use crate::engine::store::Store;
use crate::{Embedded, Progress, feeds};

/// How many differences are looked at together. The writer does nothing else meanwhile.
pub const TOGETHER: usize = 256;
/// How many counts wait until the rows that they count are repaired.
const COUNTS_MAX: usize = 16_384;
/// How many differences a report spells out.
const EXAMPLES_MAX: usize = 20;
/// How many rows are counted before it is seen whether there are more.
const COUNTED_TOGETHER: usize = 65_536;

/// Takes what seems to differ, and has it looked at again.
pub struct Suspects<'a> {
    /// Looks again, and returns what really differs.
    settle: &'a dyn Fn(Vec<Difference>) -> Result<Vec<Difference>>,
    progress: &'a dyn Fn(Progress),
    held: Vec<Difference>,
    /// Looked at last: a list that was repaired has another length.
    counts: Vec<Difference>,
    pub report: VerifyReport,
}

impl<'a> Suspects<'a> {
    fn new(
        settle: &'a dyn Fn(Vec<Difference>) -> Result<Vec<Difference>>,
        progress: &'a dyn Fn(Progress),
    ) -> Self {
        Self { settle, progress, held: Vec::new(), counts: Vec::new(), report: VerifyReport::default() }
    }

    /// Something seems to differ.
    pub fn add(&mut self, suspected: Difference) -> Result<()> {
        if suspected.is_count() {
            self.counts.push(suspected);
        } else {
            self.held.push(suspected);
        }
        if self.counts.len() == COUNTS_MAX {
            return self.settle_all();
        }
        if self.held.len() == TOGETHER {
            let held = std::mem::take(&mut self.held);
            return self.settle(held);
        }
        Ok(())
    }

    fn settle(&mut self, suspected: Vec<Difference>) -> Result<()> {
        if suspected.is_empty() {
            return Ok(());
        }
        let real = (self.settle)(suspected)?;
        self.report.difference_count += real.len() as u64;
        let examples = &mut self.report.differences;
        examples.extend(real.iter().take(EXAMPLES_MAX - examples.len()).map(ToString::to_string));
        Ok(())
    }

    fn settle_all(&mut self) -> Result<()> {
        let (held, mut counts) = (std::mem::take(&mut self.held), std::mem::take(&mut self.counts));
        self.settle(held)?;
        while !counts.is_empty() {
            let rest = counts.split_off(counts.len().min(TOGETHER));
            self.settle(std::mem::replace(&mut counts, rest))?;
        }
        Ok(())
    }

    /// Says from time to time how far a stage has come.
    pub fn step(&self, stage: &'static str, done: u64) {
        if done.is_multiple_of(1 << 16) {
            (self.progress)(Progress { stage, done, total: None });
        }
    }

    fn finish(mut self) -> Result<VerifyReport> {
        self.settle_all()?;
        Ok(self.report)
    }
}

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
        let store = &**self.shared();
        for kind in EdgeKind::ALL {
            edges::verify::compare(store, kind, &mut suspects)?;
        }
        store.posts.compare(store.newest_time(), &mut suspects)?;
        store.comments.compare(store.newest_time(), &mut suspects)?;
        keys::compare(store, &mut suspects)?;
        feeds::compare(&store.feeds, &mut suspects)?;
        let report = suspects.finish()?;
        if repair && report.difference_count > 0 {
            // The log does not tell of repairs: they last once they are in flushed rows and in a snapshot.
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
pub struct Settled {
    /// What really differs.
    pub real: Vec<Difference>,
    /// Counts of which only counting can tell.
    pub recounts: Vec<Recount>,
}

/// Looks again at what seemed to differ, and repairs it if asked to. Runs on the writer's thread, where nothing changes
/// meanwhile: a write in the middle of a pass can look like a difference.
pub fn settle(store: &Store, suspected: &[Difference], repair: bool) -> Result<Settled> {
    let mut real = Vec::new();
    for difference in suspected {
        let Some(difference) = difference.look_again(store)? else { continue };
        if repair {
            difference.mend(store)?;
        }
        real.push(difference);
    }
    if repair && !real.is_empty() {
        repaired(store, real.len());
        if real.iter().any(|difference| !matches!(difference, Difference::Inbox(_))) {
            // They were filled from what was wrong.
            feeds::forget_all(&store.feeds)?;
        }
    }
    // What these count is repaired by now.
    let begun = suspected.iter().filter_map(|suspected| Recount::begin(store, suspected).transpose());
    Ok(Settled { real, recounts: begun.collect::<Result<_>>()? })
}

/// Notes that differences were repaired. The log does not tell of it: repairs last once they are in flushed rows and in a
/// snapshot.
fn repaired(store: &Store, differences: usize) {
    store.repaired.store(true, Ordering::Release);
    store.counters.repaired(differences);
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::write_commands;
    use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand};
    use kinfolk_core::{Id, IdKind};

    use super::*;
    use crate::Settings;
    use crate::edges::Tree;

    const FOLLOW: EdgeKind = EdgeKind::Follow;

    fn edge(follower: u64, followee: u64) -> Edge {
        Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) }
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

        let (rows, index) = (&store.shared().edges.rows, &store.shared().edges.index);
        let (present, since) = truth[7];
        rows.repair(Tree::Followers, (FOLLOW, present, since), false);
        rows.repair(Tree::Following, (FOLLOW, truth[8].0, truth[8].1), false);
        rows.repair(Tree::Followers, (FOLLOW, edge(1, 9_999), since), true);
        index.remove(FOLLOW, truth[20].0);
        index.insert(FOLLOW, edge(77, 100));
        index.set_follower_count(FOLLOW, Id::Integer(100), 9);

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

    /// However much seems to differ, no more is held than is looked at together; counts come after what they count.
    #[test]
    fn suspects_are_looked_at_some_at_a_time() {
        let seen = std::cell::RefCell::new(Vec::new());
        let settle = |suspected: Vec<Difference>| {
            assert!(suspected.len() <= TOGETHER);
            seen.borrow_mut().extend(suspected.iter().map(Difference::is_count));
            Ok(suspected.into_iter().skip(1).collect())
        };
        let mut suspects = Suspects::new(&settle, &|_| {});
        let id = Id::Integer(1);
        for _ in 0..20_000 {
            suspects.add(Difference::Followees { kind: FOLLOW, follower: id }).unwrap();
            suspects.add(Difference::FollowerCount { kind: FOLLOW, id, counted: 0, is: 0 }).unwrap();
            assert!(suspects.held.len() < TOGETHER && suspects.counts.len() < COUNTS_MAX);
        }
        let report = suspects.finish().unwrap();
        let looked = seen.into_inner();
        assert_eq!(looked.len(), 40_000);
        assert!(looked.last() == Some(&true) && !looked[..10_000].contains(&true));
        let chunks = looked.chunk_by(|one, next| one == next).map(|run| run.len().div_ceil(TOGETHER));
        assert!(report.difference_count >= 40_000 - 2 * chunks.sum::<usize>() as u64);
        assert_eq!(report.differences.len(), EXAMPLES_MAX);
    }
}
