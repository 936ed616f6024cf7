//! A page of friends: who follows a user and is followed back, by when they followed the user.
//!
//! There are two ways to it. The followers can be walked in their order, asking the index of each whether it is followed back: that
//! costs a row each until the page is full. Or the friends are taken from the index, and each is asked since when it
//! follows: that costs a point read each, whatever the page's size. Which is cheaper follows from how many there are: a page of
//! somebody with ten million followers who follows a hundred is a hundred point reads, and one of two thousand mutual friends
//! is some fifty rows. A walk that was expected to be shorter than it is ends with the other way, so that no page costs more
//! than about twice the cheaper one.

use std::collections::BinaryHeap;

use kinfolk_core::graph::{Counts, Edge, EdgeList, ListEntry, ListKey, Side};
use kinfolk_core::{EdgeKind, Id, Result};

use super::{Edges, require_wanted};

/// How many rows of a list are read in the time of one point read.
const ROWS_PER_ASK: u64 = 8;
/// So many rows, index look-ups or point reads take about a third of a millisecond: as long as the caller's thread may work.
const WALKED_SHORT: u64 = 1_000;
const LOOKED_UP_SHORT: u64 = 1_000;
const ASKED_SHORT: usize = 100;
/// How many rows are walked, or friends asked, before it is seen whether the caller is still there.
const TOGETHER: usize = 256;

/// A page that is being looked for.
#[derive(Debug)]
pub(crate) struct Search {
    kind: EdgeKind,
    of: Id,
    limit: usize,
    counts: Counts,
    /// Everything up to here is looked at.
    after: Option<ListKey>,
    found: Vec<ListEntry>,
    /// All friends by id, once they are known.
    friends: Option<Vec<Id>>,
    is_done: bool,
    /// What it has cost so far.
    cost: Cost,
}

/// What a page has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    rows_walked: u64,
    friends_asked: u64,
}

impl Search {
    /// Nothing looked at yet.
    pub(crate) fn new(
        edges: &Edges,
        (kind, of): (EdgeKind, Id),
        after: Option<ListKey>,
        limit: usize,
    ) -> Self {
        let counts = edges.index.of(kind).counts(of);
        let is_done = counts.followers == 0 || counts.following == 0 || limit == 0;
        let (found, friends, cost) = (Vec::new(), None, Cost::default());
        Self { kind, of, limit, counts, after, found, friends, is_done, cost }
    }

    /// Does what the caller's thread may do; returns whether that was all.
    pub(crate) fn run_shortly(&mut self, edges: &Edges) -> Result<bool> {
        const STAYS: &dyn Fn() -> bool = &|| false;
        if self.counts.following <= LOOKED_UP_SHORT && self.counts.followers > WALKED_SHORT {
            let friends = self.friends(edges).len();
            if self.asking_is_cheaper(friends) {
                if friends <= ASKED_SHORT {
                    self.ask(edges, STAYS)?;
                }
                return Ok(self.is_done);
            }
        }
        self.walk(edges, WALKED_SHORT, STAYS)?;
        Ok(self.is_done)
    }

    /// Does all the rest.
    pub(crate) fn run(&mut self, edges: &Edges, is_given_up: &dyn Fn() -> bool) -> Result<()> {
        if self.is_done {
            return Ok(());
        }
        let friends = self.friends(edges).len();
        if !self.asking_is_cheaper(friends) {
            self.walk(edges, friends as u64 * ROWS_PER_ASK, is_given_up)?;
        }
        if self.is_done { Ok(()) } else { self.ask(edges, is_given_up) }
    }

    /// The page.
    pub(crate) fn into_page(self) -> Vec<ListEntry> {
        self.found
    }

    /// All friends by the index, by id.
    fn friends(&mut self, edges: &Edges) -> &[Id] {
        let (kind, of) = (self.kind, self.of);
        self.friends.get_or_insert_with(|| {
            let mut numbers = edges.index.of(kind).followee_numbers(of);
            edges.index.of(kind).retain_followers(&mut numbers, of);
            edges.index.of(kind).page(&numbers, None, usize::MAX)
        })
    }

    /// Whether asking all friends costs less than walking until the page is full, if friends are spread evenly.
    fn asking_is_cheaper(&self, friends: usize) -> bool {
        let (friends, missing) = (friends as u64, (self.limit - self.found.len()) as u64);
        let walk = match missing < friends {
            true => u128::from(self.counts.followers) * u128::from(missing) / u128::from(friends),
            false => self.counts.followers.into(),
        };
        u128::from(friends * ROWS_PER_ASK) < walk
    }

    /// Walks the followers until the page is full, or so many rows are read.
    fn walk(&mut self, edges: &Edges, rows_max: u64, is_given_up: &dyn Fn() -> bool) -> Result<()> {
        let mut rows = edges
            .rows
            .list_rows(EdgeList { kind: self.kind, side: Side::Followers, of: self.of }, self.after);
        let mut left = rows_max;
        while left > 0 {
            // Not many more than the page may need.
            let most = self.limit.clamp(16, TOGETHER).min(usize::try_from(left).unwrap_or(TOGETHER));
            let entries: Vec<ListEntry> = rows.by_ref().take(most).collect::<Result<_>>()?;
            self.cost.rows_walked += entries.len() as u64;
            left -= entries.len() as u64;
            let edge = |entry: &ListEntry| Edge { follower: self.of, followee: entry.id };
            let followed_back: Vec<Edge> = entries.iter().map(edge).collect();
            let is_friend = edges.index.contains_all(self.kind, &followed_back);
            let friends = entries.iter().zip(is_friend).filter(|&(_, is_friend)| is_friend);
            self.found.extend(friends.map(|(&entry, _)| entry).take(self.limit - self.found.len()));
            self.after = entries.last().copied().or(self.after);
            if self.found.len() == self.limit || entries.len() < most {
                self.is_done = true;
                return Ok(());
            }
            require_wanted(is_given_up)?;
        }
        Ok(())
    }

    /// Asks all friends since when they follow, and takes the newest of those that are not looked at yet.
    fn ask(&mut self, edges: &Edges, is_given_up: &dyn Fn() -> bool) -> Result<()> {
        let friends = std::mem::take(self.friends.get_or_insert_default());
        let missing = self.limit - self.found.len();
        // The last of those that are kept is on top.
        let mut newest = BinaryHeap::with_capacity(missing + 1);
        for some in friends.chunks(TOGETHER) {
            require_wanted(is_given_up)?;
            self.cost.friends_asked += some.len() as u64;
            for &id in some {
                let back = Edge { follower: id, followee: self.of };
                let Some(since) = edges.rows.since(self.kind, back)? else { continue };
                let key = ListKey { since, id };
                if self.after.is_none_or(|after| key > after) {
                    newest.push(key);
                    if newest.len() > missing {
                        newest.pop();
                    }
                }
            }
        }
        self.found.extend(newest.into_sorted_vec());
        self.is_done = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::{block_on, write_commands};
    use kinfolk_core::graph::{EdgeAction, EdgeCommand, EdgeStore};
    use kinfolk_core::{Frontier, IdKind};

    use super::*;
    use crate::{Embedded, Settings};

    const FOLLOW: EdgeKind = EdgeKind::Follow;
    const OF: u64 = 0;
    const LIMIT: usize = 51;

    /// The followers of user 0, in the order of time, and its followees.
    struct Crowd {
        followers: Vec<u64>,
        followees: Vec<u64>,
    }

    impl Crowd {
        fn store(&self) -> (tempfile::TempDir, Embedded) {
            let folder = tempfile::tempdir().unwrap();
            let settings = Settings { reconcile_rows: 0, ..Settings::default() };
            let store = Embedded::create(folder.path(), IdKind::Integer, settings).unwrap();
            let edge = |follower, followee| Edge {
                follower: Id::Integer(follower),
                followee: Id::Integer(followee),
            };
            let follow = |edge| EdgeCommand { action: EdgeAction::Follow, edge };
            let write = |commands: Vec<_>| write_commands(&store, FOLLOW, &commands, 100_000).unwrap();
            write(self.followees.iter().map(|&user| follow(edge(OF, user))).collect());
            write(self.followers.iter().map(|&user| follow(edge(user, OF))).collect());
            store.compact().unwrap();
            (folder, store)
        }

        /// All friends, newest first: within one millisecond, from high ids to low.
        fn friends(&self) -> Vec<Id> {
            let mut friends: Vec<u64> =
                self.followers.iter().copied().filter(|user| self.followees.contains(user)).collect();
            friends.sort_unstable();
            friends.into_iter().rev().map(Id::Integer).collect()
        }
    }

    /// A page after a place: what it has, what it cost, and whether the caller's thread was enough.
    fn page(store: &Embedded, after: Option<ListKey>) -> (Vec<ListEntry>, Cost, bool) {
        let edges = &store.store.edges;
        let mut search = Search::new(edges, (FOLLOW, Id::Integer(OF)), after, LIMIT);
        let is_short = search.run_shortly(edges).unwrap();
        search.run(edges, &|| false).unwrap();
        let cost = search.cost;
        (search.into_page(), cost, is_short)
    }

    /// Walks all pages, which must be exactly the friends; returns the cost of each.
    fn walk(crowd: &Crowd) -> Vec<(Cost, bool)> {
        let (_folder, store) = crowd.store();
        let (mut found, mut costs) = (Vec::<ListEntry>::new(), Vec::new());
        loop {
            let (entries, cost, is_short) = page(&store, found.last().copied());
            costs.push((cost, is_short));
            let is_last = entries.len() < LIMIT;
            found.extend(entries);
            if is_last {
                break;
            }
        }
        assert_eq!(found.iter().map(|entry| entry.id).collect::<Vec<_>>(), crowd.friends());
        costs
    }

    /// A page of very many friends is as many rows as it has entries, however many there are.
    #[test]
    fn a_page_of_many_friends_costs_what_it_shows() {
        let crowd = Crowd { followers: (1..=6_000).collect(), followees: (1..=5_000).rev().collect() };
        let costs = walk(&crowd);
        assert!(costs.len() > 90);
        for (cost, is_short) in costs.iter().skip(1).rev().skip(1) {
            let rows = LIMIT as u64;
            assert!(cost.rows_walked <= 2 * rows && cost.friends_asked == 0 && *is_short, "{cost:?}");
        }
        // The thousand who are no friends are the newest followers.
        assert!(costs[0].0.rows_walked <= 1_200 && costs[0].0.friends_asked == 0, "{:?}", costs[0]);
    }

    /// One who has many followers and follows few is not walked at all.
    #[test]
    fn a_page_of_a_celebrity_costs_what_it_follows() {
        let crowd =
            Crowd { followers: (1..=20_000).collect(), followees: (1..=60).map(|n| n * 300).collect() };
        for (cost, is_short) in walk(&crowd) {
            assert_eq!((cost, is_short), (Cost { rows_walked: 0, friends_asked: 60 }, true));
        }
    }

    /// One who follows many and has few followers costs no more than these.
    #[test]
    fn a_page_of_one_who_follows_many_costs_the_followers() {
        let crowd =
            Crowd { followers: (1..=300).map(|n| n * 20).collect(), followees: (1..=9_000).collect() };
        for (cost, is_short) in walk(&crowd) {
            assert!(cost.rows_walked <= 300 && cost.friends_asked == 0 && is_short, "{cost:?}");
        }
    }

    /// Where friends are the oldest followers of many, the walk is given up for the other way; the caller's thread does not wait.
    #[test]
    fn a_walk_in_vain_is_bounded() {
        let crowd = Crowd { followers: (1..=30_000).collect(), followees: (1..=1_500).collect() };
        let costs = walk(&crowd);
        let (first, is_short) = costs[0];
        assert!(!is_short && first.friends_asked == 1_500, "{first:?}");
        assert!(first.rows_walked <= WALKED_SHORT + 1_500 * ROWS_PER_ASK, "{first:?}");
        for (cost, _) in &costs {
            assert!(
                cost.rows_walked + cost.friends_asked * ROWS_PER_ASK
                    <= 2 * 1_500 * ROWS_PER_ASK + WALKED_SHORT
            );
        }
    }

    /// Nobody in common costs a look into the index.
    #[test]
    fn no_friends_cost_nothing() {
        let crowd = Crowd { followers: (1..=5_000).collect(), followees: (6_000..=6_500).collect() };
        assert_eq!(walk(&crowd), [(Cost::default(), true)]);
    }

    /// A page that takes long is a job of the request workers; one that does not is answered at once.
    #[test]
    fn long_pages_go_to_the_workers() {
        let crowd = Crowd { followers: (1..=30_000).collect(), followees: (1..=1_500).collect() };
        let (_folder, store) = crowd.store();
        let read =
            |after| block_on(store.friends(FOLLOW, Id::Integer(OF), after, LIMIT, Frontier::EMPTY)).unwrap();
        let first = read(None);
        assert_eq!(store.stats().walks, 1);
        assert_eq!(read(first.last().copied()).len(), LIMIT);
        assert_eq!(store.stats().walks, 1);
    }

    #[test]
    fn work_that_nobody_waits_for_ends() {
        let crowd = Crowd { followers: (1..=30_000).collect(), followees: (1..=1_500).collect() };
        let (_folder, store) = crowd.store();
        let mut search = Search::new(&store.store.edges, (FOLLOW, Id::Integer(OF)), None, LIMIT);
        assert!(matches!(search.run(&store.store.edges, &|| true), Err(kinfolk_core::Error::Closed)));
    }
}
