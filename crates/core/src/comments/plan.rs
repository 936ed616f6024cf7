//! Plans writes of comments: whether a request is a retry, whether an edit is based on the current version, which status a
//! comment gets. Planning writes nothing and does not know how a store reads or logs.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::{
    Comment, CommentEdit, CommentId, CommentStatus, CommentWritten, Moderator, NewComment, Parent,
    ParentKind, Withdrawal,
};
use crate::feeds::WriteOutcome;
use crate::{Error, Id, IdGenerator, KeyHash, Planned, Position, Result, Timestamp, body_key_hash, key_hash};

/// The maximum body that a log supports, regardless of the deployment's settings.
const BODY_BYTES_MAX: usize = 1 << 20;

/// The input of a plan: comments before it, and posts.
pub trait CommentView {
    /// Whether a post exists, after everything that is planned about posts.
    fn has_post(&self, id: Id) -> Result<bool>;

    /// A comment, or its tombstone with everything that is stored of it. Its reply count is ignored.
    fn comment(&self, id: CommentId) -> Result<Option<Comment>>;

    /// The first body of a comment; `None` if it was purged.
    fn first_body(&self, id: CommentId) -> Result<Option<Arc<str>>>;

    /// The number of direct replies to a comment, including tombstones.
    fn reply_count(&self, id: CommentId) -> Result<u64>;

    /// Whether a thread is locked.
    fn is_locked(&self, parent: Parent) -> Result<bool>;

    /// The comment written under an author's idempotency key, unless the key has expired at `now`. A comment is also found by the
    /// [`body_key_hash`] of its key and its first body, even after it was purged.
    fn keyed(&self, author: Id, key: &KeyHash, now: Timestamp) -> Result<Option<CommentId>>;
}

/// A planned change of a comment thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommentEvent {
    /// A comment is written.
    Written {
        /// The comment.
        comment: Comment,
        /// The idempotency key of its request.
        key: Option<KeyHash>,
    },
    /// A comment is edited; this is the new version.
    Edited(Comment),
    /// A comment is deleted, removed or purged.
    Withdrawn {
        /// The tombstone, without its reply count.
        tombstone: Comment,
        /// The reason of this withdrawal, if it has one.
        reason: Option<Arc<str>>,
        /// The moderator of this withdrawal, if known.
        by: Option<Moderator>,
    },
    /// A thread is locked or unlocked.
    Locked {
        /// The parent of the thread.
        parent: Parent,
        /// Whether it is locked now.
        locked: bool,
    },
}

/// The effects of planned requests on comments.
#[derive(Debug, Default)]
pub struct PlannedComments {
    /// Comments without their reply counts.
    comments: HashMap<CommentId, Comment, RandomState>,
    /// New comments in their first version.
    first: HashMap<CommentId, Comment, RandomState>,
    keys: HashMap<(Id, KeyHash), CommentId, RandomState>,
    /// The number of additional replies.
    replies: HashMap<CommentId, u64, RandomState>,
    locked: HashMap<Parent, bool, RandomState>,
}

impl PlannedComments {
    /// Removes everything and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.comments.clear();
        self.first.clear();
        self.keys.clear();
        self.replies.clear();
        self.locked.clear();
    }
}

/// Plans one request about comments. A refused request has no effect.
pub struct CommentPlanner<'a, V> {
    /// The comments before the plan.
    pub view: V,
    /// Earlier plans that are not in the view yet.
    pub earlier: Option<&'a PlannedComments>,
    /// The current plan, which this request extends.
    pub planned: &'a mut PlannedComments,
    /// Generates ids of comments.
    pub ids: &'a mut dyn IdGenerator,
    /// The time of the next event.
    pub floor: Timestamp,
    /// The position of the last planned event.
    pub last: Position,
}

impl<V: CommentView> CommentPlanner<'_, V> {
    /// Plans to write a comment.
    pub fn write(self, request: NewComment) -> Result<Planned<CommentWritten, CommentEvent>> {
        require_length(&request.body)?;
        let key = request.idempotency_key.as_deref().map(key_hash);
        if let Some(comment) = self.repeated(&request, key)? {
            return Ok(Planned::no_change(CommentWritten { position: self.last, comment, is_new: false }));
        }
        self.require_parent(request.parent)?;
        if self.is_locked(request.parent)? {
            return Err(Error::ThreadLocked);
        }
        let depth = self.reply_depth(&request)?;
        let id = match self.ids.next_id(self.floor, &|_| Ok(true))? {
            Id::Uuid(id) => CommentId(id),
            Id::Integer(id) => CommentId(id.into()),
        };
        let NewComment { parent, author, body, reply_to, .. } = request;
        let comment = Comment {
            id,
            parent,
            author,
            reply_to,
            depth,
            created_at: self.floor,
            version: 1,
            edited_at: None,
            status: CommentStatus::Active,
            body: Some(body),
            reason: None,
            removed_by: None,
            reply_count: 0,
        };
        self.planned.comments.insert(id, comment.clone());
        self.planned.first.insert(id, comment.clone());
        self.planned.keys.extend(key.map(|key| ((author, key), id)));
        if let Some(target) = reply_to {
            *self.planned.replies.entry(target).or_default() += 1;
        }
        let event = CommentEvent::Written { comment: comment.clone(), key };
        Ok(Planned::change(CommentWritten { position: self.last.next(), comment, is_new: true }, event))
    }

    /// Plans to edit a comment.
    pub fn edit(
        self,
        CommentEdit { id, version, body }: CommentEdit,
    ) -> Result<Planned<CommentWritten, CommentEvent>> {
        require_length(&body)?;
        let before = self.required(id)?;
        if !before.is_active() {
            return Err(Error::CommentDeleted { id: id.to_string() });
        }
        if before.version != version {
            return Err(Error::VersionConflict { current: before.version });
        }
        let version = version.checked_add(1).ok_or_else(|| Error::InvalidRequest {
            detail: "the comment has reached the maximum number of edits".into(),
        })?;
        let reply_count = self.reply_count(id)?;
        let comment =
            Comment { version, edited_at: Some(self.floor), body: Some(body), reply_count, ..before };
        self.planned.comments.insert(id, comment.clone());
        let event = CommentEvent::Edited(comment.clone());
        Ok(Planned::change(CommentWritten { position: self.last.next(), comment, is_new: true }, event))
    }

    /// Plans to withdraw a comment.
    pub fn withdraw(
        self,
        id: CommentId,
        withdrawal: Withdrawal,
        by: Option<Moderator>,
    ) -> Result<Planned<WriteOutcome, CommentEvent>> {
        let comment = self.required(id)?;
        let status = withdrawal.status();
        if comment.status >= status {
            return Ok(Planned::no_change(WriteOutcome { position: self.last, changed: false }));
        }
        let reason = match withdrawal {
            Withdrawal::Remove(reason) => Some(reason),
            Withdrawal::Delete | Withdrawal::Purge => None,
        };
        let tombstone = comment.withdrawn(status, reason.as_ref(), by.as_ref());
        self.planned.comments.insert(id, tombstone.clone());
        let event = CommentEvent::Withdrawn { tombstone, reason, by };
        Ok(Planned::change(WriteOutcome { position: self.last.next(), changed: true }, event))
    }

    /// Plans to lock or unlock a thread.
    pub fn lock(self, parent: Parent, locked: bool) -> Result<Planned<WriteOutcome, CommentEvent>> {
        self.require_parent(parent)?;
        if self.is_locked(parent)? == locked {
            return Ok(Planned::no_change(WriteOutcome { position: self.last, changed: false }));
        }
        self.planned.locked.insert(parent, locked);
        let event = CommentEvent::Locked { parent, locked };
        Ok(Planned::change(WriteOutcome { position: self.last.next(), changed: true }, event))
    }

    /// The result of an equal earlier request, if any.
    fn repeated(&self, request: &NewComment, key: Option<KeyHash>) -> Result<Option<Comment>> {
        let Some(key) = key.map(|key| (request.author, key)) else { return Ok(None) };
        let planned = self.planned.keys.get(&key).or_else(|| self.earlier?.keys.get(&key));
        let stored = || self.view.keyed(request.author, &key.1, self.floor);
        let Some(id) = planned.map_or_else(stored, |&id| Ok(Some(id)))? else { return Ok(None) };
        let first = self.first_result(id)?;
        let same = request.parent == first.parent
            && request.reply_to == first.reply_to
            && match &first.body {
                Some(body) => *body == request.body,
                None => self.had_body(id, request, &key.1)?,
            };
        if same { Ok(Some(first)) } else { Err(Error::IdempotencyConflict) }
    }

    /// Whether a purged comment was first written with the body of a request.
    fn had_body(&self, id: CommentId, request: &NewComment, key: &KeyHash) -> Result<bool> {
        let planned = self.planned.first.get(&id).or_else(|| self.earlier?.first.get(&id));
        if let Some(first) = planned {
            return Ok(first.body.as_ref() == Some(&request.body));
        }
        let of_body = body_key_hash(key, &request.body);
        Ok(self.view.keyed(request.author, &of_body, self.floor)? == Some(id))
    }

    /// A comment as it was first written; its tombstone if it was purged since.
    fn first_result(&self, id: CommentId) -> Result<Comment> {
        let comment = self.required(id)?;
        if comment.status == CommentStatus::Purged {
            return Ok(Comment { reply_count: self.reply_count(id)?, ..comment });
        }
        let planned = self.planned.first.get(&id).or_else(|| self.earlier?.first.get(&id));
        if let Some(first) = planned {
            return Ok(first.clone());
        }
        Ok(Comment {
            version: 1,
            edited_at: None,
            status: CommentStatus::Active,
            body: self.view.first_body(id)?,
            reason: None,
            removed_by: None,
            reply_count: 0,
            ..comment
        })
    }

    /// A comment after everything that is planned, without its reply count.
    fn comment(&self, id: CommentId) -> Result<Option<Comment>> {
        let planned = self.planned.comments.get(&id).or_else(|| self.earlier?.comments.get(&id));
        planned.map_or_else(|| self.view.comment(id), |comment| Ok(Some(comment.clone())))
    }

    fn required(&self, id: CommentId) -> Result<Comment> {
        let missing = || Error::NotFound { detail: format!("there is no comment {id}") };
        self.comment(id)?.ok_or_else(missing)
    }

    /// How many replies a comment has after everything that is planned.
    fn reply_count(&self, id: CommentId) -> Result<u64> {
        let more = |planned: &PlannedComments| planned.replies.get(&id).copied().unwrap_or(0);
        Ok(self.view.reply_count(id)? + self.earlier.map_or(0, more) + more(self.planned))
    }

    fn is_locked(&self, parent: Parent) -> Result<bool> {
        let planned = self.planned.locked.get(&parent).or_else(|| self.earlier?.locked.get(&parent));
        planned.map_or_else(|| self.view.is_locked(parent), |&locked| Ok(locked))
    }

    /// Requires that a post exists. Other parents are not checked.
    fn require_parent(&self, parent: Parent) -> Result<()> {
        if parent.kind != ParentKind::Post || self.view.has_post(parent.id)? {
            return Ok(());
        }
        Err(Error::NotFound { detail: format!("there is no post {}", parent.id) })
    }

    /// The depth of a new comment.
    fn reply_depth(&self, request: &NewComment) -> Result<u8> {
        let Some(id) = request.reply_to else { return Ok(0) };
        let refuse = |reason| Error::InvalidReply { id: id.to_string(), reason };
        let target = self.comment(id)?.filter(|target| target.parent == request.parent);
        let target = target.ok_or_else(|| refuse("there is no such comment in this thread"))?;
        if !target.is_active() {
            return Err(refuse("it was deleted or removed"));
        }
        if target.depth >= request.depth_max {
            return Err(refuse("replies cannot be nested deeper; reply to a comment above it"));
        }
        Ok(target.depth + 1)
    }
}

fn require_length(body: &str) -> Result<()> {
    if body.len() <= BODY_BYTES_MAX {
        return Ok(());
    }
    Err(Error::InvalidBody { what: "a comment", reason: format!("can have at most {BODY_BYTES_MAX} bytes") })
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::{Sequence, Shard};

    const AUTHOR: Id = Id::Integer(1);
    const ITEM: Parent = Parent { kind: ParentKind::Item, id: Id::Integer(5) };

    /// Comments in memory, with their first bodies and keys.
    #[derive(Default)]
    struct Threads {
        posts: BTreeSet<Id>,
        comments: BTreeMap<CommentId, (Comment, Arc<str>)>,
        keys: BTreeMap<(Id, KeyHash), CommentId>,
        locked: BTreeSet<Parent>,
    }

    impl CommentView for &Threads {
        fn has_post(&self, id: Id) -> Result<bool> {
            Ok(self.posts.contains(&id))
        }

        fn comment(&self, id: CommentId) -> Result<Option<Comment>> {
            Ok(self.comments.get(&id).map(|(comment, _)| comment.clone()))
        }

        fn first_body(&self, id: CommentId) -> Result<Option<Arc<str>>> {
            Ok(self.comments.get(&id).map(|(_, first)| Arc::clone(first)))
        }

        fn reply_count(&self, id: CommentId) -> Result<u64> {
            let answers = |(comment, _): &&(Comment, Arc<str>)| comment.reply_to == Some(id);
            Ok(self.comments.values().filter(answers).count() as u64)
        }

        fn is_locked(&self, parent: Parent) -> Result<bool> {
            Ok(self.locked.contains(&parent))
        }

        fn keyed(&self, author: Id, key: &KeyHash, _: Timestamp) -> Result<Option<CommentId>> {
            Ok(self.keys.get(&(author, *key)).copied())
        }
    }

    /// Counts up.
    struct Ids(u128);

    impl IdGenerator for Ids {
        fn next_id(&mut self, _: Timestamp, _: &dyn Fn(Id) -> Result<bool>) -> Result<Id> {
            self.0 += 1;
            Ok(Id::Uuid(self.0))
        }
    }

    struct Scene {
        view: Threads,
        earlier: PlannedComments,
        planned: PlannedComments,
        ids: Ids,
        events: Vec<CommentEvent>,
    }

    impl Scene {
        fn new() -> Self {
            let (earlier, planned) = (PlannedComments::default(), PlannedComments::default());
            Self { view: Threads::default(), earlier, planned, ids: Ids(100), events: Vec::new() }
        }

        fn planner(&mut self) -> CommentPlanner<'_, &Threads> {
            CommentPlanner {
                view: &self.view,
                earlier: Some(&self.earlier),
                planned: &mut self.planned,
                ids: &mut self.ids,
                floor: Timestamp::from_millis(7),
                last: Sequence(self.events.len() as u64).on(Shard(2)),
            }
        }

        fn write(&mut self, request: NewComment) -> Result<CommentWritten> {
            let Planned { result: written, event } = self.planner().write(request)?;
            assert_eq!(event.is_some(), written.is_new);
            self.note(event, written.position);
            Ok(written)
        }

        fn edit(&mut self, id: CommentId, version: u32, body: &str) -> Result<Comment> {
            let Planned { result: edited, event } =
                self.planner().edit(CommentEdit { id, version, body: body.into() })?;
            self.note(event, edited.position);
            Ok(edited.comment)
        }

        fn withdraw(&mut self, id: CommentId, how: Withdrawal, by: Option<&Moderator>) -> Result<bool> {
            let Planned { result: removed, event } = self.planner().withdraw(id, how, by.cloned())?;
            assert_eq!(event.is_some(), removed.changed);
            self.note(event, removed.position);
            Ok(removed.changed)
        }

        fn lock(&mut self, parent: Parent, locked: bool) -> Result<bool> {
            let Planned { result: removed, event } = self.planner().lock(parent, locked)?;
            assert_eq!(event.is_some(), removed.changed);
            self.note(event, removed.position);
            Ok(removed.changed)
        }

        fn note(&mut self, event: Option<CommentEvent>, position: Position) {
            self.events.extend(event);
            assert_eq!(position, Sequence(self.events.len() as u64).on(Shard(2)));
        }

        /// What was planned so far is on its way, and not in the view yet.
        fn next_batch(&mut self) {
            self.earlier = std::mem::take(&mut self.planned);
        }

        /// What was on its way is stored.
        fn store(&mut self) {
            let PlannedComments { comments, first, keys, .. } = std::mem::take(&mut self.earlier);
            let body = |id: CommentId| first.get(&id).and_then(|first| first.body.clone()).unwrap();
            let of_bodies =
                keys.iter().map(|((author, key), id)| ((*author, body_key_hash(key, &body(*id))), *id));
            self.view.keys.extend(of_bodies);
            self.view.comments.extend(comments.into_iter().map(|(id, comment)| (id, (comment, body(id)))));
            self.view.keys.extend(keys);
        }
    }

    fn new(key: &str, reply_to: Option<CommentId>) -> NewComment {
        let idempotency_key = Some(Arc::from(key));
        NewComment { parent: ITEM, author: AUTHOR, body: key.into(), reply_to, idempotency_key, depth_max: 2 }
    }

    fn reason(error: Result<CommentWritten>) -> &'static str {
        match error {
            Err(Error::InvalidReply { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_repeated_request_gets_the_first_result() {
        let mut scene = Scene::new();
        let first = scene.write(new("k", None)).unwrap().comment;
        scene.write(new("reply", Some(first.id))).unwrap();
        scene.edit(first.id, 1, "edited").unwrap();
        let repeat = |scene: &mut Scene| {
            let again = scene.write(new("k", None)).unwrap();
            assert_eq!((again.comment, again.is_new), (first.clone(), false));
            for other in [
                NewComment { body: "other".into(), ..new("k", None) },
                NewComment { parent: Parent { id: AUTHOR, ..ITEM }, ..new("k", None) },
                new("k", Some(first.id)),
            ] {
                assert!(matches!(scene.write(other), Err(Error::IdempotencyConflict)));
            }
        };
        repeat(&mut scene);
        scene.next_batch();
        repeat(&mut scene);
        scene.store();
        repeat(&mut scene);
        assert!(scene.write(NewComment { author: Id::Integer(2), ..new("k", None) }).unwrap().is_new);
        assert_eq!(scene.events.len(), 4);
        scene.withdraw(first.id, Withdrawal::Purge, None).unwrap();
        let tombstone = scene.write(new("k", None)).unwrap().comment;
        assert_eq!((tombstone.status, tombstone.body), (CommentStatus::Purged, None));
        assert_eq!((tombstone.version, tombstone.reply_count), (2, 1));
    }

    #[test]
    fn a_purged_comment_conflicts_with_another_body_under_its_key() {
        let mut scene = Scene::new();
        let id = scene.write(new("k", None)).unwrap().comment.id;
        scene.edit(id, 1, "edited").unwrap();
        scene.withdraw(id, Withdrawal::Purge, None).unwrap();
        for step in [|_: &mut Scene| {}, Scene::next_batch, Scene::store] {
            step(&mut scene);
            assert_eq!(scene.write(new("k", None)).unwrap().comment.id, id);
            for body in ["other", "edited", ""] {
                let other = NewComment { body: body.into(), ..new("k", None) };
                assert!(matches!(scene.write(other), Err(Error::IdempotencyConflict)), "{body}");
            }
        }
    }

    #[test]
    fn an_edit_needs_the_current_version_of_an_active_comment() {
        let mut scene = Scene::new();
        let id = scene.write(new("k", None)).unwrap().comment.id;
        scene.write(new("reply", Some(id))).unwrap();
        scene.next_batch();
        scene.write(new("another", Some(id))).unwrap();
        let edited = scene.edit(id, 1, "two").unwrap();
        assert_eq!((edited.version, edited.body.as_deref(), edited.reply_count), (2, Some("two"), 2));
        assert_eq!(scene.events.last(), Some(&CommentEvent::Edited(edited)));
        assert!(matches!(scene.edit(id, 1, "x"), Err(Error::VersionConflict { current: 2 })));
        scene.next_batch();
        assert!(matches!(scene.edit(id, 3, "x"), Err(Error::VersionConflict { current: 2 })));
        let long = "x".repeat(BODY_BYTES_MAX + 1);
        assert!(matches!(scene.edit(id, 2, &long), Err(Error::InvalidBody { .. })));
        assert_eq!(scene.edit(id, 2, "three").unwrap().version, 3);
        assert!(scene.withdraw(id, Withdrawal::Delete, None).unwrap());
        assert!(matches!(scene.edit(id, 3, "x"), Err(Error::CommentDeleted { .. })));
        assert!(matches!(scene.edit(CommentId(9), 1, "x"), Err(Error::NotFound { .. })));
        assert_eq!(scene.events.len(), 6);
    }

    #[test]
    fn replies_answer_active_comments_of_their_thread() {
        let mut scene = Scene::new();
        let top = scene.write(new("top", None)).unwrap().comment.id;
        scene.next_batch();
        let reply = scene.write(new("reply", Some(top))).unwrap().comment;
        let deepest = scene.write(new("deepest", Some(reply.id))).unwrap().comment;
        assert_eq!((reply.depth, deepest.depth), (1, 2));
        assert!(reason(scene.write(new("deeper", Some(deepest.id)))).contains("deeper"));
        let elsewhere = NewComment { parent: Parent { id: AUTHOR, ..ITEM }, ..new("else", Some(top)) };
        assert!(reason(scene.write(elsewhere)).contains("no such comment"));
        scene.withdraw(top, Withdrawal::Delete, None).unwrap();
        assert_eq!(reason(scene.write(new("late", Some(top)))), "it was deleted or removed");
        scene.write(new("late", Some(reply.id))).unwrap();
        assert_eq!((scene.events.len(), scene.ids.0), (5, 104), "a refused request leaves nothing behind");
    }

    #[test]
    fn a_locked_thread_takes_no_comments_but_repetitions() {
        let mut scene = Scene::new();
        let id = scene.write(new("k", None)).unwrap().comment.id;
        assert!(!scene.lock(ITEM, false).unwrap());
        assert!(scene.lock(ITEM, true).unwrap());
        scene.next_batch();
        assert!(!scene.lock(ITEM, true).unwrap());
        assert!(matches!(scene.write(new("new", None)), Err(Error::ThreadLocked)));
        assert!(!scene.write(new("k", None)).unwrap().is_new);
        assert_eq!(scene.edit(id, 1, "edited").unwrap().version, 2);
        assert!(scene.lock(ITEM, false).unwrap());
        assert!(scene.write(new("new", None)).unwrap().is_new);
        scene.view.locked.insert(Parent { id: AUTHOR, ..ITEM });
        let stored = NewComment { parent: Parent { id: AUTHOR, ..ITEM }, ..new("stored", None) };
        assert!(matches!(scene.write(stored), Err(Error::ThreadLocked)));
    }

    #[test]
    fn a_post_must_be_there() {
        let mut scene = Scene::new();
        let parent = Parent::post(Id::Integer(8));
        let request = NewComment { parent, ..new("k", None) };
        assert!(matches!(scene.write(request.clone()), Err(Error::NotFound { .. })));
        assert!(matches!(scene.lock(parent, true), Err(Error::NotFound { .. })));
        scene.view.posts.insert(parent.id);
        assert!(scene.write(request.clone()).unwrap().is_new, "the key is free");
        scene.view.posts.clear();
        assert!(!scene.write(request).unwrap().is_new);
    }

    #[test]
    fn a_withdrawal_only_makes_it_worse() {
        let mut scene = Scene::new();
        let id = scene.write(new("k", None)).unwrap().comment.id;
        let remove = || Withdrawal::Remove("spam".into());
        let (first, second) = (Moderator::User(AUTHOR), Moderator::Service("key".into()));
        assert!(scene.withdraw(id, remove(), Some(&first)).unwrap());
        let removed = scene.planned.comments.get(&id).unwrap();
        assert_eq!((removed.status, removed.body.as_deref()), (CommentStatus::Removed, Some("k")));
        assert!(!scene.withdraw(id, Withdrawal::Delete, None).unwrap());
        assert!(!scene.withdraw(id, remove(), Some(&second)).unwrap());
        scene.next_batch();
        for (by, expected) in [(None, &first), (Some(&second), &second)] {
            scene.planned.clear();
            assert!(scene.withdraw(id, Withdrawal::Purge, by).unwrap());
            let Some(CommentEvent::Withdrawn { tombstone, reason, by: recorded }) = scene.events.last()
            else {
                panic!("it is purged")
            };
            assert_eq!((reason, recorded.as_ref()), (&None, by), "what this withdrawal says");
            assert_eq!((tombstone.status, &tombstone.body), (CommentStatus::Purged, &None));
            assert_eq!(
                (tombstone.reason.as_deref(), &tombstone.removed_by),
                (Some("spam"), &Some(expected.clone()))
            );
            assert!(!scene.withdraw(id, Withdrawal::Purge, by).unwrap());
        }
        assert!(matches!(scene.withdraw(CommentId(9), remove(), None), Err(Error::NotFound { .. })));
    }
}
