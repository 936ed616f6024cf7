//! Plans writes of posts: whether a request is a retry, which id a post gets, how it is delivered. Planning writes nothing
//! and does not know how a store reads or logs.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{Delivery, NewPost, Post, PostState, PostWritten, WriteOutcome};
use crate::graph::EdgeEvent;
use crate::{EdgeKind, Error, Id, IdGenerator, KeyHash, Planned, Position, Result, Timestamp, key_hash};

/// The maximum payload that a log supports, regardless of the deployment's settings.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// The maximum time that a post may be dated ahead of the clock.
const AHEAD_MS_MAX: u64 = 5 * 60 * 1_000;

/// The input of a plan: posts and follower counts before it.
pub trait PostView {
    /// The state of an id, if it was used.
    fn state(&self, id: Id) -> Result<Option<PostState>>;

    /// The post registered under an author's idempotency key, unless the key has expired at `now`.
    fn keyed(&self, author: Id, key: &KeyHash, now: Timestamp) -> Result<Option<Id>>;

    /// How many followers an author has, without pending events: those planned but not visible yet.
    fn followers(&self, author: Id) -> u64;

    /// The number of pending events of any kind. A follower count is off by at most that many.
    fn pending_len(&self) -> usize;

    /// The changes of edges among the pending events, oldest first, without the first `skip` events.
    fn pending_edges(&self, skip: usize) -> impl Iterator<Item = EdgeEvent>;
}

/// A planned change of a post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PostEvent {
    /// A post is registered.
    Registered(Registration),
    /// A post is deleted.
    Deleted {
        /// Its id.
        id: Id,
        /// Its author.
        author: Id,
        /// Its creation time.
        created_at: Timestamp,
    },
}

/// A registered post.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The post.
    pub post: Post,
    /// How it reaches the author's followers.
    pub delivery: Delivery,
    /// The idempotency key of its request.
    pub key: Option<KeyHash>,
    /// Whether the store generated its id.
    pub is_id_generated: bool,
}

/// The effects of planned requests on posts.
#[derive(Debug, Default)]
pub struct PlannedPosts {
    states: HashMap<Id, PostState, RandomState>,
    keys: HashMap<(Id, KeyHash), Id, RandomState>,
    /// How pending events change follower counts. Computed only when a post needs it, so that follows do not pay for it.
    follower_steps: HashMap<Id, i64, RandomState>,
    /// How many pending events are counted.
    counted: usize,
}

impl PlannedPosts {
    /// Removes everything and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.states.clear();
        self.keys.clear();
        self.follower_steps.clear();
        self.counted = 0;
    }

    fn follower_step(&mut self, view: &impl PostView, author: Id) -> i64 {
        for event in view.pending_edges(self.counted).filter(|event| event.kind == EdgeKind::Follow) {
            let step = if event.removed_since.is_none() { 1 } else { -1 };
            *self.follower_steps.entry(event.edge.followee).or_default() += step;
        }
        self.counted = view.pending_len();
        self.follower_steps.get(&author).copied().unwrap_or(0)
    }
}

/// The posts after everything that is planned.
#[derive(Clone, Copy, Debug)]
pub struct PlannedPostView<'a, V> {
    /// The posts before the plan.
    pub view: &'a V,
    /// Earlier plans that are not in the view yet.
    pub earlier: Option<&'a PlannedPosts>,
    /// The current plan.
    pub planned: &'a PlannedPosts,
}

impl<V: PostView> PlannedPostView<'_, V> {
    /// The state of an id, if it was used.
    pub fn state(&self, id: Id) -> Result<Option<PostState>> {
        let planned = self.planned.states.get(&id).or_else(|| self.earlier?.states.get(&id));
        planned.map_or_else(|| self.view.state(id), |state| Ok(Some(state.clone())))
    }

    fn keyed(&self, author: Id, key: KeyHash, now: Timestamp) -> Result<Option<Id>> {
        let key = (author, key);
        let planned = self.planned.keys.get(&key).or_else(|| self.earlier?.keys.get(&key));
        planned.map_or_else(|| self.view.keyed(author, &key.1, now), |&id| Ok(Some(id)))
    }
}

/// Plans one request about posts. A refused request has no effect.
pub struct PostPlanner<'a, V> {
    /// The posts before the plan.
    pub view: V,
    /// Earlier plans that are not in the view yet; their edges are among the view's pending events.
    pub earlier: Option<&'a PlannedPosts>,
    /// The current plan, which this request extends.
    pub planned: &'a mut PlannedPosts,
    /// Generates ids for posts without one.
    pub ids: &'a mut dyn IdGenerator,
    /// Posts of authors with at least this many followers are pulled.
    pub fan_out_threshold: u64,
    /// The clock's time.
    pub now: Timestamp,
    /// The time of the next event.
    pub floor: Timestamp,
    /// The position of the last planned event.
    pub last: Position,
}

impl<V: PostView> PostPlanner<'_, V> {
    /// Plans to register a post.
    pub fn register(mut self, request: NewPost) -> Result<Planned<PostWritten, PostEvent>> {
        if request.payload.as_ref().is_some_and(|payload| payload.len() > PAYLOAD_BYTES_MAX) {
            return Err(Error::PayloadTooLarge { max: PAYLOAD_BYTES_MAX });
        }
        let key = request.idempotency_key.as_deref().map(key_hash);
        if let Some(post) = self.repeated(&request, key)? {
            return Ok(Planned::no_change(PostWritten { position: self.last, post, is_new: false }));
        }
        let latest = self.now.plus_millis(AHEAD_MS_MAX);
        if let Some(created_at) = request.created_at.filter(|&created_at| created_at > latest) {
            return Err(Error::PostInFuture { created_at });
        }
        let (id, is_id_generated) = match request.id {
            Some(id) => (id, false),
            None => (self.generate_id()?, true),
        };
        let NewPost { author, created_at, payload, .. } = request;
        let post = Post { id, author, created_at: created_at.unwrap_or(self.floor), payload };
        let delivery = self.delivery(author);
        self.planned.states.insert(id, PostState::Present(post.clone(), delivery));
        self.planned.keys.extend(key.map(|key| ((author, key), id)));
        let event =
            PostEvent::Registered(Registration { post: post.clone(), delivery, key, is_id_generated });
        Ok(Planned::change(PostWritten { position: self.last.next(), post, is_new: true }, event))
    }

    /// Plans to delete a post.
    pub fn delete(self, id: Id) -> Result<Planned<WriteOutcome, PostEvent>> {
        let Post { author, created_at, .. } = match self.posts().state(id)? {
            None => return Err(Error::NotFound { detail: format!("there is no post {id}") }),
            Some(PostState::Deleted { .. }) => {
                return Ok(Planned::no_change(WriteOutcome { position: self.last, changed: false }));
            }
            Some(PostState::Present(post, _)) => post,
        };
        self.planned.states.insert(id, PostState::Deleted { author });
        let event = PostEvent::Deleted { id, author, created_at };
        Ok(Planned::change(WriteOutcome { position: self.last.next(), changed: true }, event))
    }

    fn posts(&self) -> PlannedPostView<'_, V> {
        PlannedPostView { view: &self.view, earlier: self.earlier, planned: self.planned }
    }

    /// The post that an equal earlier request has registered, if any.
    fn repeated(&self, request: &NewPost, key: Option<KeyHash>) -> Result<Option<Post>> {
        let posts = self.posts();
        let by_key = key.map_or(Ok(None), |key| posts.keyed(request.author, key, self.floor))?;
        let by_id = request.id.map_or(Ok(None), |id| posts.state(id))?;
        let found = match (by_id, by_key) {
            (Some(state), _) => request.id.map(|id| (id, state)),
            (None, Some(id)) => posts.state(id)?.map(|state| (id, state)),
            (None, None) => None,
        };
        let Some((id, state)) = found else { return Ok(None) };
        let PostState::Present(post, _) = state else {
            return Err(Error::PostDeleted { id: id.to_string() });
        };
        let same = request.author == post.author
            && request.payload == post.payload
            && request.created_at.is_none_or(|created_at| created_at == post.created_at)
            && request.id.is_none_or(|requested| requested == id)
            && by_key.is_none_or(|keyed| keyed == id);
        if same { Ok(Some(post)) } else { Err(Error::PostConflict { id: id.to_string() }) }
    }

    fn generate_id(&mut self) -> Result<Id> {
        let posts = PlannedPostView { view: &self.view, earlier: self.earlier, planned: self.planned };
        self.ids.next_id(self.floor, &|id| Ok(posts.state(id)?.is_none()))
    }

    /// How a new post of an author is delivered.
    fn delivery(&mut self, author: Id) -> Delivery {
        let threshold = self.fan_out_threshold;
        let visible = self.view.followers(author);
        let mut followers = visible;
        if visible.abs_diff(threshold) <= self.view.pending_len() as u64 {
            followers = visible.saturating_add_signed(self.planned.follower_step(&self.view, author));
        }
        if followers >= threshold { Delivery::Pull } else { Delivery::Push }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::graph::Edge;
    use crate::{Sequence, Shard};

    const AUTHOR: Id = Id::Integer(1);

    /// What the clock shows.
    fn now() -> Timestamp {
        Timestamp::from_millis(1_000)
    }

    /// Posts in memory, with edges of the author that are visible and that are on their way.
    #[derive(Default)]
    struct Posts {
        states: BTreeMap<Id, PostState>,
        keys: BTreeMap<(Id, KeyHash), Id>,
        followers: u64,
        unseen: Vec<Option<EdgeEvent>>,
    }

    impl PostView for &Posts {
        fn state(&self, id: Id) -> Result<Option<PostState>> {
            Ok(self.states.get(&id).cloned())
        }

        fn keyed(&self, author: Id, key: &KeyHash, _: Timestamp) -> Result<Option<Id>> {
            Ok(self.keys.get(&(author, *key)).copied())
        }

        fn followers(&self, _: Id) -> u64 {
            self.followers
        }

        fn pending_len(&self) -> usize {
            self.unseen.len()
        }

        fn pending_edges(&self, skip: usize) -> impl Iterator<Item = EdgeEvent> {
            self.unseen.iter().skip(skip).copied().flatten()
        }
    }

    /// Counts up.
    struct Ids(u64);

    impl IdGenerator for Ids {
        fn next_id(&mut self, _: Timestamp, is_free: &dyn Fn(Id) -> Result<bool>) -> Result<Id> {
            let mut next = self.0 + 1;
            while !is_free(Id::Integer(next))? {
                next += 1;
            }
            self.0 = next;
            Ok(Id::Integer(next))
        }
    }

    struct Scene {
        view: Posts,
        earlier: PlannedPosts,
        planned: PlannedPosts,
        ids: Ids,
        events: Vec<PostEvent>,
    }

    impl Scene {
        fn new() -> Self {
            let (earlier, planned) = (PlannedPosts::default(), PlannedPosts::default());
            Self { view: Posts::default(), earlier, planned, ids: Ids(100), events: Vec::new() }
        }

        fn planner(&mut self) -> PostPlanner<'_, &Posts> {
            PostPlanner {
                view: &self.view,
                earlier: Some(&self.earlier),
                planned: &mut self.planned,
                ids: &mut self.ids,
                fan_out_threshold: 3,
                now: now(),
                floor: now().plus_millis(7),
                last: Sequence(self.events.len() as u64).on(Shard(2)),
            }
        }

        fn register(&mut self, post: NewPost) -> Result<PostWritten> {
            let Planned { result: posted, event } = self.planner().register(post)?;
            assert_eq!(event.is_some(), posted.is_new);
            self.note(event, posted.position);
            Ok(posted)
        }

        fn delete(&mut self, id: Id) -> Result<bool> {
            let Planned { result: removed, event } = self.planner().delete(id)?;
            assert_eq!(event.is_some(), removed.changed);
            self.note(event, removed.position);
            Ok(removed.changed)
        }

        fn note(&mut self, event: Option<PostEvent>, position: Position) {
            self.view.unseen.extend(event.iter().map(|_| None));
            self.events.extend(event);
            assert_eq!(position, Sequence(self.events.len() as u64).on(Shard(2)));
        }

        /// An edge is planned.
        fn change(&mut self, kind: EdgeKind, follower: u64, removed_since: Option<Timestamp>) {
            let edge = Edge { follower: Id::Integer(follower), followee: AUTHOR };
            self.view.unseen.push(Some(EdgeEvent { kind, edge, at: now(), removed_since }));
        }

        fn delivery(&mut self) -> Delivery {
            self.register(post()).unwrap();
            match self.events.last() {
                Some(PostEvent::Registered(registration)) => registration.delivery,
                other => panic!("{other:?}"),
            }
        }

        /// What was planned so far is on its way, and not in the view yet.
        fn next_batch(&mut self) {
            self.earlier = std::mem::take(&mut self.planned);
        }
    }

    fn post() -> NewPost {
        NewPost { id: None, author: AUTHOR, created_at: None, payload: None, idempotency_key: None }
    }

    fn with_id(id: u64) -> NewPost {
        NewPost { id: Some(Id::Integer(id)), ..post() }
    }

    fn keyed(key: &str) -> NewPost {
        NewPost { idempotency_key: Some(key.into()), payload: Some(Arc::from(key)), ..post() }
    }

    #[test]
    fn a_repeated_request_gets_the_first_post() {
        let mut scene = Scene::new();
        let requests = [with_id(5), keyed("k"), NewPost { id: Some(Id::Integer(6)), ..keyed("both") }];
        let first = requests.clone().map(|request| scene.register(request).unwrap().post);
        assert_eq!(first.each_ref().map(|post| post.id), [5, 101, 6].map(Id::Integer));
        assert!(first.iter().all(|post| post.created_at == now().plus_millis(7)));
        for _ in 0..2 {
            for (request, first) in requests.iter().zip(&first) {
                let again = scene.register(request.clone()).unwrap();
                assert_eq!((&again.post, again.is_new), (first, false));
            }
            scene.next_batch();
        }
        scene.earlier.clear();
        let state = PostState::Present(first[1].clone(), Delivery::Push);
        scene.view.states.insert(first[1].id, state);
        scene.view.keys.insert((AUTHOR, key_hash("k")), first[1].id);
        assert_eq!(scene.register(keyed("k")).unwrap().post, first[1], "by what is stored");
        assert_eq!(scene.events.len(), 3);
        assert!(scene.register(NewPost { author: Id::Integer(2), ..keyed("k") }).unwrap().is_new);
    }

    #[test]
    fn a_request_that_differs_is_a_conflict_and_leaves_nothing_behind() {
        let mut scene = Scene::new();
        scene.register(with_id(5)).unwrap();
        scene.register(keyed("k")).unwrap();
        let too_large = Some(Arc::from("x".repeat(PAYLOAD_BYTES_MAX + 1)));
        let ahead = |by| Some(now().plus_millis(AHEAD_MS_MAX + by));
        for refused in [
            NewPost { author: Id::Integer(2), ..with_id(5) },
            NewPost { payload: Some("{}".into()), ..with_id(5) },
            NewPost { created_at: Some(now()), ..with_id(5) },
            NewPost { id: Some(Id::Integer(5)), payload: None, ..keyed("k") },
            NewPost { id: Some(Id::Integer(9)), ..keyed("k") },
            NewPost { payload: None, ..keyed("k") },
        ] {
            assert!(matches!(scene.register(refused), Err(Error::PostConflict { .. })));
        }
        let refused = NewPost { payload: too_large, ..keyed("new") };
        assert!(matches!(scene.register(refused), Err(Error::PayloadTooLarge { .. })));
        let refused = NewPost { created_at: ahead(1), ..keyed("new") };
        assert!(matches!(scene.register(refused), Err(Error::PostInFuture { .. })));
        assert_eq!((scene.events.len(), scene.ids.0), (2, 101));
        let accepted = NewPost { created_at: ahead(0), ..keyed("new") };
        assert_eq!(scene.register(accepted).unwrap().post.id, Id::Integer(102), "as if it had not been");
        assert!(scene.register(with_id(9)).unwrap().is_new);
    }

    #[test]
    fn the_id_of_a_deleted_post_is_not_used_again() {
        let mut scene = Scene::new();
        scene.view.states.insert(Id::Integer(102), PostState::Deleted { author: AUTHOR });
        let id = scene.register(keyed("k")).unwrap().post.id;
        assert!(matches!(scene.delete(Id::Integer(7)), Err(Error::NotFound { .. })));
        assert!(scene.delete(id).unwrap());
        let created_at = now().plus_millis(7);
        assert_eq!(scene.events[1], PostEvent::Deleted { id, author: AUTHOR, created_at });
        for _ in 0..2 {
            assert!(!scene.delete(id).unwrap());
            assert!(matches!(scene.register(with_id(101)), Err(Error::PostDeleted { .. })));
            assert!(matches!(scene.register(keyed("k")), Err(Error::PostDeleted { .. })));
            scene.next_batch();
        }
        assert_eq!(scene.register(post()).unwrap().post.id, Id::Integer(103), "102 is taken");
    }

    #[test]
    fn delivery_counts_edges_that_are_on_their_way() {
        let mut scene = Scene::new();
        scene.view.followers = 2;
        assert_eq!(scene.delivery(), Delivery::Push);
        scene.change(EdgeKind::Follow, 8, None);
        assert_eq!(scene.delivery(), Delivery::Pull);
        assert_eq!(scene.delivery(), Delivery::Pull, "each event counts once");
        scene.next_batch();
        scene.change(EdgeKind::Follow, 8, Some(now()));
        assert_eq!(scene.delivery(), Delivery::Push);
        assert_eq!(scene.delivery(), Delivery::Push);
        let other = EdgeKind::ALL.into_iter().find(|&kind| kind != EdgeKind::Follow).unwrap();
        scene.change(other, 8, None);
        assert_eq!(scene.delivery(), Delivery::Push, "only follows count");
        scene.view.followers = 3;
        assert_eq!(scene.delivery(), Delivery::Pull, "at the threshold");
        scene.change(EdgeKind::Follow, 9, Some(now()));
        assert_eq!(scene.delivery(), Delivery::Push);
    }
}
