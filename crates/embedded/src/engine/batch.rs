//! What a batch of requests changes, decided one after another before anything is written. Nothing is written here.

use kinfolk_core::comments::PlannedComments;
use kinfolk_core::feeds::PlannedPosts;
use kinfolk_core::graph::{Edge, EdgeEvent, EdgePlanner, EdgeView, PlannedEdges, Receipt, WriteRequest};
use kinfolk_core::{EdgeKind, Error, Position, Result, Sequence, Shard, Timestamp};

use crate::engine::id_generator::IdGenerators;
use crate::engine::store::Store;
use crate::log::{Event, EventBody};

/// The most commands that are submitted together: a frame must stay readable in one piece.
const COMMANDS_MAX: usize = 100_000;

/// Where the store after a batch differs from what is visible.
#[derive(Default)]
pub(crate) struct Pending {
    edges: PlannedEdges,
    pub posts: PlannedPosts,
    pub comments: PlannedComments,
}

impl Pending {
    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.edges.clear();
        self.posts.clear();
        self.comments.clear();
    }
}

/// What a batch changes.
pub(crate) struct Decided {
    pub events: Vec<Event>,
    pub pending: Pending,
}

/// Decides what requests change, one after another, before anything is written.
pub(crate) struct Batch<'a> {
    pub store: &'a Store,
    /// What the batch before this one changes, where it is not visible yet.
    pub earlier: Option<&'a Decided>,
    pub pending: Pending,
    /// Makes ids for posts and comments.
    pub ids: &'a mut IdGenerators,
    /// What the clock shows.
    pub now: Timestamp,
    /// The time of the next event.
    pub floor: Timestamp,
    /// The position of its first event.
    pub first: Sequence,
    pub events: Vec<Event>,
    /// What the request at hand changes; empty between requests.
    pub edge_events: Vec<EdgeEvent>,
}

impl EdgeView for Store {
    fn examine(&self, kind: EdgeKind, edge: Edge) -> (bool, u64) {
        self.edges.index.of(kind).examine(edge)
    }

    fn since(&self, kind: EdgeKind, edge: Edge) -> Result<Timestamp> {
        self.edges.stored_since(kind, edge)
    }
}

impl Batch<'_> {
    /// Decides requests about edges, each by itself.
    pub(crate) fn decide_all(&mut self, requests: &[WriteRequest]) -> Vec<Result<Receipt>> {
        let given = requests.iter().map(|request| request.commands.len()).sum();
        if given > COMMANDS_MAX {
            return vec![
                Err(Error::TooMany { what: "commands", count: given, max: COMMANDS_MAX });
                requests.len()
            ];
        }
        requests.iter().map(|request| self.decide(request)).collect()
    }

    /// Decides a request about edges.
    pub(crate) fn decide(&mut self, request: &WriteRequest) -> Result<Receipt> {
        let mut planner = EdgePlanner {
            view: self.store,
            earlier: self.earlier.map(|earlier| &earlier.pending.edges),
            planned: &mut self.pending.edges,
            floor: &mut self.floor,
        };
        let changed = planner.plan(request, &mut self.edge_events)?;
        let first = self.next().0;
        let events = self.edge_events.drain(..).zip(first..).map(|(event, sequence)| Event {
            position: Sequence(sequence),
            at: event.at,
            kind: event.kind,
            body: match event.removed_since {
                None => EventBody::Followed(event.edge),
                Some(since) => EventBody::Unfollowed(event.edge, since),
            },
        });
        self.events.extend(events);
        Ok(Receipt { position: self.position(), changed })
    }

    /// The position after everything that was decided so far.
    pub(crate) fn position(&self) -> Position {
        Sequence(self.next().0 - 1).on(Shard::ONLY)
    }

    /// The sequence of the next event.
    fn next(&self) -> Sequence {
        Sequence(self.first.0 + self.events.len() as u64)
    }

    /// Adds an event that is about no edge, if there is one.
    pub(crate) fn extend(&mut self, body: Option<EventBody>) {
        let (position, at, kind) = (self.next(), self.floor, EdgeKind::Follow);
        self.events.extend(body.map(|body| Event { position, at, kind, body }));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kinfolk_core::comments::{NewComment, Parent};
    use kinfolk_core::feeds::{Delivery, NewPost};
    use kinfolk_core::graph::{EdgeAction, FollowerCommand};
    use kinfolk_core::{Id, IdKind};

    use super::*;
    use crate::{Embedded, Settings};

    const AUTHOR: Id = Id::Integer(1);
    const NOW: Timestamp = Timestamp::MIN;

    fn batch<'a>(
        store: &'a Store,
        earlier: Option<&'a Decided>,
        ids: &'a mut IdGenerators,
        first: u64,
    ) -> Batch<'a> {
        let (pending, events, edge_events) = (Pending::default(), Vec::new(), Vec::new());
        let first = Sequence(first);
        Batch { store, earlier, pending, ids, now: NOW, floor: NOW, first, events, edge_events }
    }

    fn post(key: &str) -> NewPost {
        let idempotency_key = Some(Arc::from(key));
        NewPost { id: None, author: AUTHOR, created_at: None, payload: None, idempotency_key }
    }

    fn comment(id: Id) -> NewComment {
        let (parent, body) = (Parent::post(id), Arc::from("hi"));
        let (reply_to, idempotency_key) = (None, Some(Arc::from("k")));
        NewComment { parent, author: AUTHOR, body, reply_to, idempotency_key, depth_max: 9 }
    }

    fn change(batch: &mut Batch<'_>, action: EdgeAction, follower: u64) {
        let (follower, commands) =
            (Id::Integer(follower), vec![FollowerCommand { action, followee: AUTHOR }]);
        batch
            .decide(&WriteRequest {
                kind: EdgeKind::Follow,
                follower,
                commands: commands.into(),
                following_limit: 9,
            })
            .unwrap();
    }

    fn delivery(batch: &mut Batch<'_>, key: &str) -> Delivery {
        assert!(batch.plan_post(|planner| planner.register(post(key))).unwrap().is_new);
        match batch.events.last().map(|event| &event.body) {
            Some(EventBody::Posted(registration)) => registration.delivery,
            other => panic!("{other:?}"),
        }
    }

    /// A batch is decided before the one ahead of it is visible: it must know of it, and of its own beginning.
    #[test]
    fn what_is_not_visible_yet_counts() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { fan_out_threshold: 2, ..Settings::default() };
        let store = Embedded::create(folder.path(), IdKind::Integer, settings).unwrap();
        let mut ids = IdGenerators::new(IdKind::Integer, None, None);
        let store = &*store.store;
        let mut first = batch(store, None, &mut ids, 1);
        change(&mut first, EdgeAction::Follow, 2);
        assert_eq!(delivery(&mut first, "a"), Delivery::Push);
        change(&mut first, EdgeAction::Follow, 3);
        assert_eq!(delivery(&mut first, "b"), Delivery::Pull);
        let a = first.plan_post(|planner| planner.register(post("a"))).unwrap();
        assert!(!a.is_new);
        let b = first.plan_post(|planner| planner.register(post("b"))).unwrap().post.id;
        assert!(b > a.post.id && first.plan_post(|planner| planner.delete(b)).unwrap().changed);
        assert!(matches!(
            first.plan_post(|planner| planner.register(post("b"))),
            Err(Error::PostDeleted { .. })
        ));
        let earlier = Decided { events: first.events, pending: first.pending };

        let mut second = batch(store, Some(&earlier), &mut ids, 6);
        assert_eq!(second.plan_post(|planner| planner.register(post("a"))).unwrap().post, a.post);
        assert!(!second.plan_post(|planner| planner.delete(b)).unwrap().changed);
        assert!(matches!(
            second.plan_post(|planner| planner.register(post("b"))),
            Err(Error::PostDeleted { .. })
        ));
        assert_eq!(delivery(&mut second, "c"), Delivery::Pull);
        change(&mut second, EdgeAction::Unfollow, 2);
        assert_eq!(delivery(&mut second, "d"), Delivery::Push);
        assert!(matches!(
            second.plan_comment(|planner| planner.write(comment(b))),
            Err(Error::NotFound { .. })
        ));
        let written = second.plan_comment(|planner| planner.write(comment(a.post.id))).unwrap();
        assert_eq!(
            second.plan_comment(|planner| planner.write(comment(a.post.id))).unwrap().comment,
            written.comment
        );
        assert!(second.plan_comment(|planner| planner.lock(written.comment.parent, true)).unwrap().changed);
        let positions: Vec<_> = second.events.iter().map(|event| event.position.0).collect();
        assert_eq!(positions, [6, 7, 8, 9, 10]);
        assert_eq!(second.position(), Sequence(10).on(Shard::ONLY));
    }
}
