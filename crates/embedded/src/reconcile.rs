//! Compares both lists and the index with the truth, a few rows a second, all the time, and repairs what has differed
//! for 30 seconds. Writes go on meanwhile, so a difference counts only if it is still there after that time.
//!
//! It goes round and round: all pairs, all rows of both lists, all users of the index. A whole round takes as long as
//! the setting makes it take; `verify` does the same at once, for a store without writes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinfolk_core::graph::{Edge, Side};
use kinfolk_core::{EdgeKind, Id, Result, Timestamp};
use tokio::sync::mpsc;

use crate::rows::{FIRST_KEY, Tree};
use crate::store::Store;
use crate::verify::{self, Difference};
use crate::writer::Command;

/// How long something must differ before it is repaired.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longer lists are not counted here: the writer would have to wait for it. `verify` counts them.
const COUNTED_MAX: u64 = 1_000_000;
/// How many differences are remembered at a time.
const SUSPECTS_MAX: usize = 10_000;

/// A row that some projection has or should have.
type Row = (EdgeKind, Edge, Timestamp);

/// Where it is in its round.
enum Place {
    /// In a tree, after a key.
    Rows(Tree, Vec<u8>),
    /// At a user of the index, by number.
    Users(EdgeKind, u32),
}

/// Goes through everything, again and again.
pub struct Reconciler {
    store: Arc<Store>,
    rows_per_step: usize,
    place: Place,
    /// The owner whose rows are being counted, and how many there were so far.
    counting: Option<(EdgeKind, Id, u64)>,
    /// Rows that differed, since when.
    suspects: BTreeMap<(Edge, EdgeKind, Timestamp), Instant>,
    /// Users whose followers were not as many as counted, since when.
    miscounts: BTreeMap<(Id, EdgeKind), Instant>,
}

impl Reconciler {
    /// Begins with the first pair.
    pub fn new(store: Arc<Store>, rows_per_step: usize) -> Self {
        Self {
            store,
            rows_per_step,
            place: Place::Rows(Tree::Pairs, FIRST_KEY.to_vec()),
            counting: None,
            suspects: BTreeMap::new(),
            miscounts: BTreeMap::new(),
        }
    }

    /// Compares some rows, and has repaired what has differed for long enough.
    pub fn step(&mut self, now: Instant, commands: &mpsc::WeakSender<Command>) -> Result<()> {
        if self.rows_per_step == 0 {
            return Ok(());
        }
        self.compare_some(now)?;
        let differences = self.overdue(now)?;
        if differences.is_empty() {
            return Ok(());
        }
        if let Some(commands) = commands.upgrade() {
            let repair = Command::Run(Box::new(move |writer| repair(&writer.store, &differences)));
            // A full queue means a busy writer: the difference will be met again.
            let _ = commands.try_send(repair);
        }
        Ok(())
    }

    fn compare_some(&mut self, now: Instant) -> Result<()> {
        let start = || Place::Rows(Tree::Pairs, FIRST_KEY.to_vec());
        self.place = match std::mem::replace(&mut self.place, start()) {
            Place::Rows(tree, after) => self.compare_rows(tree, &after, now)?,
            Place::Users(kind, number) => self.compare_users(kind, number, now)?,
        };
        Ok(())
    }

    fn compare_rows(&mut self, tree: Tree, after: &[u8], now: Instant) -> Result<Place> {
        let part = self.store.rows.scan_part(tree, after, self.rows_per_step)?;
        self.store.counters.reconciled(part.rows.len());
        for &row in &part.rows {
            if differs(&self.store, tree, row)? {
                self.suspect(row, now);
            }
            self.count(tree, row, now)?;
        }
        if part.rows.len() == self.rows_per_step {
            return Ok(Place::Rows(tree, part.last));
        }
        self.finish_count(tree, now)?;
        Ok(match tree {
            Tree::Pairs => Place::Rows(Tree::Following, FIRST_KEY.to_vec()),
            Tree::Following => Place::Rows(Tree::Followers, FIRST_KEY.to_vec()),
            Tree::Followers => Place::Users(EdgeKind::ALL[0], 0),
        })
    }

    /// Finds users whom only the index knows: the rows can't tell of them.
    fn compare_users(&mut self, kind: EdgeKind, first: u32, now: Instant) -> Result<Place> {
        let users = self.store.index.users_from(kind, first, self.rows_per_step);
        for &of in &users {
            let store = Arc::clone(&self.store);
            let counts = store.index.counts(kind, of);
            let empty = |side| store.rows.list_rows((kind, side, of), None).next().is_none();
            if counts.following > 0 && empty(Side::Following) {
                self.compare_followees(kind, of, now)?;
            }
            if counts.followers > 0 && empty(Side::Followers) {
                self.miscounts.entry((of, kind)).or_insert(now);
            }
        }
        let next_kind = EdgeKind::ALL.into_iter().find(|&other| other > kind);
        Ok(match next_kind {
            _ if users.len() == self.rows_per_step => Place::Users(kind, first + users.len() as u32),
            Some(next) => Place::Users(next, 0),
            None => Place::Rows(Tree::Pairs, FIRST_KEY.to_vec()),
        })
    }

    fn suspect(&mut self, (kind, edge, since): Row, now: Instant) {
        if self.suspects.len() < SUSPECTS_MAX {
            self.suspects.entry((edge, kind, since)).or_insert(now);
        }
    }

    /// Counts the rows of each list, which come owner by owner.
    fn count(&mut self, tree: Tree, (kind, edge, _): Row, now: Instant) -> Result<()> {
        let owner = match tree {
            Tree::Pairs => return Ok(()),
            Tree::Following => edge.follower,
            Tree::Followers => edge.followee,
        };
        match &mut self.counting {
            Some((of_kind, of, rows)) if (*of_kind, *of) == (kind, owner) => *rows += 1,
            _ => {
                self.finish_count(tree, now)?;
                self.counting = Some((kind, owner, 1));
            }
        }
        Ok(())
    }

    /// A list whose rows on disk are not as many as the index has is looked at more closely, with those in memory.
    fn finish_count(&mut self, tree: Tree, now: Instant) -> Result<()> {
        let Some((kind, of, rows)) = self.counting.take() else { return Ok(()) };
        let counts = self.store.index.counts(kind, of);
        if tree == Tree::Following && counts.following != rows {
            self.compare_followees(kind, of, now)?;
        }
        let differ = counts.followers != rows && rows.max(counts.followers) <= COUNTED_MAX;
        if tree == Tree::Followers && differ && self.miscounts.len() < SUSPECTS_MAX {
            self.miscounts.entry((of, kind)).or_insert(now);
        }
        Ok(())
    }

    /// Suspects edges that the index has and the truth lacks. The other way round, the truth's rows tell.
    fn compare_followees(&mut self, kind: EdgeKind, follower: Id, now: Instant) -> Result<()> {
        for followee in self.store.index.followees(kind, follower) {
            let edge = Edge { follower, followee };
            if self.store.rows.since(kind, edge)?.is_none() {
                self.suspect((kind, edge, Timestamp::MIN), now);
            }
        }
        Ok(())
    }

    /// What has differed for long enough and does so now.
    fn overdue(&mut self, now: Instant) -> Result<Vec<Difference>> {
        let is_due = |since: &Instant| now.duration_since(*since) >= PATIENCE;
        let rows = self.suspects.extract_if(.., |_, since| is_due(since));
        let mut suspected: Vec<Difference> = rows
            .flat_map(|((edge, kind, since), _)| {
                let row = |tree| Difference::Row { tree, kind, edge, since, missing: false };
                let followees = Difference::Followees { kind, follower: edge.follower };
                [row(Tree::Following), row(Tree::Followers), followees]
            })
            .collect();
        let counts = self.miscounts.extract_if(.., |_, since| is_due(since));
        suspected.extend(counts.map(|((id, kind), _)| Difference::FollowerCount {
            kind,
            id,
            counted: 0,
            is: 0,
        }));
        let looked = suspected.iter().map(|suspected| verify::look_again(&self.store, suspected));
        looked.filter_map(Result::transpose).collect()
    }
}

/// Whether a projection says something else about a row than the truth: the row was found in `tree`.
fn differs(store: &Store, tree: Tree, (kind, edge, since): Row) -> Result<bool> {
    let truth = store.rows.since(kind, edge)?;
    if tree == Tree::Pairs && truth != Some(since) {
        // It was removed, or made anew, since it was read.
        return Ok(false);
    }
    let expected = truth == Some(since);
    for list in [Tree::Following, Tree::Followers] {
        if store.rows.has(list, (kind, edge, since))? != expected {
            return Ok(true);
        }
    }
    Ok(store.index.contains(kind, edge) != truth.is_some())
}

/// Repairs what really differs. Runs on the writer's thread, between two batches.
fn repair(store: &Store, differences: &[Difference]) {
    match verify::settle(store, differences, true) {
        Ok(real) if real.is_empty() => {}
        Ok(real) => {
            tracing::warn!(repaired = real.len(), "projections differed from the edges and were repaired");
            store.signal.wake();
        }
        Err(error) => tracing::error!(%error, "a difference could not be repaired"),
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::IdKind;
    use kinfolk_core::graph::{EdgeAction, EdgeCommand, WriteRequest};

    use super::*;
    use crate::{Embedded, Settings};

    const FOLLOW: EdgeKind = EdgeKind::Follow;

    fn edge(follower: u64, followee: u64) -> Edge {
        Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) }
    }

    /// A store whose own reconciler sleeps, with 200 edges on disk.
    fn store() -> (tempfile::TempDir, Embedded) {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { reconcile_rows: 0, ..Settings::default() };
        let store = Embedded::create(folder.path(), IdKind::Integer, settings).unwrap();
        let follow = |n: u64| EdgeCommand { action: EdgeAction::Follow, edge: edge(n % 10 + 1, n + 100) };
        let commands = (0..200).map(follow).collect();
        store.write_blocking(WriteRequest { kind: FOLLOW, commands, following_limit: 1_000 }).unwrap();
        store.compact().unwrap();
        (folder, store)
    }

    /// Goes round at each of the times, and tells how much was repaired.
    fn reconcile(store: &Embedded, seconds: &[u64]) -> usize {
        const STEPS_OF_A_ROUND: usize = 100;
        let mut reconciler = Reconciler::new(Arc::clone(store.shared()), 37);
        let start = Instant::now();
        let mut found = 0;
        for &second in seconds {
            let now = start + Duration::from_secs(second);
            (0..STEPS_OF_A_ROUND).for_each(|_| reconciler.compare_some(now).unwrap());
            let differences = reconciler.overdue(now).unwrap();
            found += differences.len();
            repair(store.shared(), &differences);
        }
        found
    }

    #[test]
    fn what_agrees_is_left_alone() {
        let (_folder, store) = store();
        assert_eq!(reconcile(&store, &[0, 31, 62]), 0);
    }

    #[test]
    fn a_difference_is_repaired_only_after_its_time() {
        let (_folder, store) = store();
        let (rows, index) = (&store.shared().rows, &store.shared().index);
        let truth: Vec<_> = store.edges(FOLLOW).unwrap().map(Result::unwrap).collect();
        let since = truth[0].1;
        rows.repair(Tree::Followers, (FOLLOW, truth[7].0, since), false);
        rows.repair(Tree::Following, (FOLLOW, truth[8].0, since), false);
        rows.repair(Tree::Followers, (FOLLOW, edge(2, 150), since), true);
        index.remove(FOLLOW, truth[20].0);
        index.insert(FOLLOW, edge(77, 100));
        index.insert(FOLLOW, edge(1, 9_000));
        index.set_follower_count(FOLLOW, Id::Integer(140), 9);
        store.compact().unwrap();

        assert_eq!(reconcile(&store, &[0, 29]), 0);
        assert!(store.verify(false, &|_| {}).unwrap().difference_count > 0);
        assert!(reconcile(&store, &[0, 31, 62, 93, 124]) >= 6);
        assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
    }

    #[test]
    fn a_difference_that_goes_away_is_forgotten() {
        let (_folder, store) = store();
        let truth: Vec<_> = store.edges(FOLLOW).unwrap().map(Result::unwrap).collect();
        let mut reconciler = Reconciler::new(Arc::clone(store.shared()), 37);
        let start = Instant::now();
        reconciler.suspects.insert((truth[3].0, FOLLOW, truth[3].1), start);
        let differences = reconciler.overdue(start + PATIENCE).unwrap();
        assert!(differences.is_empty() && reconciler.suspects.is_empty());
    }
}
