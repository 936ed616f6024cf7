//! Posts and feeds by brute force: a feed is all posts of all followees, sorted. Like [`Model`], so plain that it is
//! right by reading it; inboxes and deliveries are what it does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kinfolk_core::changes::Change;
use kinfolk_core::changes::ChangeBody;
use kinfolk_core::feeds::{Delivery, NewPost, Post, PostKey, PostState, PostWritten, WriteOutcome};
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Error, Id, IdKind, Result, Timestamp};

use crate::model::Model;

/// An author with so many followers has its posts pulled. Small, so that tests cross it with a few follows.
pub const FAN_OUT_THRESHOLD: u64 = 3;

/// How far ahead of the clock a post may be made.
pub(crate) const AHEAD_MS_MAX: u64 = 5 * 60 * 1_000;

/// A post that was registered once, deleted or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Registered {
    pub post: Post,
    pub delivery: Delivery,
    pub deleted: bool,
}

/// What a store keeps of requests that is not in its public log.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestState {
    /// Which post was first registered under an author's key.
    pub keys: BTreeMap<(Id, Arc<str>), Id>,
    /// The newest id that the store made.
    pub generated: Option<Id>,
}

impl RequestState {
    /// Which post an author's key stands for.
    pub(crate) fn post_of(&self, request: &NewPost) -> Option<Id> {
        let key = request.idempotency_key.clone()?;
        self.keys.get(&(request.author, key)).copied()
    }

    /// Remembers a request that was fulfilled with a post.
    pub(crate) fn remember(&mut self, request: &NewPost, id: Id) {
        if let Some(key) = request.idempotency_key.clone() {
            self.keys.entry((request.author, key)).or_insert(id);
        }
        if request.id.is_none() {
            self.generated = self.generated.max(Some(id));
        }
    }

    /// An id that is higher than all that were made before, and in the order of time where the clock goes forward.
    pub(crate) fn generate_id(&self, model: &Model, kind: IdKind, now: Timestamp) -> Id {
        let mut id = match kind {
            IdKind::Integer => Id::Integer(now.millis() << 15),
            IdKind::Uuid => Id::Uuid(u128::from(now.millis()) << 80 | 7 << 76 | 2 << 62),
        };
        id = self.generated.map_or(id, |generated| id.max(higher(generated, 1)));
        while model.posts.contains_key(&id) {
            id = higher(id, 1);
        }
        id
    }
}

/// The id that is so much higher.
pub(crate) fn higher(id: Id, by: u64) -> Id {
    match id {
        Id::Integer(value) => Id::Integer(value + by),
        Id::Uuid(value) => Id::Uuid(value + u128::from(by)),
    }
}

impl Model {
    /// Registers a post when the clock shows `now`; it gets the id `made` if the request names none.
    pub(crate) fn register(
        &mut self,
        request_state: &mut RequestState,
        request: &NewPost,
        generated: Id,
        now: Timestamp,
    ) -> Result<PostWritten> {
        if let Some(post) = self.repeated(request_state, request)? {
            return Ok(PostWritten { position: self.position, post, is_new: false });
        }
        if let Some(input) = request.created_at.filter(|&input| input > now.plus_millis(AHEAD_MS_MAX)) {
            return Err(Error::PostInFuture { created_at: input });
        }
        Ok(self.insert(request_state, request, generated, now))
    }

    /// Makes the post of a request that nothing speaks against.
    pub(crate) fn insert(
        &mut self,
        request_state: &mut RequestState,
        request: &NewPost,
        generated: Id,
        now: Timestamp,
    ) -> PostWritten {
        let post = Post {
            id: request.id.unwrap_or(generated),
            author: request.author,
            created_at: request.created_at.unwrap_or(now.max(self.floor)),
            payload: request.payload.clone(),
        };
        let delivery = self.delivery_by(request.author);
        self.record(now, ChangeBody::Posted { post: post.clone(), delivery });
        request_state.remember(request, post.id);
        PostWritten { position: self.position, post, is_new: true }
    }

    /// The post that an equal request has made before, if there was one.
    pub(crate) fn repeated(&self, request_state: &RequestState, request: &NewPost) -> Result<Option<Post>> {
        let by_key = request_state.post_of(request);
        let by_id = request.id.filter(|id| self.posts.contains_key(id));
        let Some(id) = by_id.or(by_key) else { return Ok(None) };
        let Registered { post, deleted, .. } = &self.posts[&id];
        if *deleted {
            return Err(Error::PostDeleted { id: id.to_string() });
        }
        let same = request.author == post.author
            && request.payload == post.payload
            && request.created_at.is_none_or(|input| input == post.created_at)
            && request.id.is_none_or(|input| input == id)
            && by_key.is_none_or(|keyed| keyed == id);
        if same { Ok(Some(post.clone())) } else { Err(Error::PostConflict { id: id.to_string() }) }
    }

    /// How a post of an author is delivered that is registered now.
    pub(crate) fn delivery_by(&self, author: Id) -> Delivery {
        let followers = self.counts(EdgeKind::Follow, author).followers;
        if followers >= FAN_OUT_THRESHOLD { Delivery::Pull } else { Delivery::Push }
    }

    /// Deletes a post when the clock shows `now`.
    pub fn delete_post(&mut self, id: Id, now: Timestamp) -> Result<WriteOutcome> {
        let Some(Registered { post, deleted, .. }) = self.posts.get(&id) else {
            return Err(Error::NotFound { detail: format!("there is no post {id}") });
        };
        let changed = !deleted;
        if changed {
            let Post { author, created_at, .. } = *post;
            self.record(now, ChangeBody::PostDeleted { id, author, created_at });
        }
        Ok(WriteOutcome { position: self.position, changed })
    }

    /// What is known of a post's id.
    pub fn post(&self, id: Id) -> Option<PostState> {
        let Registered { post, delivery, deleted } = self.posts.get(&id)?;
        Some(match deleted {
            true => PostState::Deleted { author: post.author },
            false => PostState::Present(post.clone(), *delivery),
        })
    }

    /// An event as the log shows it now: with the payload of a post only while the post exists.
    pub(crate) fn told_of_post(&self, mut change: Change) -> Change {
        if let ChangeBody::Posted { post, .. } = &mut change.body
            && self.posts.get(&post.id).is_some_and(|registered| registered.deleted)
        {
            post.payload = None;
        }
        change
    }

    /// Up to `limit` posts of an author, strictly after `after`.
    pub fn posts_by(&self, author: Id, after: Option<PostKey>, limit: usize) -> Vec<Post> {
        self.posts_of(&BTreeSet::from([author]), after, limit)
    }

    /// Up to `limit` posts of a user's followees, strictly after `after`.
    pub fn feed(&self, of: Id, after: Option<PostKey>, limit: usize) -> Vec<Post> {
        self.posts_of(&self.followees(of), after, limit)
    }

    /// A user's followees.
    pub(crate) fn followees(&self, of: Id) -> BTreeSet<Id> {
        let authors = self.posts.values().map(|registered| registered.post.author);
        authors.filter(|&author| self.follows(of, author)).collect()
    }

    pub(crate) fn follows(&self, follower: Id, followee: Id) -> bool {
        self.contains(EdgeKind::Follow, Edge { follower, followee })
    }

    fn posts_of(&self, authors: &BTreeSet<Id>, after: Option<PostKey>, limit: usize) -> Vec<Post> {
        let mut posts: Vec<&Post> = self
            .posts
            .values()
            .filter(|registered| !registered.deleted && authors.contains(&registered.post.author))
            .map(|registered| &registered.post)
            .filter(|post| after.is_none_or(|after| post.key() > after))
            .collect();
        posts.sort_by_key(|post| post.key());
        posts.into_iter().take(limit).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::graph::{EdgeAction, FollowerCommand, WriteRequest};

    use super::*;
    use crate::users::START;

    const AUTHOR: Id = Id::Integer(1);
    const READER: Id = Id::Integer(9);

    fn request(id: Option<u64>, created_at: Option<u64>, key: Option<&str>) -> NewPost {
        NewPost {
            id: id.map(Id::Integer),
            author: AUTHOR,
            created_at: created_at.map(Timestamp::from_millis),
            payload: None,
            idempotency_key: key.map(Arc::from),
        }
    }

    fn follow(model: &mut Model, follower: Id) {
        let commands = vec![FollowerCommand { action: EdgeAction::Follow, followee: AUTHOR }];
        let request =
            WriteRequest { kind: EdgeKind::Follow, follower, commands: commands.into(), following_limit: 9 };
        model.write(&request, Timestamp::from_millis(5)).unwrap();
    }

    #[test]
    fn a_short_history() {
        let (mut model, mut request_state) = (Model::default(), RequestState::default());
        let now = Timestamp::from_millis(10);
        let mut register = |model: &mut Model, request: &NewPost| {
            let generated = request_state.generate_id(model, IdKind::Integer, now);
            model.register(&mut request_state, request, generated, now)
        };
        let first = register(&mut model, &request(Some(5), Some(7), None)).unwrap();
        assert_eq!((first.position, first.is_new), (START.next(), true));
        assert!(!register(&mut model, &request(Some(5), None, None)).unwrap().is_new);
        assert!(matches!(
            register(&mut model, &request(Some(5), Some(8), None)),
            Err(Error::PostConflict { .. })
        ));
        let second = register(&mut model, &request(None, None, Some("k"))).unwrap();
        assert_eq!(register(&mut model, &request(None, None, Some("k"))).unwrap().post, second.post);
        let ahead = request(None, Some(10 + AHEAD_MS_MAX + 1), None);
        assert!(matches!(register(&mut model, &ahead), Err(Error::PostInFuture { .. })));
        assert_eq!(model.feed(READER, None, 9), []);
        [READER, Id::Integer(7), Id::Integer(8)].into_iter().for_each(|id| follow(&mut model, id));
        let third = register(&mut model, &request(None, Some(7), None)).unwrap().post;
        assert!(third.id > second.post.id, "ids that are made rise");
        assert!(matches!(model.post(third.id), Some(PostState::Present(_, Delivery::Pull))));
        assert!(matches!(model.post(second.post.id), Some(PostState::Present(_, Delivery::Push))));

        assert_eq!(model.feed(READER, None, 9), [second.post.clone(), third.clone(), first.post.clone()]);
        assert!(model.delete_post(third.id, now).unwrap().changed);
        assert!(!model.delete_post(third.id, now).unwrap().changed);
        assert!(model.delete_post(Id::Integer(77), now).is_err());
        assert_eq!(model.feed(READER, Some(second.post.key()), 9), [first.post]);
        assert_eq!(Model::replay(model.changes(START, 99)), model);
    }
}
