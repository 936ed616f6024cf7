//! What a wish about a post changes, decided on the writer's thread: whether it repeats another, which id it gets, how it
//! is delivered.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use kinfolk_core::feed::{Delivery, NewPost, Post, Posted, Removed};
use kinfolk_core::{EdgeKind, Error, Id, Result, Timestamp};

use super::Record;
use crate::batch::Batch;
use crate::log::{Event, EventBody, KeyHash, Registration};
use crate::remembered::key_hash;

/// The longest payload that a log frame is made for, whatever a deployment allows.
const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// How far ahead of the clock a post may be made.
const AHEAD_MS_MAX: u64 = 5 * 60 * 1_000;

/// Where posts after a batch differ from what is visible.
#[derive(Default)]
pub struct PendingPosts {
    records: HashMap<Id, Record, RandomState>,
    keys: HashMap<(Id, KeyHash), Id, RandomState>,
}

impl PendingPosts {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.records.clear();
        self.keys.clear();
    }
}

/// How follower counts change by events that are not visible yet. Counted only when a post needs to know: follows, which
/// are many, do not pay for it.
#[derive(Default)]
pub struct FollowerSteps {
    steps: HashMap<Id, i64, RandomState>,
    /// How many events of the batch before this one, and of this one, are counted.
    counted: (usize, usize),
}

impl FollowerSteps {
    fn count(&mut self, earlier: &[Event], events: &[Event]) {
        for event in earlier.iter().skip(self.counted.0).chain(events.iter().skip(self.counted.1)) {
            match &event.body {
                EventBody::Followed(edge) if event.kind == EdgeKind::Follow => {
                    *self.steps.entry(edge.followee).or_default() += 1;
                }
                EventBody::Unfollowed(edge, _) if event.kind == EdgeKind::Follow => {
                    *self.steps.entry(edge.followee).or_default() -= 1;
                }
                _ => {}
            }
        }
        self.counted = (earlier.len(), events.len());
    }
}

impl Batch<'_> {
    /// Decides a wish to register a post.
    pub fn register(&mut self, wish: NewPost) -> Result<Posted> {
        if wish.payload.as_ref().is_some_and(|payload| payload.len() > PAYLOAD_BYTES_MAX) {
            return Err(Error::PayloadTooLarge { max: PAYLOAD_BYTES_MAX });
        }
        let key = wish.idempotency_key.as_deref().map(key_hash);
        if let Some(post) = self.repeated(&wish, key)? {
            return Ok(Posted { position: self.position(), post, is_new: false });
        }
        if let Some(given) = wish.created_at.filter(|&given| given > self.now.plus_millis(AHEAD_MS_MAX)) {
            return Err(Error::PostInFuture { given });
        }
        let (id, made_id) = match wish.id {
            Some(id) => (id, false),
            None => (self.make_id()?, true),
        };
        let NewPost { author, created_at, payload, .. } = wish;
        let post = Post { id, author, created_at: created_at.unwrap_or(self.floor), payload };
        let delivery = self.delivery(author);
        let pending = &mut self.pending.posts;
        pending.records.insert(id, Record::Present(post.clone(), delivery));
        pending.keys.extend(key.map(|key| ((author, key), id)));
        let registration = Registration { post: post.clone(), delivery, key, made_id };
        self.push(EdgeKind::Follow, EventBody::Posted(Arc::new(registration)));
        Ok(Posted { position: self.position(), post, is_new: true })
    }

    /// Decides a wish to delete a post.
    pub fn delete_post(&mut self, id: Id) -> Result<Removed> {
        let (author, created_at) = match self.record(id)? {
            None => return Err(Error::NotFound { detail: format!("there is no post {id}") }),
            Some(Record::Deleted { .. }) => return Ok(Removed { position: self.position(), changed: false }),
            Some(Record::Present(post, _)) => (post.author, post.created_at),
        };
        self.pending.posts.records.insert(id, Record::Deleted { author, created_at });
        self.push(EdgeKind::Follow, EventBody::PostDeleted { id, author, created_at });
        Ok(Removed { position: self.position(), changed: true })
    }

    /// The post that an equal wish has made before, if there was one.
    fn repeated(&self, wish: &NewPost, key: Option<KeyHash>) -> Result<Option<Post>> {
        let by_key = key.map_or(Ok(None), |key| self.keyed(wish.author, key))?;
        let by_id = wish.id.map_or(Ok(None), |id| self.record(id))?;
        let found = match (by_id, by_key) {
            (Some(record), _) => wish.id.map(|id| (id, record)),
            (None, Some(id)) => self.record(id)?.map(|record| (id, record)),
            (None, None) => None,
        };
        let Some((id, record)) = found else { return Ok(None) };
        let Record::Present(post, _) = record else {
            return Err(Error::PostDeleted { id: id.to_string() });
        };
        let same = wish.author == post.author
            && wish.payload == post.payload
            && wish.created_at.is_none_or(|given| given == post.created_at)
            && wish.id.is_none_or(|given| given == id)
            && by_key.is_none_or(|keyed| keyed == id);
        if same { Ok(Some(post)) } else { Err(Error::PostConflict { id: id.to_string() }) }
    }

    /// The record of an id after everything that was decided so far.
    pub fn record(&self, id: Id) -> Result<Option<Record>> {
        let own = self.pending.posts.records.get(&id);
        let pending = own.or_else(|| self.earlier?.pending.posts.records.get(&id));
        pending.map_or_else(|| self.store.posts.record(id), |record| Ok(Some(record.clone())))
    }

    /// The post that an author's key stands for after everything that was decided so far.
    fn keyed(&self, author: Id, key: KeyHash) -> Result<Option<Id>> {
        let own = self.pending.posts.keys.get(&(author, key));
        let pending = own.or_else(|| self.earlier?.pending.posts.keys.get(&(author, key)));
        let now: Timestamp = self.floor;
        pending.map_or_else(|| self.store.posts.keyed(author, &key, now), |&id| Ok(Some(id)))
    }

    fn make_id(&mut self) -> Result<Id> {
        let mut made = self.made.posts;
        let id = made.next(self.floor, |id| Ok(self.record(id)?.is_none()))?;
        self.made.posts = made;
        Ok(id)
    }

    /// How a post of an author is delivered that is registered now.
    fn delivery(&mut self, author: Id) -> Delivery {
        let earlier = self.earlier.map_or(&[][..], |earlier| &earlier.events);
        let threshold = self.store.settings.fan_out_threshold;
        let visible = self.store.index.counts(EdgeKind::Follow, author).followers;
        let not_visible = (earlier.len() + self.events.len()) as u64;
        let mut followers = visible;
        if visible.abs_diff(threshold) <= not_visible {
            self.follower_steps.count(earlier, &self.events);
            let step = self.follower_steps.steps.get(&author).copied().unwrap_or(0);
            followers = visible.saturating_add_signed(step);
        }
        if followers >= threshold { Delivery::Pull } else { Delivery::Push }
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::graph::{EdgeAction, FollowerCommand, WriteRequest};
    use kinfolk_core::{IdKind, Sequence};

    use super::*;
    use crate::batch::{Decided, Pending};
    use crate::made::Made;
    use crate::{Embedded, Settings};

    const AUTHOR: Id = Id::Integer(1);
    const NOW: Timestamp = Timestamp::MIN;

    fn wish(key: &str) -> NewPost {
        let idempotency_key = Some(Arc::from(key));
        NewPost { id: None, author: AUTHOR, created_at: None, payload: None, idempotency_key }
    }

    fn change(batch: &mut Batch<'_>, action: EdgeAction, follower: u64) {
        let (follower, commands) =
            (Id::Integer(follower), vec![FollowerCommand { action, followee: AUTHOR }]);
        batch
            .decide(&WriteRequest { kind: EdgeKind::Follow, follower, commands, following_limit: 9 })
            .unwrap();
    }

    fn delivery(batch: &mut Batch<'_>, key: &str) -> Delivery {
        let id = batch.register(wish(key)).unwrap().post.id;
        let Some(Record::Present(_, delivery)) = batch.record(id).unwrap() else {
            panic!("it is registered")
        };
        delivery
    }

    /// A batch is decided before the one ahead of it is visible: it must know of it, and of its own beginning.
    #[test]
    fn what_is_not_visible_yet_counts() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { fan_out_threshold: 2, ..Settings::default() };
        let store = Embedded::create(folder.path(), IdKind::Integer, settings).unwrap();
        let mut made = Made::new(IdKind::Integer, None, None);
        let store = &**store.shared();
        let mut first = Batch::new(store, None, (Pending::default(), &mut made), Sequence(1), (NOW, NOW));
        change(&mut first, EdgeAction::Follow, 2);
        assert_eq!(delivery(&mut first, "a"), Delivery::Push);
        change(&mut first, EdgeAction::Follow, 3);
        assert_eq!(delivery(&mut first, "b"), Delivery::Pull);
        let a = first.register(wish("a")).unwrap();
        assert!(!a.is_new);
        let b = first.register(wish("b")).unwrap().post.id;
        assert!(b > a.post.id && first.delete_post(b).unwrap().changed);
        assert!(matches!(first.register(wish("b")), Err(Error::PostDeleted { .. })));
        let (earlier, _): (Decided, _) = first.finish();

        let mut second =
            Batch::new(store, Some(&earlier), (Pending::default(), &mut made), Sequence(6), (NOW, NOW));
        assert_eq!(second.register(wish("a")).unwrap().post, a.post);
        assert!(!second.delete_post(b).unwrap().changed);
        assert!(matches!(second.register(wish("b")), Err(Error::PostDeleted { .. })));
        assert_eq!(delivery(&mut second, "c"), Delivery::Pull);
        change(&mut second, EdgeAction::Unfollow, 2);
        assert_eq!(delivery(&mut second, "d"), Delivery::Push);
        let positions: Vec<_> = second.events.iter().map(|event| event.position.0).collect();
        assert_eq!(positions, [6, 7, 8]);
    }
}
