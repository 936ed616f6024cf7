//! What a case works with: a fresh store in a graph, its clock, and short words for writes and reads that must
//! succeed. A failure is a panic.

use std::fmt::Debug;
use std::num::NonZeroU16;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kinfolk_core::changes::Change;
use kinfolk_core::comments::CommentSettings;
use kinfolk_core::feeds::FeedSettings;
use kinfolk_core::graph::{
    CheckStore, Counts, Edge, EdgeAction, EdgeCommand, GraphSettings, ListEntry, ListKey, Receipt, Side,
};
use kinfolk_core::suggestions::SuggestionSettings;
use kinfolk_core::{
    EdgeKind, Error, ErrorCode, Frontier, Id, IdKind, Keyring, Position, Result, Sequence, Shard, SigningKey,
    Timestamp,
};

use super::CaseScope;
use super::client::Client;
use crate::StoreFactory;
use crate::clock::SimulatedClock;
use crate::ports::EdgePorts;
use crate::random::audit::{Outcome, Record};
use crate::random::compare::{KINDS, walk};
use crate::seen::Seen;
use crate::threads::block_on;
use crate::users::{self, by_shard, shards_of};
use crate::writes::write_with_positions;

/// The limit of writes that are not about the limit.
pub(super) const NO_LIMIT: u32 = 100_000;

/// Small, so that a case reaches each limit with a few edges.
pub(super) const SETTINGS: GraphSettings =
    GraphSettings { following_limit: 5, check_pairs_max: 10, users_max: 8, commands_max: 50, sets_max: 4 };
pub(super) const PAGE_LIMIT_MAX: usize = 20;
pub(super) const SUGGEST: SuggestionSettings = SuggestionSettings {
    results_max: 10,
    per_node: 3,
    fresh_for: Duration::from_secs(24 * 60 * 60),
    dismissed_max: 5,
};
pub(super) const FEED: FeedSettings = FeedSettings { payload_bytes_max: 40, key_bytes_max: 20 };
pub(super) const COMMENTS: CommentSettings = CommentSettings {
    body_chars_max: 30,
    depth_max: 4,
    tree_comments_max: 12,
    page_bytes_max: 1 << 20,
    key_bytes_max: 20,
};

/// A store under test.
pub(super) struct Subject<S> {
    /// Goes through the operations; reads show at least what it has written.
    pub graph: Client<S>,
    pub clock: Arc<SimulatedClock>,
    pub scope: CaseScope,
    shards: OnceLock<NonZeroU16>,
}

/// A command in a case's words: what to do, from which user, to which.
pub(super) type Command = (EdgeAction, u64, u64);

pub(super) fn follow(from: u64, to: u64) -> Command {
    (EdgeAction::Follow, from, to)
}

pub(super) fn unfollow(from: u64, to: u64) -> Command {
    (EdgeAction::Unfollow, from, to)
}

/// The keys of the graph under test.
pub(super) fn keys() -> Keyring {
    Keyring::new(SigningKey::new([7; 32]), [])
}

impl<S> Subject<S> {
    pub(super) fn new(make: StoreFactory<'_, S>, scope: CaseScope) -> Self {
        let clock = Arc::new(SimulatedClock::default());
        let store = make(scope.id_kind, Arc::<SimulatedClock>::clone(&clock));
        Self { graph: Client::new(store), clock, scope, shards: OnceLock::new() }
    }

    /// The store, whose reads show at least what the case has written.
    pub(super) fn store(&self) -> Seen<'_, S> {
        Seen::new(self.graph.store(), self.graph.seen())
    }

    /// Later reads must have seen this, too.
    pub(super) fn saw(&self, position: Position) {
        self.graph.saw(position);
    }

    /// The kind of edge that the case is about.
    pub(super) fn kind(&self) -> EdgeKind {
        self.scope.edge_kind
    }

    /// A kind of edge that the case is not about.
    pub(super) fn other_kind(&self) -> EdgeKind {
        if self.kind() == KINDS[0] { KINDS[1] } else { KINDS[0] }
    }

    pub(super) fn id(&self, number: u64) -> Id {
        users::user(self.scope.id_kind, number)
    }

    pub(super) fn ids(&self, numbers: impl IntoIterator<Item = u64>) -> Vec<Id> {
        numbers.into_iter().map(|number| self.id(number)).collect()
    }

    /// Ids at the ends of their range and at the powers of two in it, from the lowest to the highest.
    pub(super) fn extreme_ids(&self) -> Vec<Id> {
        match self.scope.id_kind {
            IdKind::Integer => {
                [0, 1, u64::from(u32::MAX), 1 << 32, (1 << 62) + 1, i64::MAX as u64 - 1, i64::MAX as u64]
                    .map(Id::Integer)
                    .to_vec()
            }
            IdKind::Uuid => {
                let top = 1 << 127;
                [0, 1, u128::from(u64::MAX), 1 << 64, top - 1, top, u128::MAX - 1, u128::MAX]
                    .map(Id::Uuid)
                    .to_vec()
            }
        }
    }

    /// An id that this deployment does not use.
    pub(super) fn foreign_id(&self) -> Id {
        match self.scope.id_kind {
            IdKind::Integer => Id::Uuid(1),
            IdKind::Uuid => Id::Integer(1),
        }
    }

    pub(super) fn edge(&self, from: u64, to: u64) -> Edge {
        users::edge(self.scope.id_kind, from, to)
    }

    pub(super) fn commands(&self, commands: &[Command]) -> Vec<EdgeCommand> {
        let command = |&(action, from, to): &_| EdgeCommand { action, edge: self.edge(from, to) };
        commands.iter().map(command).collect()
    }
}

impl<S: EdgePorts> Subject<S> {
    /// Writes commands, those of each follower whole, and returns the first refusal, or what all of them did.
    pub(super) fn try_write(
        &self,
        kind: EdgeKind,
        commands: &[EdgeCommand],
        following_limit: u32,
    ) -> Result<Receipt> {
        let (receipt, positions) = write_with_positions(self.graph.store(), kind, commands, following_limit)?;
        positions.into_iter().for_each(|position| self.saw(position));
        Ok(receipt)
    }

    /// Writes a request under a limit.
    pub(super) fn write_limited(&self, limit: u32, commands: &[Command]) -> Result<Receipt> {
        self.try_write(self.kind(), &self.commands(commands), limit)
    }

    /// Writes a request that must succeed.
    pub(super) fn write(&self, commands: &[Command]) -> Receipt {
        self.write_limited(NO_LIMIT, commands).expect("the write succeeds")
    }

    /// Writes follows and unfollows, whatever kind the case is run for. If that is another one, its edges lead the other
    /// way: they must not make any difference.
    pub(super) fn write_follows(&self, commands: &[Command]) -> Receipt {
        if self.kind() != EdgeKind::Follow {
            let back: Vec<_> = commands.iter().map(|&(action, from, to)| (action, to, from)).collect();
            self.write(&back);
        }
        self.try_write(EdgeKind::Follow, &self.commands(commands), NO_LIMIT).expect("the write succeeds")
    }

    pub(super) fn follow(&self, from: u64, to: u64) -> Receipt {
        self.write(&[follow(from, to)])
    }

    pub(super) fn unfollow(&self, from: u64, to: u64) -> Receipt {
        self.write(&[unfollow(from, to)])
    }

    /// Writes a request and keeps what the audit of threads needs.
    pub(super) fn recorded(&self, commands: &[Command]) -> Record {
        let receipt = self.write(commands);
        Record {
            kind: self.kind(),
            commands: self.commands(commands),
            outcome: Outcome::Acknowledged(receipt),
        }
    }

    /// Makes many edges, in requests of some hundred, as each may cost a sync.
    pub(super) fn follow_all(&self, edges: impl IntoIterator<Item = (u64, u64)>) {
        let commands: Vec<_> = edges.into_iter().map(|(from, to)| follow(from, to)).collect();
        for request in commands.chunks(250) {
            assert!(!self.write(request).changed.contains(&false), "every edge is new");
        }
    }

    pub(super) fn since(&self, from: u64, to: u64) -> Option<Timestamp> {
        let found = block_on(self.store().since(self.kind(), &[self.edge(from, to)])).unwrap();
        assert_eq!(found.len(), 1);
        found[0]
    }

    pub(super) fn counts(&self, of: u64) -> Counts {
        let found = block_on(self.store().counts(self.kind(), &[self.id(of)])).unwrap();
        assert_eq!(found.len(), 1);
        found[0]
    }

    pub(super) fn page(&self, side: Side, of: u64, after: Option<ListKey>, limit: usize) -> Vec<ListEntry> {
        block_on(self.store().list(self.kind(), side, self.id(of), after, limit)).unwrap()
    }

    /// A whole list, walked in pages.
    pub(super) fn walk(&self, side: Side, of: u64, page_limit: usize) -> Vec<ListEntry> {
        let walked = walk(page_limit, |after| Ok(self.page(side, of, after, page_limit)));
        walked.unwrap_or_else(|wrong| panic!("{side:?} of user {of}: {wrong}"))
    }

    pub(super) fn following(&self, of: u64) -> Vec<ListEntry> {
        self.walk(Side::Following, of, 1_000)
    }

    pub(super) fn followers(&self, of: u64) -> Vec<ListEntry> {
        self.walk(Side::Followers, of, 1_000)
    }

    pub(super) fn friends(&self, of: u64, page_limit: usize) -> Vec<ListEntry> {
        let (kind, of) = (self.kind(), self.id(of));
        let read = |after| Ok(block_on(self.store().friends(kind, of, after, page_limit)).unwrap());
        walk(page_limit, read).unwrap_or_else(|wrong| panic!("friends of {of}: {wrong}"))
    }

    /// The whole log, one shard after another.
    pub(super) fn changes(&self) -> Vec<Change> {
        by_shard(block_on(self.store().whole_log()).unwrap())
    }

    /// The newest position of every shard.
    pub(super) fn newest_frontier(&self) -> Frontier {
        block_on(self.store().span()).unwrap().newest
    }

    /// The change at a position.
    #[track_caller]
    pub(super) fn change_at(&self, position: Position) -> Change {
        let found = self.changes().into_iter().find(|change| change.position == position);
        found.unwrap_or_else(|| panic!("the log has no {position}"))
    }

    /// The log has grown by one change since `before`, which is at `position`.
    #[track_caller]
    pub(super) fn assert_one_change(&self, before: &Frontier, position: Position) {
        let next = before.get(position.shard).expect("a span names every shard").next();
        let mut expected = before.clone();
        expected.advance(next.on(position.shard));
        assert_eq!((position.sequence, self.newest_frontier()), (next, expected));
    }

    /// A repetition that returned `again` changed nothing since `before`, and `again` shows what `first` does.
    #[track_caller]
    pub(super) fn assert_repeated(&self, before: &Frontier, again: Position, first: Position) {
        assert_eq!(self.newest_frontier(), *before, "a repetition changes nothing");
        let is_shown = Frontier::from(again).covers(first) && before.covers(again);
        assert!(is_shown, "{again} does not show {first}, or is not in the log to {before}");
    }

    /// A frontier has seen the whole log, and nothing else.
    #[track_caller]
    pub(super) fn assert_newest(&self, found: &Frontier) {
        let newest = self.newest_frontier();
        assert!(newest.covers_all(found) && found.covers_all(&newest), "{found} is not {newest}");
    }

    /// How many changes there are, by the positions of all shards.
    pub(super) fn log_length(&self) -> u64 {
        self.newest_frontier().iter().map(|position| position.sequence.0).sum()
    }

    /// Before the first change of the shard of a user.
    pub(super) fn start(&self, number: u64) -> Position {
        Sequence::START.on(self.shard(number))
    }

    /// The shard of a user.
    pub(super) fn shard(&self, number: u64) -> Shard {
        Shard::of(self.id(number), *self.shards.get_or_init(|| shards_of(self.graph.store())))
    }

    /// The position of the last of some changes, which are all that the store has seen, given by their followers.
    pub(super) fn after(&self, followers: impl IntoIterator<Item = u64>) -> Position {
        let shards: Vec<Shard> = followers.into_iter().map(|number| self.shard(number)).collect();
        let last = *shards.last().expect("some change");
        Sequence(shards.iter().filter(|&&shard| shard == last).count() as u64).on(last)
    }

    /// All that the store says about users 0 to 9 and the log, to see that something changed none of it.
    pub(super) fn snapshot(&self) -> impl PartialEq + Debug + use<S> {
        let users = 0..10;
        let lists: Vec<_> =
            users.clone().map(|of| (self.following(of), self.followers(of), self.friends(of, 100))).collect();
        let counts: Vec<_> = users.map(|of| self.counts(of)).collect();
        (lists, counts, self.changes(), self.newest_frontier())
    }
}

impl<S: CheckStore> Subject<S> {
    pub(super) fn contains(&self, from: u64, to: u64) -> bool {
        let (store, edge) = (self.store(), self.edge(from, to));
        let found = block_on(store.contains(self.kind(), &[edge])).unwrap();
        assert_eq!(found.len(), 1);
        found[0]
    }
}

/// Whether an operation was refused with a code.
pub(super) fn assert_code<T: Debug>(result: Result<T>, code: ErrorCode) {
    match result {
        Err(error) => assert_eq!(error.code(), code, "{error}"),
        Ok(found) => panic!("expected {code:?}, not {found:?}"),
    }
}

/// Whether a write was refused for the limit, with the right words.
pub(super) fn assert_limit<T: Debug>(result: Result<T>, of: Id, expected: u32) {
    match result {
        Err(Error::FollowingLimit { follower, limit }) => {
            assert_eq!((follower, limit), (of.to_string(), expected));
        }
        other => panic!("a write over the limit must be refused with it, not {other:?}"),
    }
}

/// The ids of entries, in their order.
pub(super) fn ids_of(entries: &[ListEntry]) -> Vec<Id> {
    entries.iter().map(|entry| entry.id).collect()
}
