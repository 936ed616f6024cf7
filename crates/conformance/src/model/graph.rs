//! The reference model: what a store must answer, written so plainly that it is right by reading it. Slow, and
//! without threads: [`crate::ModelStore`] puts it behind the ports.

use std::collections::BTreeMap;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::{
    Counts, Edge, EdgeAction, FollowerCommand, ListEntry, ListKey, Overlap, Receipt, Side, UserSet,
    WriteRequest,
};
use kinfolk_core::{EdgeKind, Error, Frontier, Id, Position, Result, Sequence, Shard, Timestamp};

use crate::model::comments::Threads;
use crate::model::posts::Registered;
use crate::users::START;

/// A graph in memory, and the posts and comments of its users.
///
/// # Time
/// Every change gets `at = max(clock, floor)`, and a follow's `since` is its `at`. The floor is the newest
/// `at`, or the removed edge's `since` + 1 ms after an unfollow if that is later. It depends on the newest
/// change alone, so that a store finds it again in its log after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    pub(crate) edges: BTreeMap<(EdgeKind, Edge), Timestamp>,
    pub(crate) posts: BTreeMap<Id, Registered>,
    pub(crate) threads: Threads,
    pub(crate) changes: Vec<Change>,
    pub(crate) position: Position,
    /// The newest position of every shard that it has heard of.
    pub(crate) seen: Frontier,
    pub(crate) floor: Timestamp,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            edges: BTreeMap::new(),
            posts: BTreeMap::new(),
            threads: Threads::default(),
            changes: Vec::new(),
            position: START,
            seen: Frontier::default(),
            floor: Timestamp::default(),
        }
    }
}

impl Model {
    /// An empty graph whose changes are those of one shard.
    pub fn of_shard(shard: Shard) -> Self {
        Self { position: Sequence::START.on(shard), ..Self::default() }
    }

    /// The graph that a whole change log describes, in any order of its shards.
    pub fn replay(changes: impl IntoIterator<Item = Change>) -> Self {
        let mut model = Self::default();
        changes.into_iter().for_each(|change| model.apply(change));
        model
    }

    /// Applies a request when the clock shows `now`.
    pub fn write(&mut self, request: &WriteRequest, now: Timestamp) -> Result<Receipt> {
        // On a copy, so that a refusal leaves nothing behind.
        let mut after = self.clone();
        let changed: Result<Vec<bool>> =
            request.commands.iter().map(|&command| after.command(request, command, now)).collect();
        let changed = changed?;
        *self = after;
        Ok(Receipt { position: self.position, changed: changed.into() })
    }

    fn command(&mut self, request: &WriteRequest, command: FollowerCommand, now: Timestamp) -> Result<bool> {
        let WriteRequest { kind, follower, following_limit, .. } = *request;
        let edge = Edge { follower, followee: command.followee };
        match (command.action, self.since(kind, edge)) {
            (EdgeAction::Follow, Some(_)) | (EdgeAction::Unfollow, None) => Ok(false),
            (EdgeAction::Follow, None) => {
                if self.counts(kind, edge.follower).following >= u64::from(following_limit) {
                    return Err(limit_reached(edge.follower, following_limit));
                }
                self.record(now, ChangeBody::Followed { kind, edge });
                Ok(true)
            }
            (EdgeAction::Unfollow, Some(since)) => {
                self.record(now, ChangeBody::Unfollowed { kind, edge, since });
                Ok(true)
            }
        }
    }

    pub(crate) fn record(&mut self, now: Timestamp, body: ChangeBody) {
        self.apply(Change { position: self.position.next(), at: now.max(self.floor), body });
    }

    /// Applies a change that is known to have happened.
    pub fn apply(&mut self, change: Change) {
        self.floor = self.floor.max(change.at);
        match change.body.clone() {
            ChangeBody::Followed { kind, edge } => {
                self.edges.insert((kind, edge), change.at);
            }
            ChangeBody::Unfollowed { kind, edge, since } => {
                self.edges.remove(&(kind, edge));
                self.floor = self.floor.max(since.plus_millis(1));
            }
            ChangeBody::Posted { post, delivery } => {
                self.posts.insert(post.id, Registered { post, delivery, deleted: false });
            }
            ChangeBody::PostDeleted { id, .. } => {
                self.posts.entry(id).and_modify(|registered| registered.deleted = true);
            }
            ChangeBody::Comment(reported) => self.threads.apply(change.at, reported),
            ChangeBody::Imported { .. } => panic!("the model cannot follow an import: it names no edges"),
        }
        self.position = change.position;
        self.seen.advance(change.position);
        self.changes.push(change);
    }

    /// Applies requests when the clock shows `now`, each by itself.
    pub fn write_all(&mut self, requests: &[WriteRequest], now: Timestamp) -> Vec<Result<Receipt>> {
        requests.iter().map(|request| self.write(request, now)).collect()
    }

    /// What a reader has seen who has seen everything.
    pub fn frontier(&self) -> Frontier {
        let mut frontier = self.seen.clone();
        frontier.advance(self.position);
        frontier
    }

    /// The newest position.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Whether an edge exists.
    pub fn contains(&self, kind: EdgeKind, edge: Edge) -> bool {
        self.since(kind, edge).is_some()
    }

    /// Since when an edge exists, if it does.
    pub fn since(&self, kind: EdgeKind, edge: Edge) -> Option<Timestamp> {
        self.edges.get(&(kind, edge)).copied()
    }

    /// Up to `limit` entries of a list, strictly after `after`.
    pub fn list(
        &self,
        kind: EdgeKind,
        side: Side,
        of: Id,
        after: Option<ListKey>,
        limit: usize,
    ) -> Vec<ListEntry> {
        page(self.whole_list(kind, side, of), after, limit)
    }

    /// Up to `limit` of those who follow `of` and are followed by it, by when they followed `of`.
    pub fn friends(&self, kind: EdgeKind, of: Id, after: Option<ListKey>, limit: usize) -> Vec<ListEntry> {
        let mut friends = self.whole_list(kind, Side::Followers, of);
        friends.retain(|entry| self.contains(kind, Edge { follower: of, followee: entry.id }));
        page(friends, after, limit)
    }

    /// A user's list, from its beginning to its end.
    pub(crate) fn whole_list(&self, kind: EdgeKind, side: Side, of: Id) -> Vec<ListEntry> {
        let entry = |(edge, since): (Edge, Timestamp)| match side {
            Side::Following => ListEntry { since, id: edge.followee },
            Side::Followers => ListEntry { since, id: edge.follower },
        };
        let mut entries: Vec<ListEntry> = self.edges_of(kind, side, of).map(entry).collect();
        entries.sort();
        entries
    }

    /// All edges on one side of a user.
    fn edges_of(&self, kind: EdgeKind, side: Side, of: Id) -> impl Iterator<Item = (Edge, Timestamp)> {
        // Edges are sorted by follower, and no id is lower than this one.
        let lowest = match side {
            Side::Following => Edge { follower: of, followee: Id::Integer(0) },
            Side::Followers => Edge { follower: Id::Integer(0), followee: Id::Integer(0) },
        };
        self.edges
            .range((kind, lowest)..)
            .map(|(&(edge_kind, edge), &since)| (edge_kind, edge, since))
            .take_while(move |&(edge_kind, edge, _)| {
                edge_kind == kind && (side == Side::Followers || edge.follower == of)
            })
            .filter(move |&(_, edge, _)| side == Side::Following || edge.followee == of)
            .map(|(_, edge, since)| (edge, since))
    }

    /// Those who are in all of the sets, by id.
    pub fn overlap(&self, kind: EdgeKind, sets: &[UserSet], after: Option<Id>, limit: usize) -> Overlap {
        let Some(first) = sets.first() else { return Overlap::default() };
        let mut all: Vec<Id> =
            self.whole_list(kind, first.side, first.of).iter().map(|entry| entry.id).collect();
        all.retain(|&id| sets.iter().all(|set| self.contains(kind, set.edge(id))));
        all.sort_unstable();
        let count = all.len() as u64;
        let ids = all.into_iter().filter(|&id| after.is_none_or(|after| id > after)).take(limit).collect();
        Overlap { count, ids }
    }

    /// How many edges a user has on each side.
    pub fn counts(&self, kind: EdgeKind, of: Id) -> Counts {
        let count = |side| self.edges_of(kind, side, of).count() as u64;
        Counts { following: count(Side::Following), followers: count(Side::Followers) }
    }

    /// Up to `limit` changes after `after`, oldest first.
    pub fn changes(&self, after: Position, limit: usize) -> Vec<Change> {
        let wanted = self.changes.iter().filter(|change| change.position > after).take(limit);
        wanted.map(|change| self.reported(change)).collect()
    }

    /// The whole log, of all shards.
    pub(crate) fn log(&self) -> Vec<Change> {
        self.changes.iter().map(|change| self.reported(change)).collect()
    }

    /// A change as the log shows it now.
    fn reported(&self, change: &Change) -> Change {
        self.told_of_post(self.threads.reported(change))
    }
}

pub(crate) fn limit_reached(follower: Id, limit: u32) -> Error {
    Error::FollowingLimit { follower: follower.to_string(), limit }
}

/// The page of a sorted list that begins after a key.
fn page(list: Vec<ListEntry>, after: Option<ListKey>, limit: usize) -> Vec<ListEntry> {
    list.into_iter().filter(|entry| after.is_none_or(|after| *entry > after)).take(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Id = Id::Integer(1);
    const B: Id = Id::Integer(2);
    const C: Id = Id::Integer(3);

    fn write(model: &mut Model, action: EdgeAction, edge: (Id, Id), now: u64) -> Result<Receipt> {
        let commands = vec![FollowerCommand { action, followee: edge.1 }];
        let request = WriteRequest {
            kind: EdgeKind::Follow,
            follower: edge.0,
            commands: commands.into(),
            following_limit: 1,
        };
        model.write(&request, Timestamp::from_millis(now))
    }

    #[test]
    fn a_short_history() {
        let mut model = Model::default();
        let receipt = write(&mut model, EdgeAction::Follow, (A, B), 10).unwrap();
        assert_eq!(receipt, Receipt { position: START.next(), changed: vec![true].into() });
        assert_eq!(write(&mut model, EdgeAction::Follow, (A, B), 11).unwrap().changed[..], [false]);
        assert!(matches!(
            write(&mut model, EdgeAction::Follow, (A, C), 11),
            Err(Error::FollowingLimit { limit: 1, .. })
        ));
        write(&mut model, EdgeAction::Unfollow, (A, B), 9).unwrap();
        write(&mut model, EdgeAction::Follow, (A, B), 9).unwrap();
        let since = Timestamp::from_millis(11);
        assert_eq!(model.since(EdgeKind::Follow, Edge { follower: A, followee: B }), Some(since));
        assert_eq!(model.list(EdgeKind::Follow, Side::Followers, B, None, 9), [ListKey { since, id: A }]);
        assert_eq!(model.counts(EdgeKind::Follow, B), Counts { following: 0, followers: 1 });
        assert_eq!(Model::replay(model.changes(START, 9)), model);
    }
}
