//! Faults of writing, editing and withdrawing comments, and of locking threads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::comments::{
    CommentChange, CommentEdit, CommentId, CommentStatus, CommentWritten, Moderator, NewComment, Parent,
    ParentKind, Withdrawal,
};
use kinfolk_core::feeds::WriteOutcome;
use kinfolk_core::{Clock, Error, Id, Result, Timestamp};

use crate::faults::{Fault, Planted, locked_model};
use crate::model::Model;
use crate::model::comments::Written;

/// What a store that makes a mistake with comments keeps besides the truth.
#[derive(Default)]
pub(in crate::faults) struct CommentFaultState {
    /// How far the counts of threads are off.
    pub drift: BTreeMap<Parent, i64>,
    /// Keys of requests that were refused.
    refused: BTreeSet<(Id, Arc<str>)>,
    /// The newest comment when the store was started last.
    pub restarted_after: Option<CommentId>,
}

impl Planted {
    pub(crate) fn comment(
        &self,
        model: &Mutex<Model>,
        request: &NewComment,
        clock: &dyn Clock,
    ) -> Result<CommentWritten> {
        let request = self.distort_remark(request);
        if self.fault == Fault::CommentDecidedBefore {
            let repeated = locked_model(model).repeated_comment(&request)?;
            if repeated.is_none() {
                Self::gap();
            }
            let mut model = locked_model(model);
            if let Some(comment) = repeated {
                return Ok(CommentWritten { position: model.position, comment, is_new: false });
            }
            return self.insert(&mut model, &request, clock.now());
        }
        let (mut model, now) = (locked_model(model), clock.now());
        if let Some(repeated) = self.repeat_comment(&mut model, &request)? {
            return Ok(repeated);
        }
        let key = request.idempotency_key.clone().map(|key| (request.author, key));
        let was_refused = key.as_ref().is_some_and(|key| self.state().comments.refused.contains(key));
        if self.fault == Fault::CommentRefusalTakesKey && was_refused {
            return Err(Error::IdempotencyConflict);
        }
        let inserted = self.insert(&mut model, &request, now);
        if inserted.is_err() {
            self.state().comments.refused.extend(key);
        }
        inserted
    }

    /// The request as the fault hears it.
    fn distort_remark(&self, request: &NewComment) -> NewComment {
        let mut request = request.clone();
        match self.fault {
            Fault::CommentTrimsBody => request.body = request.body.trim().into(),
            Fault::CommentDepthUnlimited => request.depth_max = u8::MAX,
            Fault::CommentDepthOffByOne => request.depth_max += 1,
            _ => {}
        }
        request
    }

    /// What the fault answers to a request whose key is known.
    fn repeat_comment(&self, model: &mut Model, request: &NewComment) -> Result<Option<CommentWritten>> {
        let Some(key) = request.idempotency_key.clone() else { return Ok(None) };
        let keys = &model.threads.unlogged.keys;
        let shared = || keys.iter().find(|((_, known), _)| *known == key).map(|(_, id)| *id);
        let own = keys.get(&(request.author, Arc::clone(&key))).copied();
        let found = if self.fault == Fault::CommentKeysShared { own.or_else(shared) } else { own };
        let Some(id) = found else { return Ok(None) };
        let written = model.threads.comments[&id].clone();
        match self.fault {
            Fault::CommentRetryRefused => return Err(Error::IdempotencyConflict),
            Fault::CommentRetryWritesAgain => return Ok(None),
            Fault::CommentRetryChecksPlace => model.require_open(request.parent)?,
            Fault::CommentRetryOfWithdrawnRefused if written.status != CommentStatus::Active => {
                return Err(Error::CommentDeleted { id: id.to_string() });
            }
            _ => {}
        }
        let first = model.threads.unlogged.bodies.get(&id).cloned();
        if !self.is_same(&written, first.as_ref(), request) {
            return Err(Error::IdempotencyConflict);
        }
        self.count_retry(model, id, &written);
        self.first_result(model, id, &written).map(Some)
    }

    fn is_same(&self, written: &Written, first: Option<&Arc<str>>, request: &NewComment) -> bool {
        let is_purged = written.status == CommentStatus::Purged;
        let compared = match self.fault {
            Fault::CommentKeyComparesCurrentText => {
                written.versions.last().and_then(|(_, text)| text.as_ref())
            }
            _ => first,
        };
        let same_text = compared == Some(&request.body);
        (written.parent == request.parent || self.fault == Fault::CommentKeyIgnoresParent)
            && (written.reply_to == request.reply_to || self.fault == Fault::CommentKeyIgnoresReply)
            && match self.fault {
                Fault::CommentKeyIgnoresText => true,
                Fault::CommentRetryAfterPurgeIgnoresText => is_purged || same_text,
                Fault::CommentRetryAfterPurgeConflicts => !is_purged && same_text,
                _ => same_text,
            }
    }

    /// What a retry does that it should not.
    fn count_retry(&self, model: &mut Model, id: CommentId, written: &Written) {
        match self.fault {
            Fault::CommentRetryEmitsEvent => {
                let &Written { parent, author, reply_to, depth, .. } = written;
                let reported = CommentChange::Written { id, parent, author, reply_to, depth, body: None };
                self.log_only(model, ChangeBody::Comment(reported));
            }
            Fault::CommentCountDoubledByRetry => {
                *self.state().comments.drift.entry(written.parent).or_default() += 1;
            }
            _ => {}
        }
    }

    /// Puts an event into the log that changes nothing.
    fn log_only(&self, model: &mut Model, body: ChangeBody) {
        model.position = model.position.next();
        model.changes.push(Change { position: model.position, at: model.floor, body });
    }

    fn first_result(&self, model: &Model, id: CommentId, written: &Written) -> Result<CommentWritten> {
        let is_purged = written.status == CommentStatus::Purged;
        let mut answer = model.commented(id)?;
        answer.is_new = self.fault == Fault::CommentRetrySaysNew;
        if !is_purged && self.fault != Fault::CommentRetryShowsCurrent {
            answer.comment = model.threads.first(id).unwrap_or(answer.comment);
        }
        if is_purged && self.fault == Fault::CommentRetryAfterPurgeTellsText {
            answer.comment.body = written.versions[0].1.clone();
        }
        Ok(answer)
    }

    /// Writes a comment that repeats none, where the fault finds nothing against it.
    fn insert(&self, model: &mut Model, request: &NewComment, now: Timestamp) -> Result<CommentWritten> {
        let parent = request.parent;
        let was_there = model.posts.contains_key(&parent.id);
        let is_locked = match self.fault {
            Fault::ThreadLockIgnored => false,
            Fault::ThreadLockIgnoresReplies if request.reply_to.is_some() => false,
            Fault::ThreadLockSharedByKinds => {
                model.threads.locked.iter().any(|locked| locked.id == parent.id)
            }
            _ => model.threads.locked.contains(&parent),
        };
        let place = match self.fault {
            Fault::CommentToUnknownPost => Ok(()),
            Fault::CommentToDeletedPost if was_there => Ok(()),
            Fault::CommentLooksForEveryParent => model.require_parent(Parent::post(parent.id)),
            _ => model.require_parent(parent),
        };
        place?;
        if is_locked {
            return Err(Error::ThreadLocked);
        }
        let depth = self.depth(model, request)?;
        let id = self.make_comment_id(model, now);
        let floor = model.floor;
        if self.fault == Fault::CommentTimeGoesBackWithClock {
            model.floor = Timestamp::MIN;
        }
        let inserted = model.insert_comment(request, depth, id, now);
        model.floor = model.floor.max(floor);
        inserted
    }

    fn depth(&self, model: &Model, request: &NewComment) -> Result<u8> {
        let above = request.reply_to.and_then(|id| model.threads.comments.get(&id));
        let fits = above.filter(|above| above.depth < request.depth_max);
        let lax = match self.fault {
            Fault::CommentReplyAcrossThreads => fits.filter(|above| above.status == CommentStatus::Active),
            Fault::CommentReplyToWithdrawn => fits.filter(|above| above.parent == request.parent),
            _ => None,
        };
        lax.map_or_else(|| model.depth_of(request), |above| Ok(above.depth + 1))
    }

    fn make_comment_id(&self, model: &Model, now: Timestamp) -> CommentId {
        let right = model.threads.generate_id(now);
        let from_clock = || {
            let mut id = CommentId(u128::from(now.millis()) << 80 | 7 << 76 | 2 << 62);
            while model.threads.comments.contains_key(&id) {
                id.0 += 1;
            }
            id
        };
        match self.fault {
            Fault::CommentIdsFromClock => from_clock(),
            Fault::CommentIdsOfVersion4 => CommentId(right.0 & !(0xf << 76) | 4 << 76),
            Fault::RestartRepeatsCommentIds if self.state().comments.restarted_after.is_some() => {
                from_clock()
            }
            _ => right,
        }
    }

    pub(crate) fn edit_comment(
        &self,
        model: &Mutex<Model>,
        edit: &CommentEdit,
        clock: &dyn Clock,
    ) -> Result<CommentWritten> {
        if self.fault == Fault::CommentEditComparedBefore {
            let found = locked_model(model).comment(edit.id);
            if found.is_some_and(|comment| {
                comment.status == CommentStatus::Active && comment.version == edit.version
            }) {
                Self::gap();
                return locked_model(model).apply_edit(edit, clock.now());
            }
        }
        if self.fault == Fault::ThreadReadTorn {
            Self::gap();
        }
        let (mut model, now) = (locked_model(model), clock.now());
        let Some(comment) = model.comment(edit.id) else { return model.edit_comment(edit, now) };
        let is_active = comment.status == CommentStatus::Active;
        match self.fault {
            Fault::CommentEditOnce if comment.version > 1 => {
                return Err(Error::CommentDeleted { id: edit.id.to_string() });
            }
            Fault::CommentEditIgnoresVersion if is_active => return model.apply_edit(edit, now),
            Fault::CommentEditOfWithdrawn if edit.version == comment.version => {
                return model.apply_edit(edit, now);
            }
            Fault::CommentEditOfSameTextIgnored if is_active && comment.body.as_ref() == Some(&edit.body) => {
                return Ok(CommentWritten { position: model.position, comment, is_new: true });
            }
            Fault::ThreadLockRefusesEdits if model.threads.locked.contains(&comment.parent) => {
                return Err(Error::ThreadLocked);
            }
            _ => {}
        }
        model.edit_comment(edit, now).map(|mut edited| {
            self.distort_comment(&model, &mut edited.comment);
            edited
        })
    }

    pub(crate) fn withdraw_comment(
        &self,
        model: &Mutex<Model>,
        id: CommentId,
        (withdrawal, by): (&Withdrawal, Option<&Moderator>),
        clock: &dyn Clock,
    ) -> Result<WriteOutcome> {
        let act = (withdrawal, by);
        if self.fault == Fault::CommentWithdrawalDecidedBefore {
            let found = locked_model(model).comment(id);
            if found.is_some_and(|comment| comment.status < withdrawal.status()) {
                Self::gap();
                let mut model = locked_model(model);
                model.apply_withdrawal(id, act, clock.now())?;
                return Ok(WriteOutcome { position: model.position, changed: true });
            }
        }
        let (mut model, now) = (locked_model(model), clock.now());
        let unchanged = WriteOutcome { position: model.position, changed: false };
        let Some(comment) = model.comment(id) else {
            return match self.fault {
                Fault::CommentWithdrawalOfNothingSucceeds => Ok(unchanged),
                _ => model.withdraw_comment(id, act, now),
            };
        };
        let repeated = comment.status >= withdrawal.status();
        match self.fault {
            Fault::CommentDeletionRepeatEmitsEvent if repeated => {
                let (parent, author, status) = (comment.parent, comment.author, comment.status);
                self.log_only(
                    &mut model,
                    ChangeBody::Comment(CommentChange::Withdrawn { id, parent, author, status, by: None }),
                );
                return Ok(WriteOutcome { position: model.position, changed: false });
            }
            Fault::CommentDeletionRepeatSaysChanged => {
                return model
                    .withdraw_comment(id, act, now)
                    .map(|removed| WriteOutcome { changed: true, ..removed });
            }
            Fault::CommentStatusGetsBetter if repeated && comment.status != withdrawal.status() => {
                model.apply_withdrawal(id, act, now)?;
                return Ok(WriteOutcome { position: model.position, changed: true });
            }
            Fault::CommentDeletedCannotBeRemoved if comment.status == CommentStatus::Deleted => {
                return Ok(unchanged);
            }
            Fault::CommentEditedCannotBeWithdrawn if comment.version > 1 => return Ok(unchanged),
            Fault::CommentRemovalTakesLastReason if repeated => {
                if let (Withdrawal::Remove(reason), CommentStatus::Removed) = (withdrawal, comment.status) {
                    model.threads.unlogged.reasons.insert(id, Arc::clone(reason));
                }
            }
            Fault::CommentCountedDownAgain if comment.status != CommentStatus::Active => {
                *self.state().comments.drift.entry(comment.parent).or_default() -= 1;
            }
            _ => {}
        }
        model.withdraw_comment(id, act, now)
    }

    pub(crate) fn lock_comment_thread(
        &self,
        model: &mut Model,
        parent: Parent,
        locked: bool,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        let known = Parent { kind: ParentKind::Item, ..parent };
        if self.fault == Fault::ThreadLockOfUnknownPost && model.require_parent(parent).is_err() {
            return model.lock_comment_thread(known, locked, now);
        }
        let mut done = model.lock_comment_thread(parent, locked, now)?;
        if self.fault == Fault::ThreadLockRepeatEmitsEvent && !done.changed {
            self.log_only(model, ChangeBody::Comment(CommentChange::Locked { parent, locked }));
            done.position = model.position;
        }
        Ok(done)
    }

    /// What the fault does to comments when the store is started again.
    pub(in crate::faults) fn reopen_comments(&self, model: &mut Model) {
        let threads = &mut model.threads;
        match self.fault {
            Fault::RestartForgetsLocks => threads.locked.clear(),
            Fault::RestartForgetsPurges => {
                let purged =
                    threads.comments.values_mut().filter(|written| written.status == CommentStatus::Purged);
                purged.for_each(|written| written.status = CommentStatus::Removed);
            }
            Fault::RestartForgetsCommentKeys => threads.unlogged.keys.clear(),
            Fault::RestartForgetsReasons => threads.unlogged.reasons.clear(),
            Fault::RestartForgetsModerators => {
                threads.comments.values_mut().for_each(|written| written.removed_by = None);
            }
            Fault::RestartRepeatsCommentIds => {
                self.state().comments.restarted_after = threads.comments.last_key_value().map(|(id, _)| *id);
            }
            Fault::RestartDoublesCommentCounts => {
                let parents =
                    model.threads.comments.values().map(|written| written.parent).collect::<BTreeSet<_>>();
                let mut state = self.state();
                for parent in parents {
                    let count = model.thread_state(parent).count as i64;
                    *state.comments.drift.entry(parent).or_default() += count;
                }
            }
            _ => {}
        }
    }
}
