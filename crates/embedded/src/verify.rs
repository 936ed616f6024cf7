//! Compares every projection with the truth: both lists, the index and the counts with the pairs.
//!
//! Rows are compared by sums of hashes over buckets of users first; only buckets that differ are compared row by row.
//! So a pass reads each tree once, in order, whatever its size.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::BuildHasher;
use std::sync::atomic::Ordering;

use foldhash::fast::FixedState;
use kinfolk_core::feed::PostKey;
use kinfolk_core::graph::{Edge, Side};
use kinfolk_core::{EdgeKind, Id, Result, Timestamp};

use crate::Progress;
use crate::feeds;
use crate::index::Index;
use crate::posts::Posts;
use crate::rows::{Rows, Tree};
use crate::store::Store;
use crate::threads::{Place, Threads};

/// How many buckets users are hashed into.
const BUCKETS: usize = 1 << 16;
/// How many differences are held at a time; a repair goes round until there are none.
const DIFFERENCES_MAX: usize = 100_000;
/// How many differences a report spells out.
const EXAMPLES_MAX: usize = 20;

/// What a full pass found.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// How many edges the truth has, of all kinds.
    pub edges: u64,
    /// How many users the index knows, of all kinds.
    pub users: u64,
    /// How many differences there were.
    pub difference_count: u64,
    /// The first of them, in words.
    pub differences: Vec<String>,
    /// Whether they were repaired.
    pub repaired: bool,
}

/// Something that differs from the truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A list lacks a row, or has one that it should not have.
    Row { tree: Tree, kind: EdgeKind, edge: Edge, since: Timestamp, missing: bool },
    /// The index has other followees for a user than the truth.
    Followees { kind: EdgeKind, follower: Id },
    /// The index counts another number of followers than there are.
    FollowerCount { kind: EdgeKind, id: Id, counted: u64, is: u64 },
    /// The list of an author's posts is not what the post's record says.
    Post { author: Id, at: PostKey },
    /// A row about comments is not what their records say.
    Comment(Place),
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row { tree, kind, edge, since, missing } => {
                let list = if *tree == Tree::Following { "following" } else { "followers" };
                let (follower, followee, kind) = (edge.follower, edge.followee, kind.name());
                let state = if *missing { "lacks" } else { "has the stray" };
                write!(out, "the {list} list {state} {kind} edge {follower} to {followee} since {since}")
            }
            Self::Followees { kind, follower } => {
                write!(out, "the index has other {} edges from {follower} than the rows", kind.name())
            }
            Self::FollowerCount { kind, id, counted, is } => {
                write!(out, "the index counts {counted} {} followers of {id}, there are {is}", kind.name())
            }
            Self::Comment(place) => place.fmt(out),
            Self::Post { author, at } => {
                write!(out, "the posts by {author} differ from the record of post {} of {}", at.id, at.since)
            }
        }
    }
}

/// Sums of row hashes per bucket of users.
struct Sums(Vec<u64>);

impl Sums {
    fn new() -> Self {
        Self(vec![0; BUCKETS])
    }

    fn add(&mut self, user: Id, edge: Edge, since: Timestamp) {
        let bucket = bucket(user);
        self.0[bucket] = self.0[bucket].wrapping_add(FixedState::default().hash_one((edge, since)) | 1);
    }

    fn differing(&self, other: &Self) -> BTreeSet<usize> {
        (0..BUCKETS).filter(|&at| self.0[at] != other.0[at]).collect()
    }
}

fn bucket(user: Id) -> usize {
    FixedState::default().hash_one(user) as usize % BUCKETS
}

/// One pass over all kinds.
pub struct Pass<'a> {
    rows: &'a Rows,
    index: &'a Index,
    progress: &'a dyn Fn(Progress),
    report: VerifyReport,
    found: Vec<Difference>,
}

/// Compares everything once.
pub fn pass(
    (rows, posts, threads): (&Rows, &Posts, &Threads),
    index: &Index,
    progress: &dyn Fn(Progress),
) -> Result<(VerifyReport, Vec<Difference>)> {
    let mut pass = Pass { rows, index, progress, report: VerifyReport::default(), found: Vec::new() };
    for kind in EdgeKind::ALL {
        pass.kind(kind)?;
    }
    let suspects = posts.suspects(DIFFERENCES_MAX, &|stage, done| pass.step(stage, done))?;
    suspects.into_iter().for_each(|(author, at)| pass.note(Difference::Post { author, at }));
    let suspects = threads.suspects(DIFFERENCES_MAX, &|stage, done| pass.step(stage, done))?;
    suspects.into_iter().for_each(|place| pass.note(Difference::Comment(place)));
    Ok((pass.report, pass.found))
}

impl Pass<'_> {
    fn kind(&mut self, kind: EdgeKind) -> Result<()> {
        let (rows, index) = (self.rows, self.index);
        let paused = rows.pause();
        let pairs = rows.scan(Tree::Pairs, kind);
        let following = rows.scan(Tree::Following, kind);
        let followers = rows.scan(Tree::Followers, kind);
        drop(paused);

        let (mut truth_by_follower, mut truth_by_followee) = (Sums::new(), Sums::new());
        let mut edges = 0;
        let mut group: Option<(Id, Vec<Id>)> = None;
        for row in pairs {
            let (edge, since) = row?;
            edges += 1;
            self.step("comparing pairs", edges);
            truth_by_follower.add(edge.follower, edge, since);
            truth_by_followee.add(edge.followee, edge, since);
            match &mut group {
                Some((follower, followees)) if *follower == edge.follower => followees.push(edge.followee),
                _ => self.compare_followees(kind, group.replace((edge.follower, vec![edge.followee]))),
            }
        }
        self.compare_followees(kind, group);

        let mut list_by_follower = Sums::new();
        for (number, row) in (1..).zip(following) {
            let (edge, since) = row?;
            self.step("comparing following", number);
            list_by_follower.add(edge.follower, edge, since);
        }
        let mut list_by_followee = Sums::new();
        let mut counted: Option<(Id, u64)> = None;
        for (number, row) in (1..).zip(followers) {
            let (edge, since) = row?;
            self.step("comparing followers", number);
            list_by_followee.add(edge.followee, edge, since);
            match &mut counted {
                Some((followee, count)) if *followee == edge.followee => *count += 1,
                _ => self.compare_count(kind, counted.replace((edge.followee, 1))),
            }
        }
        self.compare_count(kind, counted);

        self.compare_rows(kind, Tree::Following, &truth_by_follower.differing(&list_by_follower))?;
        self.compare_rows(kind, Tree::Followers, &truth_by_followee.differing(&list_by_followee))?;
        self.compare_totals(kind, edges)?;
        self.report.edges += edges;
        self.report.users += index.user_count(kind);
        Ok(())
    }

    fn step(&self, stage: &'static str, done: u64) {
        if done.is_multiple_of(1 << 16) {
            (self.progress)(Progress { stage, done, total: None });
        }
    }

    fn note(&mut self, difference: Difference) {
        self.report.difference_count += 1;
        if self.found.len() < DIFFERENCES_MAX {
            self.found.push(difference);
        }
    }

    fn compare_followees(&mut self, kind: EdgeKind, group: Option<(Id, Vec<Id>)>) {
        if let Some((follower, followees)) = group
            && self.index.followees(kind, follower) != followees
        {
            self.note(Difference::Followees { kind, follower });
        }
    }

    fn compare_count(&mut self, kind: EdgeKind, group: Option<(Id, u64)>) {
        if let Some((id, is)) = group {
            let counted = self.index.counts(kind, id).followers;
            if counted != is {
                self.note(Difference::FollowerCount { kind, id, counted, is });
            }
        }
    }

    /// Compares a list with the truth row by row, for the users in some buckets.
    fn compare_rows(&mut self, kind: EdgeKind, tree: Tree, buckets: &BTreeSet<usize>) -> Result<()> {
        if buckets.is_empty() {
            return Ok(());
        }
        let owner = |edge: Edge| if tree == Tree::Following { edge.follower } else { edge.followee };
        let collect = |from: Tree| -> Result<BTreeSet<(Edge, Timestamp)>> {
            let in_question = |row: &Result<(Edge, Timestamp)>| {
                row.as_ref().map_or(true, |&(edge, _)| buckets.contains(&bucket(owner(edge))))
            };
            self.rows.scan(from, kind).filter(in_question).collect()
        };
        let (truth, list) = (collect(Tree::Pairs)?, collect(tree)?);
        for &(edge, since) in truth.difference(&list) {
            self.note(Difference::Row { tree, kind, edge, since, missing: true });
        }
        for &(edge, since) in list.difference(&truth) {
            self.note(Difference::Row { tree, kind, edge, since, missing: false });
        }
        Ok(())
    }

    /// Finds users whom only the index knows: the passes over rows can't meet them.
    fn compare_totals(&mut self, kind: EdgeKind, edges: u64) -> Result<()> {
        let (mut following, mut followers) = (0, 0);
        self.index.visit(kind, &mut |_, counts| {
            following += counts.following;
            followers += counts.followers;
        });
        if following == edges && followers == edges {
            return Ok(());
        }
        let mut truth: BTreeMap<Id, (bool, u64)> = BTreeMap::new();
        for row in self.rows.scan(Tree::Pairs, kind) {
            let (edge, _) = row?;
            truth.entry(edge.follower).or_default().0 = true;
            truth.entry(edge.followee).or_default().1 += 1;
        }
        let mut only_indexed = Vec::new();
        self.index.visit(kind, &mut |id, counts| {
            let (follows, is) = truth.get(&id).copied().unwrap_or_default();
            if counts.following > 0 && !follows {
                only_indexed.push(Difference::Followees { kind, follower: id });
            }
            if counts.followers > 0 && is == 0 {
                only_indexed.push(Difference::FollowerCount { kind, id, counted: counts.followers, is });
            }
        });
        only_indexed.into_iter().for_each(|difference| self.note(difference));
        Ok(())
    }
}

/// Looks again at what seemed to differ, and repairs it if asked to. Runs on the writer's thread, where nothing changes
/// meanwhile: a write in the middle of a pass can look like a difference. Returns what really differs.
pub fn settle(store: &Store, suspected: &[Difference], repair: bool) -> Result<Vec<Difference>> {
    let mut real = Vec::new();
    for difference in suspected {
        let Some(difference) = look_again(store, difference)? else { continue };
        if repair {
            mend(store, &difference)?;
        }
        real.push(difference);
    }
    if repair && !real.is_empty() {
        // The log does not tell of repairs: they last once they are in flushed rows and in a snapshot.
        store.index_repaired.store(true, Ordering::Release);
        // Inboxes were filled from what was wrong.
        feeds::forget_all(store)?;
        store.counters.repaired(real.len());
    }
    Ok(real)
}

/// The difference as it is now, if there is one.
pub fn look_again(store: &Store, suspected: &Difference) -> Result<Option<Difference>> {
    let (rows, index) = (&store.rows, &store.index);
    let found = match *suspected {
        Difference::Row { tree, kind, edge, since, .. } => {
            let expected = rows.since(kind, edge)? == Some(since);
            let differs = rows.has(tree, (kind, edge, since))? != expected;
            differs.then_some(Difference::Row { tree, kind, edge, since, missing: expected })
        }
        Difference::Followees { kind, follower } => {
            let truth: Vec<Id> = rows.followees(kind, follower).collect::<Result<_>>()?;
            (index.followees(kind, follower) != truth).then_some(Difference::Followees { kind, follower })
        }
        Difference::FollowerCount { kind, id, .. } => {
            let list = rows.list_rows((kind, Side::Followers, id), None);
            let is = list.into_iter().try_fold(0, |count, row| row.map(|_| count + 1))?;
            let counted = index.counts(kind, id).followers;
            (counted != is).then_some(Difference::FollowerCount { kind, id, counted, is })
        }
        Difference::Comment(place) => store.threads.difference(place)?.map(|_| Difference::Comment(place)),
        Difference::Post { author, at } => {
            store.posts.difference((author, at))?.map(|_| Difference::Post { author, at })
        }
    };
    Ok(found)
}

/// Brings what differs back to the truth.
fn mend(store: &Store, difference: &Difference) -> Result<()> {
    match *difference {
        Difference::Row { tree, kind, edge, since, missing } => {
            store.rows.repair(tree, (kind, edge, since), missing);
            store.newest.changed(edge.follower);
        }
        Difference::Followees { kind, follower } => {
            let followees: Vec<Id> = store.rows.followees(kind, follower).collect::<Result<_>>()?;
            store.index.replace_followees(kind, follower, &followees);
            // Those who have a number only now were left out of what is kept.
            store.newest.changed(follower);
        }
        Difference::FollowerCount { kind, id, is, .. } => {
            store.index.set_follower_count(kind, id, u32::try_from(is).unwrap_or(u32::MAX));
        }
        Difference::Comment(place) => store.threads.mend(place)?,
        Difference::Post { author, at } => store.posts.mend((author, at))?,
    }
    Ok(())
}

impl VerifyReport {
    /// Counts only what really differs of what a pass suspected.
    pub(crate) fn keep(&mut self, suspected: usize, real: &[Difference]) {
        self.difference_count -= (suspected - real.len()) as u64;
        self.differences = real.iter().take(EXAMPLES_MAX).map(ToString::to_string).collect();
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

    /// Everything that can differ, differs; a repair brings it back, for good.
    #[test]
    fn differences_are_found_and_repaired() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::create(folder.path(), IdKind::Integer, Settings::default()).unwrap();
        let commands = (0..200)
            .map(|n| EdgeCommand { action: EdgeAction::Follow, edge: edge(n % 10 + 1, n + 100) })
            .collect();
        store.write_blocking(WriteRequest { kind: FOLLOW, commands, following_limit: 1_000 }).unwrap();
        let truth: Vec<_> = store.edges(FOLLOW).unwrap().map(Result::unwrap).collect();
        assert_eq!(store.verify(false, &|_| {}).unwrap().difference_count, 0);

        let (rows, index) = (&store.shared().rows, &store.shared().index);
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
}
