//! What a wish about a comment changes, decided on the writer's thread: whether it repeats another, whether the version that
//! an editor has seen is the current one, what has become of a comment.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use kinfolk_core::feed::Removed;
use kinfolk_core::thread::{
    Comment, CommentEdit, CommentId, CommentStatus, Commented, Moderator, NewComment, Parent, ParentKind,
    Withdrawal,
};
use kinfolk_core::{EdgeKind, Error, Id, Result};

use super::Record;
use crate::batch::Batch;
use crate::log::{CommentPlace, EventBody, KeyHash, LoggedText, ThreadEvent};
use crate::posts;
use crate::remembered::key_hash;

/// The longest text that a log frame is made for, whatever a deployment allows.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Where threads after a batch differ from what is visible.
#[derive(Default)]
pub struct PendingThreads {
    records: HashMap<CommentId, (Parent, Record), RandomState>,
    /// Comments that the batch writes, as they were at first.
    first: HashMap<CommentId, Comment, RandomState>,
    keys: HashMap<(Id, KeyHash), CommentId, RandomState>,
    /// How many more replies there are.
    replies: HashMap<CommentId, u64, RandomState>,
    locked: HashMap<Parent, bool, RandomState>,
}

impl PendingThreads {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.records.clear();
        self.first.clear();
        self.keys.clear();
        self.replies.clear();
        self.locked.clear();
    }
}

impl Batch<'_> {
    /// Decides a wish to write a comment.
    pub fn comment(&mut self, wish: NewComment) -> Result<Commented> {
        require_length(&wish.body)?;
        let key = wish.idempotency_key.as_deref().map(key_hash);
        if let Some(comment) = self.repeated_comment(&wish, key)? {
            return Ok(Commented { position: self.position(), comment, is_new: false });
        }
        self.require_parent(wish.parent)?;
        if self.is_locked(wish.parent)? {
            return Err(Error::ThreadLocked);
        }
        let depth = self.reply_depth(&wish)?;
        let id = match self.made.comments.next(self.floor, |_| Ok(true))? {
            Id::Uuid(id) => CommentId(id),
            Id::Integer(id) => CommentId(id.into()),
        };
        let NewComment { parent, author, body, reply_to, .. } = wish;
        let place = CommentPlace { id, parent, author };
        let text = LoggedText::Kept(Arc::clone(&body));
        let record = Record {
            author,
            reply_to,
            depth,
            created_at: self.floor,
            version: 1,
            edited_at: None,
            status: CommentStatus::Active,
            reason: None,
            removed_by: None,
            text: Some(body),
            position: self.next(),
        };
        let comment = record.clone().into_comment((parent, id), 0);
        let pending = &mut self.pending.threads;
        pending.records.insert(id, (parent, record));
        pending.first.insert(id, comment.clone());
        pending.keys.extend(key.map(|key| ((author, key), id)));
        if let Some(answered) = reply_to {
            *pending.replies.entry(answered).or_default() += 1;
        }
        self.push_thread(ThreadEvent::Written { place, depth, reply_to, key, text });
        Ok(Commented { position: self.position(), comment, is_new: true })
    }

    /// Decides a wish to edit a comment.
    pub fn edit_comment(&mut self, CommentEdit { id, version, body }: CommentEdit) -> Result<Commented> {
        require_length(&body)?;
        let (parent, record) = self.required_comment(id)?;
        if !record.is_active() {
            return Err(Error::CommentDeleted { id: id.to_string() });
        }
        if record.version != version {
            return Err(Error::VersionConflict { current: record.version });
        }
        let version = version
            .checked_add(1)
            .ok_or_else(|| Error::InvalidRequest { detail: "the comment was edited too often".into() })?;
        let place = CommentPlace { id, parent, author: record.author };
        let (edited_at, text) = (Some(self.floor), Some(Arc::clone(&body)));
        let record = Record { version, edited_at, text, position: self.next(), ..record };
        let comment = record.clone().into_comment((parent, id), self.replies_to(id)?);
        self.pending.threads.records.insert(id, (parent, record));
        self.push_thread(ThreadEvent::Edited { place, version, text: LoggedText::Kept(body) });
        Ok(Commented { position: self.position(), comment, is_new: true })
    }

    /// Decides a wish to take a comment back.
    pub fn withdraw_comment(
        &mut self,
        id: CommentId,
        withdrawal: Withdrawal,
        by: Option<Moderator>,
    ) -> Result<Removed> {
        let (parent, record) = self.required_comment(id)?;
        let status = withdrawal.status();
        if record.status >= status {
            return Ok(Removed { position: self.position(), changed: false });
        }
        let place = CommentPlace { id, parent, author: record.author };
        let reason = match withdrawal {
            Withdrawal::Remove(reason) => Some(reason),
            Withdrawal::Delete | Withdrawal::Purge => None,
        };
        let record = record.withdrawn(status, reason.as_ref(), by.as_ref());
        self.pending.threads.records.insert(id, (parent, record));
        self.push_thread(ThreadEvent::Withdrawn { place, status, reason, by });
        Ok(Removed { position: self.position(), changed: true })
    }

    /// Decides a wish to lock a thread, or to unlock it.
    pub fn lock_thread(&mut self, parent: Parent, locked: bool) -> Result<Removed> {
        self.require_parent(parent)?;
        let changed = self.is_locked(parent)? != locked;
        if changed {
            self.pending.threads.locked.insert(parent, locked);
            self.push_thread(ThreadEvent::Locked { parent, locked });
        }
        Ok(Removed { position: self.position(), changed })
    }

    fn push_thread(&mut self, event: ThreadEvent) {
        self.push(EdgeKind::Follow, EventBody::Thread(Arc::new(event)));
    }

    /// The first result of an equal wish, if there was one.
    fn repeated_comment(&self, wish: &NewComment, key: Option<KeyHash>) -> Result<Option<Comment>> {
        let Some(key) = key else { return Ok(None) };
        let own = self.pending.threads.keys.get(&(wish.author, key));
        let pending = own.or_else(|| self.earlier?.pending.threads.keys.get(&(wish.author, key)));
        let stored = || self.store.threads.keyed(wish.author, &key, self.floor);
        let Some(id) = pending.map_or_else(stored, |&id| Ok(Some(id)))? else { return Ok(None) };
        let first = self.first_result(id)?;
        let same = wish.parent == first.parent
            && wish.reply_to == first.reply_to
            && first.body.as_ref().is_none_or(|body| *body == wish.body);
        if same { Ok(Some(first)) } else { Err(Error::IdempotencyConflict) }
    }

    /// A comment as it was when it was written; the tombstone if it was purged since.
    fn first_result(&self, id: CommentId) -> Result<Comment> {
        let (parent, record) = self.required_comment(id)?;
        if record.status == CommentStatus::Purged {
            return Ok(record.into_comment((parent, id), self.replies_to(id)?));
        }
        let pending = &self.pending.threads.first;
        let earlier = || self.earlier?.pending.threads.first.get(&id);
        if let Some(first) = pending.get(&id).or_else(earlier) {
            return Ok(first.clone());
        }
        let first = self.store.threads.versions(id, 0, 1)?;
        let text = first.into_iter().next().map(|first| first.body);
        let record = Record {
            version: 1,
            edited_at: None,
            status: CommentStatus::Active,
            reason: None,
            removed_by: None,
            text,
            ..record
        };
        Ok(record.into_comment((parent, id), 0))
    }

    /// A comment after everything that was decided so far.
    fn pending_comment(&self, id: CommentId) -> Result<Option<(Parent, Record)>> {
        let own = self.pending.threads.records.get(&id);
        let pending = own.or_else(|| self.earlier?.pending.threads.records.get(&id));
        pending.map_or_else(|| self.store.threads.record(id), |found| Ok(Some(found.clone())))
    }

    fn required_comment(&self, id: CommentId) -> Result<(Parent, Record)> {
        let missing = || Error::NotFound { detail: format!("there is no comment {id}") };
        self.pending_comment(id)?.ok_or_else(missing)
    }

    /// How many replies a comment has after everything that was decided so far.
    fn replies_to(&self, id: CommentId) -> Result<u64> {
        let more = |pending: &PendingThreads| pending.replies.get(&id).copied().unwrap_or(0);
        let earlier = self.earlier.map_or(0, |earlier| more(&earlier.pending.threads));
        Ok(self.store.threads.reply_count(id)? + earlier + more(&self.pending.threads))
    }

    fn is_locked(&self, parent: Parent) -> Result<bool> {
        let own = self.pending.threads.locked.get(&parent);
        let pending = own.or_else(|| self.earlier?.pending.threads.locked.get(&parent));
        pending.map_or_else(|| Ok(self.store.threads.state(parent)?.locked), |&locked| Ok(locked))
    }

    /// A post must be there; what else comments are written to is not known here.
    fn require_parent(&self, parent: Parent) -> Result<()> {
        if parent.kind != ParentKind::Post {
            return Ok(());
        }
        match self.record(parent.id)? {
            Some(posts::Record::Present(..)) => Ok(()),
            _ => Err(Error::NotFound { detail: format!("there is no post {}", parent.id) }),
        }
    }

    /// How many comments will be above one.
    fn reply_depth(&self, wish: &NewComment) -> Result<u8> {
        let Some(id) = wish.reply_to else { return Ok(0) };
        let refuse = |reason| Error::InvalidReply { id: id.to_string(), reason };
        let answered = self.pending_comment(id)?.filter(|(parent, _)| *parent == wish.parent);
        let (_, answered) = answered.ok_or_else(|| refuse("there is no such comment in this thread"))?;
        if !answered.is_active() {
            return Err(refuse("it was deleted or removed"));
        }
        if answered.depth >= wish.depth_max {
            return Err(refuse("replies can't be deeper; answer a comment above it"));
        }
        Ok(answered.depth + 1)
    }
}

fn require_length(text: &str) -> Result<()> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    Err(Error::InvalidBody { what: "a comment", reason: format!("has at most {TEXT_BYTES_MAX} bytes") })
}
