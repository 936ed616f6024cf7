//! Random histories of several people in few threads at once. Each race has one winner; readers never see what was never
//! written; and once all is quiet, the log explains the result.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::comments::{
    Branch, Comment, CommentChange, CommentEdit, CommentId, CommentOrder, CommentStatus, CommentWritten,
    Moderator, NewComment, Parent, ParentKind, Withdrawal,
};
use kinfolk_core::feeds::{NewPost, WriteOutcome};
use kinfolk_core::{Error, ErrorCode, Frontier, Id};

use crate::StoreFactory;
use crate::model::Model;
use crate::model::comments::text_of;
use crate::model::suggestions::locked;
use crate::ports::ContentPorts;
use crate::random::Random;
use crate::random::answers::Attempt;
use crate::random::comment_audit::{Known, audit_change};
use crate::random::compare::{ENTRIES_MAX, Verdict, answer, equal};
use crate::random::compare_comments::compare_comments;
use crate::random::shared::{Rounds, Shared};
use crate::random::unknown_comments::{Asked, Unknown, unclaimed};
use crate::random::unsettled::TimeoutFault;
use crate::threads::{at_once, block_on};
use crate::users::by_shard;

/// Threads that are written to all the time; one that is locked now and then; and one whose post is deleted.
const PARENTS: [(ParentKind, u64); 4] =
    [(ParentKind::Post, 50), (ParentKind::Item, 50), (ParentKind::Conversation, 51), (ParentKind::Post, 52)];
const LOCKED: usize = 2;
const DELETED: usize = 3;
/// Who writes the same requests from two threads.
const TWIN: u64 = 0;
const REPLIER: u64 = 1;
/// Whose comments nobody changes.
const STEADY: u64 = 2;
const USERS: u64 = 3;
const STEPS: u64 = 24;
const DEPTH_MAX: u8 = 3;

/// Setting up is tried so often.
const ATTEMPTS: usize = 1_000;

const WHAT: &str = "concurrent comments";

/// Runs `rounds` histories, each on a fresh store: threads write, repeat each other's requests, edit the same versions, delete,
/// remove, purge, reply and lock while others read. Panics if a race has not one winner, if a reader sees what was not
/// there, or if in the end anything is not what the log says. Operations may be refused, and writes may have an unknown
/// outcome.
pub fn concurrent_comments<S: ContentPorts>(make: StoreFactory<'_, S>, rounds: u32, seed: u64) {
    Rounds { what: WHAT, count: rounds, seed }.run(make, run);
}

/// As [`concurrent_comments`], with connections in front of the store that get lost.
pub fn concurrent_comments_with_timeouts<S: ContentPorts>(make: StoreFactory<'_, S>, rounds: u32, seed: u64) {
    Rounds { what: WHAT, count: rounds, seed }.run_with_timeouts(make, None, run);
}

/// As [`concurrent_comments_with_timeouts`], with a mistake in front of the store.
pub fn concurrent_comments_with_fault<S: ContentPorts>(
    make: StoreFactory<'_, S>,
    fault: TimeoutFault,
    rounds: u32,
    seed: u64,
) {
    Rounds { what: WHAT, count: rounds, seed }.run_with_timeouts(make, Some(fault), run);
}

struct History<S> {
    shared: Shared<S>,
    known: Mutex<Known>,
}

impl<S> Deref for History<S> {
    type Target = Shared<S>;

    fn deref(&self) -> &Shared<S> {
        &self.shared
    }
}

fn run<S: ContentPorts>(shared: Shared<S>, seed: u64, settle: &dyn Fn(&S)) -> Verdict {
    let history = History { shared, known: Mutex::default() };
    history.begin();
    at_once(9, |thread| {
        let random = Random::new(seed << 8 | thread as u64);
        match thread {
            // The same seed: both request the same.
            0 | 1 => history.write_twice(thread, Random::new(seed)),
            2 | 3 => history.edit(thread, random),
            4 => history.withdraw(random),
            5 => history.reply(random),
            6 => history.moderate(random),
            _ => history.read(random),
        }
    });
    settle(&history.store);
    history.answers.require_enough();
    history.audit()
}

impl<S: ContentPorts> History<S> {
    /// A write that may or may not have happened.
    fn keep_unknown(&self, asked: Asked, after: Frontier) {
        locked(&self.known).unknown.push(Unknown { asked, after });
    }

    fn parent(&self, index: usize) -> Parent {
        let (kind, id) = PARENTS[index];
        Parent { kind, id: self.id(id) }
    }

    fn parents(&self) -> Vec<Parent> {
        (0..PARENTS.len()).map(|index| self.parent(index)).collect()
    }

    fn begin(&self) {
        for parent in self.parents().into_iter().filter(|parent| parent.kind == ParentKind::Post) {
            let (id, author) = (Some(parent.id), self.id(TWIN));
            let request = NewPost { id, author, created_at: None, payload: None, idempotency_key: None };
            let mut attempts =
                (0..ATTEMPTS).map(|_| self.answers.write(block_on(self.store.register(request.clone()))));
            let posted = attempts.find_map(|attempt| match attempt {
                Attempt::Done(posted) => Some(posted),
                _ => None,
            });
            self.saw(posted.expect("a post can be registered").position);
        }
        for number in 0..8 {
            let request =
                self.comment_request(self.parent(number % 2), STEADY, None, &format!("v1 steady {number}"));
            if let Attempt::Done(written) = self.write(request) {
                locked(&self.known).steady.push(written.comment);
            }
            let request =
                self.comment_request(self.parent(number % 2), TWIN, None, &format!("v1 first {number}"));
            self.write(request);
        }
    }

    fn comment_request(
        &self,
        parent: Parent,
        author: u64,
        reply_to: Option<CommentId>,
        text: &str,
    ) -> NewComment {
        let body: Arc<str> = text.into();
        locked(&self.known).asked.insert(Arc::clone(&body));
        let author = self.id(author);
        NewComment { parent, author, body, reply_to, idempotency_key: None, depth_max: DEPTH_MAX }
    }

    /// Writes a comment, and keeps what was answered once it is visible.
    fn write(&self, request: NewComment) -> Attempt<CommentWritten> {
        let after = self.seen();
        let attempt = self.answers.write(block_on(self.store.comment(request.clone())));
        match &attempt {
            Attempt::Done(written) => {
                self.saw(written.position);
                let mut known = locked(&self.known);
                let comment = &written.comment;
                known.written.insert(comment.id, comment.parent);
                if written.is_new {
                    known.positions.push(written.position);
                }
                // The first result defines the body.
                known.texts.entry((comment.id, 1)).or_insert(request.body);
            }
            Attempt::Unknown => self.keep_unknown(Asked::Comment(request), after),
            Attempt::Refused(_) | Attempt::Unavailable => {}
        }
        attempt
    }

    /// A comment that was written, as it is now, unless that can't be read.
    fn comment(&self, id: CommentId) -> Option<Comment> {
        let mut found = self.answers.read(block_on(self.reader().comments(&[id])))?;
        Some(found.remove(0).expect("it was written"))
    }

    /// Two threads do the same: of each request one is first, and the other repeats it.
    fn write_twice(&self, thread: usize, mut random: Random) {
        for number in 0..STEPS {
            self.clock.advance(random.below(2));
            let parent = self.parent(random.below(PARENTS.len() as u64) as usize);
            // Now and then the twins do not agree on the text.
            let disagreement = if random.below(6) == 0 { thread } else { 0 };
            let text = format!("v1 of {number} by {disagreement}");
            let request = NewComment {
                idempotency_key: Some(format!("key {number}").into()),
                ..self.comment_request(parent, TWIN, None, &text)
            };
            let answer = match self.write(request) {
                Attempt::Done(written) => Ok(written),
                Attempt::Refused(error) => Err(error.code()),
                Attempt::Unavailable => Err(ErrorCode::Unavailable),
                Attempt::Unknown => Err(ErrorCode::TimedOut),
            };
            locked(&self.known).twins.entry(number).or_default().push(answer);
        }
    }

    /// A comment that somebody may change.
    fn any(&self, random: &mut Random) -> Option<CommentId> {
        let known = locked(&self.known);
        let ids: Vec<CommentId> = known.written.keys().copied().collect();
        let steady: BTreeSet<CommentId> = known.steady.iter().map(|comment| comment.id).collect();
        let ids: Vec<CommentId> = ids.into_iter().filter(|id| !steady.contains(id)).collect();
        // Mostly the newest, so that threads meet.
        let newest = ids.len().saturating_sub(1 + random.below(4) as usize);
        ids.get(newest).copied()
    }

    fn edit(&self, thread: usize, mut random: Random) {
        for number in 0..STEPS {
            let Some(id) = self.any(&mut random) else { continue };
            let Some(before) = self.comment(id) else { continue };
            let version = before.version + 1;
            let body: Arc<str> = format!("v{version} of {number} by {thread}").into();
            locked(&self.known).asked.insert(Arc::clone(&body));
            let edit = CommentEdit { id, version: before.version, body: Arc::clone(&body) };
            let after = self.seen();
            match self.answers.write(block_on(self.store.edit_comment(edit.clone()))) {
                Attempt::Done(edited) => {
                    assert_eq!(
                        (edited.comment.version, &edited.comment.body),
                        (version, &Some(Arc::clone(&body)))
                    );
                    let mut known = locked(&self.known);
                    known.positions.push(edited.position);
                    let other = known.texts.insert((id, version), body);
                    assert_eq!(other, None, "two edits of one version of {id} won");
                }
                Attempt::Refused(Error::VersionConflict { current }) => {
                    assert!(current >= version, "{current} of {before:?}");
                }
                Attempt::Refused(Error::CommentDeleted { .. }) => self.assert_withdrawn(id),
                Attempt::Refused(error) => panic!("an edit of {before:?} failed: {error}"),
                Attempt::Unavailable => {}
                Attempt::Unknown => self.keep_unknown(Asked::Edit(edit), after),
            }
        }
    }

    fn assert_withdrawn(&self, id: CommentId) {
        let Some(comment) = self.comment(id) else { return };
        assert_ne!(comment.status, CommentStatus::Active, "{comment:?}");
    }

    fn withdraw(&self, mut random: Random) {
        for number in 0..STEPS {
            let Some(id) = self.any(&mut random) else { continue };
            let reason: Arc<str> = format!("reason {number}").into();
            let withdrawal = match random.below(5) {
                0 | 1 => Withdrawal::Delete,
                2 | 3 => Withdrawal::Remove(Arc::clone(&reason)),
                _ => Withdrawal::Purge,
            };
            let by = (withdrawal != Withdrawal::Delete).then(|| Moderator::Service(Arc::clone(&reason)));
            let status = withdrawal.status();
            let after = self.seen();
            let removed =
                match self.answers.write(block_on(self.store.withdraw_comment(id, withdrawal, by.clone()))) {
                    Attempt::Done(removed) => removed,
                    Attempt::Refused(error) => panic!("the withdrawal of {id} failed: {error}"),
                    Attempt::Unavailable => continue,
                    Attempt::Unknown => {
                        self.keep_unknown(Asked::Withdrawal { id, status, by, reason }, after);
                        continue;
                    }
                };
            self.saw(removed.position);
            self.come_too_late((id, number));
            self.withdrew((id, status), removed, (by, reason));
        }
    }

    fn withdrew(
        &self,
        (id, status): (CommentId, CommentStatus),
        WriteOutcome { position, changed }: WriteOutcome,
        (by, reason): (Option<Moderator>, Arc<str>),
    ) {
        let mut known = locked(&self.known);
        let is_of_comment =
            |unknown: &Unknown| matches!(unknown.asked, Asked::Withdrawal { id: of, .. } if of == id);
        let is_certain = !known.unknown.iter().any(is_of_comment);
        // Nobody else withdraws.
        let before = known.statuses.get(&id).copied().unwrap_or(CommentStatus::Active);
        let is_worse = status > before;
        assert!(
            changed == is_worse || !is_certain && is_worse,
            "{id} was {before:?}, and is to be {status:?}: {changed}"
        );
        known.statuses.insert(id, status.max(before));
        if changed {
            known.positions.push(position);
            known.moderators.extend(by.map(|by| (position, by)));
            if status == CommentStatus::Removed {
                known.reasons.insert(id, reason);
            }
        }
    }

    /// What was withdrawn is not answered or edited any more, however the threads come to run.
    fn come_too_late(&self, (id, number): (CommentId, u64)) {
        let Some(comment) = self.comment(id) else { return };
        let request =
            self.comment_request(comment.parent, REPLIER, Some(id), &format!("v1 too late {number}"));
        match self.write(request) {
            Attempt::Done(reply) => panic!("a reply to {comment:?}: {reply:?}"),
            Attempt::Refused(error) => {
                let refusals = [ErrorCode::InvalidReply, ErrorCode::ThreadLocked, ErrorCode::NotFound];
                assert!(refusals.contains(&error.code()), "a reply to {comment:?}: {error}");
            }
            Attempt::Unavailable | Attempt::Unknown => {}
        }
        let edit = CommentEdit { id, version: comment.version, body: "too late".into() };
        match self.answers.write(block_on(self.store.edit_comment(edit))) {
            Attempt::Refused(Error::CommentDeleted { .. }) | Attempt::Unavailable | Attempt::Unknown => {}
            edited => panic!("an edit of {comment:?}: {edited:?}"),
        }
    }

    fn reply(&self, mut random: Random) {
        for number in 0..STEPS {
            let Some(id) = self.any(&mut random) else { continue };
            let parent = locked(&self.known).written[&id];
            let request = self.comment_request(parent, REPLIER, Some(id), &format!("v1 reply {number}"));
            match self.write(request) {
                Attempt::Done(reply) => {
                    let Some(found) = self.branch(parent, Some(id), 3) else { continue };
                    assert!(found.contains(&reply.comment.id), "{reply:?} is not among {found:?}");
                }
                Attempt::Refused(Error::InvalidReply { .. }) => {
                    let Some(above) = self.comment(id) else { continue };
                    assert!(above.status != CommentStatus::Active || above.depth == DEPTH_MAX, "{above:?}");
                }
                Attempt::Refused(Error::ThreadLocked) => assert_eq!(parent, self.parent(LOCKED)),
                Attempt::Refused(Error::NotFound { .. }) => assert_eq!(parent, self.parent(DELETED)),
                Attempt::Refused(error) => panic!("a reply to {id} failed: {error}"),
                Attempt::Unavailable | Attempt::Unknown => {}
            }
        }
    }

    /// The only one that locks and that deletes posts. What it did counts at once, unless the outcome of an earlier lock is
    /// unknown.
    fn moderate(&self, mut random: Random) {
        let mut is_locked = Some(false);
        for number in 0..STEPS {
            let wanted = random.below(2) == 0;
            is_locked = self.lock(wanted, is_locked);
            let text = format!("v1 moderator {number}");
            let attempt = self.write(self.comment_request(self.parent(LOCKED), STEADY, None, &text));
            match (attempt, is_locked) {
                (Attempt::Done(_), is_locked) => {
                    assert_ne!(is_locked, Some(true), "a locked thread takes nothing");
                }
                (Attempt::Refused(error), is_locked) => {
                    let is_right = is_locked != Some(false) && error.code() == ErrorCode::ThreadLocked;
                    assert!(is_right, "{error}");
                }
                (Attempt::Unavailable | Attempt::Unknown, _) => {}
            }
            if number == STEPS / 2 {
                self.delete_post(self.parent(DELETED).id);
            }
        }
    }

    /// Locks a thread or unlocks it, and returns whether it is locked then, where that is known.
    fn lock(&self, wanted: bool, is_locked: Option<bool>) -> Option<bool> {
        let (parent, after) = (self.parent(LOCKED), self.seen());
        match self.answers.write(block_on(self.store.lock_comment_thread(parent, wanted))) {
            Attempt::Done(done) => {
                let expected = is_locked.map(|is_locked| wanted != is_locked);
                assert_eq!(done.changed, expected.unwrap_or(done.changed), "{wanted} after {is_locked:?}");
                self.moderated(done);
                // A lock of unknown outcome may come at any time later.
                is_locked.map(|_| wanted)
            }
            Attempt::Refused(error) => panic!("a lock failed: {error}"),
            Attempt::Unavailable => is_locked,
            Attempt::Unknown => {
                self.keep_unknown(Asked::Lock { parent, locked: wanted }, after);
                None
            }
        }
    }

    fn delete_post(&self, id: Id) {
        let after = self.seen();
        match self.answers.write(block_on(self.store.delete_post(id))) {
            Attempt::Done(done) => self.moderated(done),
            Attempt::Refused(error) => panic!("the deletion of a post failed: {error}"),
            Attempt::Unavailable => {}
            Attempt::Unknown => self.keep_unknown(Asked::PostDeletion(id), after),
        }
    }

    fn moderated(&self, done: WriteOutcome) {
        self.saw(done.position);
        if done.changed {
            locked(&self.known).positions.push(done.position);
        }
    }

    fn branch(&self, parent: Parent, reply_to: Option<CommentId>, limit: usize) -> Option<Vec<CommentId>> {
        let read = |after| {
            let branch = Branch { parent, reply_to, after };
            block_on(self.reader().replies(&[branch], limit)).map(|found| found.concat())
        };
        let walked = self.answers.walk(|comment: &Comment| comment.id, limit, read)?;
        Some(self.looked_at(&walked, CommentOrder::Oldest))
    }

    fn comment_thread(&self, parent: Parent, order: CommentOrder, limit: usize) -> Option<Vec<CommentId>> {
        let read = |after| block_on(self.reader().comment_thread(parent, order, after, limit));
        let walked = self.answers.walk(|comment: &Comment| comment.id, limit, read)?;
        Some(self.looked_at(&walked, order))
    }

    fn by(&self, author: u64, limit: usize) -> Option<Vec<CommentId>> {
        let author = self.id(author);
        let read = |after| block_on(self.reader().comments_by(author, after, limit));
        let walked = self.answers.walk(|comment: &Comment| comment.id, limit, read)?;
        for comment in &walked {
            assert_eq!((comment.author, comment.status), (author, CommentStatus::Active), "{comment:?}");
        }
        Some(self.looked_at(&walked, CommentOrder::Newest))
    }

    /// What every walk must be: in order, nothing twice, and each comment as it was at one moment.
    fn looked_at(&self, walked: &[Comment], order: CommentOrder) -> Vec<CommentId> {
        let ids: Vec<CommentId> = walked.iter().map(|comment| comment.id).collect();
        let sorted = match order {
            CommentOrder::Oldest => ids.is_sorted_by(|a, b| a < b),
            CommentOrder::Newest => ids.is_sorted_by(|a, b| a > b),
        };
        assert!(sorted, "out of order or twice: {ids:?}");
        let known = locked(&self.known);
        for comment in walked {
            let Comment { version, edited_at, status, body, .. } = comment;
            assert_eq!(edited_at.is_some(), *version > 1, "{comment:?}");
            assert_eq!(body.is_none(), *status == CommentStatus::Purged, "{comment:?}");
            if let Some(body) = body {
                let of_version = body.starts_with(&format!("v{version} "));
                assert!(of_version && known.asked.contains(body), "nobody wrote {comment:?}");
            }
        }
        ids
    }

    fn read(&self, mut random: Random) {
        for _ in 0..STEPS {
            let limit = 1 + random.below(6) as usize;
            let (before, index) = (locked(&self.known).clone(), random.below(2) as usize);
            let parent = self.parent(index);
            let order = if random.below(2) == 0 { CommentOrder::Oldest } else { CommentOrder::Newest };
            for met in
                [self.comment_thread(parent, order, limit), self.by(STEADY, limit)].into_iter().flatten()
            {
                let steady = before.steady.iter().filter(|comment| comment.parent == parent);
                let missing = steady.filter(|comment| !met.contains(&comment.id)).collect::<Vec<_>>();
                assert!(missing.is_empty(), "{missing:?} were there all the time, but the walk met {met:?}");
            }
            if let Some(walked) = self.comment_thread(parent, order, limit) {
                let of_parent = before.written.iter().filter(|(_, of)| **of == parent);
                let missing: Vec<_> = of_parent.filter(|(id, _)| !walked.contains(id)).collect();
                assert!(missing.is_empty(), "{missing:?} were written before, but the walk met {walked:?}");
            }
            let ids: Vec<CommentId> = before.statuses.keys().copied().collect();
            let found = self.answers.read(block_on(self.reader().comments(&ids))).unwrap_or_default();
            for (comment, status) in found.into_iter().flatten().zip(before.statuses.values()) {
                assert!(comment.status >= *status, "{comment:?} was {status:?} before");
            }
            self.branch(parent, None, limit);
            self.read_texts(&before, &mut random);
        }
    }

    /// A comment's texts are those that were acknowledged, and more of them later.
    fn read_texts(&self, before: &Known, random: &mut Random) {
        let Some(id) = self.any(random) else { return };
        let texts = block_on(self.reader().comment_versions(id, 0, ENTRIES_MAX));
        let Some(texts) = self.answers.read(texts) else { return };
        assert!(texts.iter().zip(1..).all(|(text, version)| text.version == version), "{texts:?}");
        let acknowledged = before.texts.range((id, 0)..=(id, u32::MAX)).count();
        if texts.len() < acknowledged {
            let Some(comment) = self.comment(id) else { return };
            assert_eq!(comment.status, CommentStatus::Purged, "{acknowledged} texts before, now {texts:?}");
        }
        for text in &texts {
            let reported = before.texts.get(&(id, text.version));
            assert!(reported.is_none_or(|reported| *reported == text.body), "{text:?} was {reported:?}");
        }
    }

    /// Once all is quiet: the log has every change once, each was allowed, and everything is what it says.
    fn audit(&self) -> Verdict {
        let mut known = locked(&self.known);
        known.audit_twins()?;
        let mut changes = by_shard(answer("changes", self.reader().whole_log())?);
        let posts = changes.iter().filter(|change| matches!(change.body, ChangeBody::Posted { .. })).count();
        let of_posts = PARENTS.iter().filter(|(kind, _)| *kind == ParentKind::Post).count();
        equal(|| "posts in the log".to_owned(), &posts, &of_posts)?;
        for change in unclaimed(&known.positions, &changes)? {
            let text = self.text(&known, change)?;
            known.explain(change, text.as_ref())?;
        }
        for change in &mut changes {
            if let Some((id, version, text)) = text_of(change) {
                *text = known.texts.get(&(id, version)).cloned();
            }
        }
        let mut model = Model::default();
        for change in changes {
            audit_change(&model, &change, DEPTH_MAX)?;
            if let ChangeBody::Comment(CommentChange::Withdrawn { by, .. }) = &change.body {
                let expected = known.moderators.get(&change.position);
                equal(|| format!("who withdrew in {change:?}"), &by.as_ref(), &expected)?;
            }
            model.apply(change);
        }
        model.threads.unlogged.reasons.clone_from(&known.reasons);
        let authors: Vec<Id> = (0..USERS).map(|number| self.id(number)).collect();
        compare_comments(&self.store, &model, &self.parents(), &authors)
    }

    /// What a comment said since a change, as far as anybody knows: the log forgets it with the next edit.
    fn text(&self, known: &Known, change: &Change) -> Result<Option<Arc<str>>, String> {
        let mut change = change.clone();
        let Some((id, version, text)) = text_of(&mut change) else { return Ok(None) };
        if let Some(text) = text.take().or_else(|| known.texts.get(&(id, version)).cloned()) {
            return Ok(Some(text));
        }
        let found = answer("comment_versions", self.reader().comment_versions(id, version - 1, 1))?;
        Ok(found.into_iter().next().map(|text| text.body))
    }
}
