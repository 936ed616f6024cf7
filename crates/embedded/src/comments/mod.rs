//! Comments on disk: one LSM tree with a projection of the log's comments. What a request changes is planned elsewhere.
//!
//! ```text
//! 0u8                             -> position u64                  up to where the log is applied
//! 1u8 | parent | id               -> record                        a thread's comments, in the order of time
//! 2u8 | id                        -> parent                        where a comment is
//! 3u8 | parent | reply_to | id    -> nothing                       direct replies; reply_to is 0 at the top
//! 4u8 | author | !id              -> parent                        an author's active comments, newest first
//! 5u8 | id | version u32          -> position u64 | at u48 | body  bodies before the newest one
//! 6u8 | author | hash of the key  -> id | at u48                   idempotency keys, and keys with the bodies sent under them
//! 7u8 | parent                    -> count u64 | locked u8         a thread as a whole
//! 8u8 | id                        -> count u64                     how many direct replies there are, if there are any
//! 9u8 | id                        -> at u48 | positions u64…       purged, but still in files: since when, and where in the log
//! ```
//!
//! Everything is big-endian; `!` is the bitwise complement; a parent is its kind u8 and its id. A record is
//! `flags u8 | depth u8 | author | created_at u48 | version u32 | position u64 | reply_to (flag 4) | edited_at u48 (flag 8) |
//! length u32, reason (flag 16) | moderator as in the log (flag 64) | body (flag 32)`; flags 1 and 2 are the status. `position` is where
//! the body is in the log. Records that have no moderator are as they were before moderators were recorded.
//! The records are the truth: a comment is in other rows after its record is there. Counts are of what is applied, which a
//! flushed tree knows exactly, so that a replay counts nothing twice.

mod backup;
mod erase;
mod layout;
mod planning;
mod port;
mod verify;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::comments::{
    Branch, Comment, CommentId, CommentOrder, CommentStatus, CommentThreadState, CommentVersion, Parent,
};
use kinfolk_core::{Error, Id, IdKind, Result, Sequence, Timestamp, body_key_hash};
use lsm_tree::SeqNo;
use parking_lot::Mutex;

pub(crate) use backup::restore;
pub(crate) use erase::erase_when_due;
pub(crate) use layout::{Record, StoredVersion, version_key};

use crate::disk::backup_file::BackupPart;
use crate::disk::format::Content;
use crate::log::{CommentHead, Event, EventBody, LoggedBody, LoggedCommentEvent};
use crate::lsm::{IdempotencyKeys, KeyRow, KeyUse, LoggedKey, LsmTree, Shared};
use crate::projection::{Difference, Row, TreeProjection};

/// The comment threads of a store.
pub(crate) struct Comments {
    ids: IdKind,
    pub tree: LsmTree,
    /// Held while purged bodies are erased.
    erasing: Mutex<()>,
    keys: IdempotencyKeys,
}

impl Comments {
    /// Opens the comments in a folder, making it if it is missing. Idempotency keys are kept for `key_keep`.
    pub(crate) fn open(folder: &Path, ids: IdKind, shared: &Shared, key_keep: Duration) -> Result<Self> {
        let keys = IdempotencyKeys::new(layout::KEY, ids, IdKind::Uuid, key_keep);
        let tree = LsmTree::open("comments", folder, shared, &keys)?;
        Ok(Self { ids, tree, erasing: Mutex::new(()), keys })
    }

    /// Where a comment is.
    fn parent_of(&self, id: CommentId) -> Result<Option<Parent>> {
        let value = self.tree.get(layout::parent_key(id))?;
        value.map(|value| layout::read_parent(self.ids, &value).ok_or_else(damaged)).transpose()
    }

    /// A comment of a thread.
    fn record_in(&self, parent: Parent, id: CommentId) -> Result<Option<Record>> {
        let value = self.tree.get(layout::record_key(parent, id))?;
        value.map(|value| Record::decode(parent, id, &value).ok_or_else(damaged)).transpose()
    }

    /// A comment and where it is.
    fn record(&self, id: CommentId) -> Result<Option<Record>> {
        self.parent_of(id)?.map_or(Ok(None), |parent| self.record_in(parent, id))
    }

    fn reply_count(&self, id: CommentId) -> Result<u64> {
        let value = self.tree.get(layout::reply_count_key(id))?;
        value.map_or(Ok(0), |value| layout::read_count(&value).ok_or_else(damaged))
    }

    fn comment_of(&self, Record { comment, .. }: Record) -> Result<Comment> {
        Ok(Comment { reply_count: self.reply_count(comment.id)?, ..comment })
    }

    /// A comment, or its tombstone.
    pub(crate) fn comment(&self, id: CommentId) -> Result<Option<Comment>> {
        self.record(id)?.map(|record| self.comment_of(record)).transpose()
    }

    /// A page of a thread.
    pub(crate) fn comment_thread(
        &self,
        parent: Parent,
        order: CommentOrder,
        after: Option<CommentId>,
        limit: usize,
    ) -> Result<Vec<Comment>> {
        let prefix = layout::thread_prefix(parent);
        let after = after.map(|id| layout::record_key(parent, id));
        let read = |row: Result<Row>| self.comment_of(read_record(self.ids, &row?)?);
        match order {
            CommentOrder::Oldest => {
                let rows = self.tree.rows(&prefix, (after.as_deref(), None), SeqNo::MAX);
                rows.take(limit).map(read).collect()
            }
            CommentOrder::Newest => {
                let rows = self.tree.rows(&prefix, (None, after.as_deref()), SeqNo::MAX);
                rows.rev().take(limit).map(read).collect()
            }
        }
    }

    /// Direct replies, oldest first.
    pub(crate) fn replies(
        &self,
        Branch { parent, reply_to, after }: Branch,
        limit: usize,
    ) -> Result<Vec<Comment>> {
        let after = after.map(|id| layout::reply_key(parent, reply_to, id));
        let rows =
            self.tree.rows(&layout::branch_prefix(parent, reply_to), (after.as_deref(), None), SeqNo::MAX);
        let read = |row: Result<Row>| {
            let (_, _, id) = layout::read_reply_key(self.ids, &row?.0).ok_or_else(damaged)?;
            self.comment_of(self.required(parent, id)?)
        };
        rows.take(limit).map(read).collect()
    }

    /// An author's active comments, newest first.
    pub(crate) fn by_author(
        &self,
        author: Id,
        after: Option<CommentId>,
        limit: usize,
    ) -> Result<Vec<Comment>> {
        let after = after.map(|id| layout::author_key(author, id));
        let rows = self.tree.rows(&layout::author_prefix(author), (after.as_deref(), None), SeqNo::MAX);
        let mut found = Vec::new();
        for row in rows {
            if found.len() == limit {
                break;
            }
            let (key, value) = row?;
            let (_, id) = layout::read_author_key(self.ids, &key).ok_or_else(damaged)?;
            let parent = layout::read_parent(self.ids, &value).ok_or_else(damaged)?;
            let record = self.required(parent, id)?;
            // Withdrawn since its row was read: then it is in no page that is made from now on.
            if record.comment.is_active() {
                found.push(self.comment_of(record)?);
            }
        }
        Ok(found)
    }

    /// Bodies that a comment has or had, oldest first, with versions above `after`.
    pub(crate) fn versions(&self, id: CommentId, after: u32, limit: usize) -> Result<Vec<CommentVersion>> {
        // The newest first: what is edited meanwhile is then among the older ones, and left out there.
        let Some(record) = self.record(id)? else { return Ok(Vec::new()) };
        let Some(newest) = record.newest_version() else { return Ok(Vec::new()) };
        let older = self.older_versions(id, after).map(|row| row.map(|stored| stored.version));
        let older =
            older.take_while(|row| row.as_ref().map_or(true, |older| older.version < record.comment.version));
        let newest = (newest.version.version > after).then_some(Ok(newest.version));
        older.chain(newest).take(limit).collect()
    }

    fn older_versions(
        &self,
        id: CommentId,
        after: u32,
    ) -> impl Iterator<Item = Result<StoredVersion>> + Send + use<> {
        let after = version_key(id, after);
        let rows = self.tree.rows(&layout::versions_prefix(id), (Some(&after), None), SeqNo::MAX);
        rows.map(|row| {
            let (key, value) = row?;
            StoredVersion::decode(&key, &value).map(|(_, version)| version).ok_or_else(damaged)
        })
    }

    /// What is known of a thread as a whole.
    pub(crate) fn state(&self, parent: Parent) -> Result<CommentThreadState> {
        let value = self.tree.get(layout::state_key(parent))?;
        value
            .map_or(Ok(CommentThreadState::default()), |value| layout::read_state(&value).ok_or_else(damaged))
    }

    /// The newest id that the store made, if it ever made one.
    pub(crate) fn newest_generated_id(&self) -> Result<Option<Id>> {
        let newest = self.tree.rows(&[layout::PARENT], (None, None), SeqNo::MAX).next_back().transpose()?;
        newest.map(|(key, _)| Ok(Id::Uuid(layout::read_tagged(&key).ok_or_else(damaged)?.0))).transpose()
    }

    /// Whether a version of a comment is what an active comment says.
    pub(crate) fn is_current(&self, head: CommentHead, version: u32) -> Result<bool> {
        let value = self.tree.get(layout::record_key(head.parent, head.id))?;
        let found =
            value.map(|value| layout::read_version(self.ids, &value).ok_or_else(damaged)).transpose()?;
        Ok(found == Some((CommentStatus::Active, version)))
    }

    fn apply_one(&self, body: &LoggedCommentEvent, event: &Event) -> Result<()> {
        match body {
            LoggedCommentEvent::Written { head, depth, reply_to, key, body } => {
                let comment = Comment {
                    id: head.id,
                    parent: head.parent,
                    author: head.author,
                    reply_to: *reply_to,
                    depth: *depth,
                    created_at: event.at,
                    version: 1,
                    edited_at: None,
                    status: CommentStatus::Active,
                    body: Some(body.string()),
                    reason: None,
                    removed_by: None,
                    reply_count: 0,
                };
                self.put_new(&Record { comment, position: event.position })?;
                if let Some(hash) = key {
                    let used = KeyUse { id: Id::Uuid(head.id.0), at: event.at };
                    self.keys.put(&self.tree, KeyRow { author: head.author, hash: *hash, used });
                    // A body that was erased since then was there when this was applied for the first time.
                    if let LoggedBody::Kept(body) = body {
                        let hash = body_key_hash(hash, body);
                        self.keys.put(&self.tree, KeyRow { author: head.author, hash, used });
                    }
                }
                self.keys.note(event.at);
                Ok(())
            }
            LoggedCommentEvent::Edited { head, version, body } => {
                self.apply_edit(*head, *version, body, event)
            }
            LoggedCommentEvent::Withdrawn { head, status, reason, by } => {
                let Record { comment, position } = self.required(head.parent, head.id)?;
                if comment.is_active() {
                    self.tree.remove(layout::author_key(head.author, head.id));
                    self.change_state(head.parent, |state| match state.count.checked_sub(1) {
                        Some(count) => state.count = count,
                        None => tracing::error!(parent = %head.parent.id, "a thread has fewer comments than are taken back; run verify"),
                    })?;
                }
                let comment = comment.withdrawn(*status, reason.as_ref(), by.as_ref());
                let record = Record { comment, position };
                if *status == CommentStatus::Purged {
                    return self.purge(&record, event.at);
                }
                self.put_record(&record);
                Ok(())
            }
            LoggedCommentEvent::Locked { parent, locked } => {
                self.change_state(*parent, |state| state.locked = *locked)
            }
        }
    }

    fn apply_edit(&self, head: CommentHead, version: u32, body: &LoggedBody, event: &Event) -> Result<()> {
        let record = self.required(head.parent, head.id)?;
        if let Some(before) = record.newest_version() {
            self.put_version(head.id, &before);
        }
        let (body, edited_at) = (Some(body.string()), Some(event.at));
        let comment = Comment { version, edited_at, body, ..record.comment };
        self.put_record(&Record { comment, position: event.position });
        Ok(())
    }

    /// Leaves the tombstone, and notes which positions of the log are still to be erased.
    fn purge(&self, record: &Record, at: Timestamp) -> Result<()> {
        let id = record.comment.id;
        // Without the bodies, which may be many.
        let older = self.older_versions(id, 0).map(|row| row.map(|old| (old.version.version, old.position)));
        let older: Vec<(u32, Sequence)> = older.collect::<Result<_>>()?;
        let mut positions: Vec<Sequence> = older.iter().map(|&(_, position)| position).collect();
        positions.push(record.position);
        self.put_record(record);
        for (version, _) in older {
            self.tree.remove(version_key(id, version));
        }
        self.tree.insert(layout::unerased_key(id), layout::unerased_value(at, &positions));
        Ok(())
    }

    /// The record of a comment that an earlier event wrote.
    fn required(&self, parent: Parent, id: CommentId) -> Result<Record> {
        self.record_in(parent, id)?.ok_or_else(|| torn(id))
    }

    fn put_record(&self, record: &Record) {
        let Comment { parent, id, .. } = record.comment;
        self.tree.insert(layout::record_key(parent, id), record.encode());
    }

    /// Puts a comment in that is not there, with all that follows from it.
    pub(crate) fn put_new(&self, record: &Record) -> Result<()> {
        let Comment { parent, id, author, reply_to, .. } = record.comment;
        self.put_record(record);
        self.tree.insert(layout::parent_key(id), layout::parent_value(parent));
        self.tree.insert(layout::reply_key(parent, reply_to, id), []);
        if let Some(target) = reply_to {
            let count = self.reply_count(target)? + 1;
            self.tree.insert(layout::reply_count_key(target), count.to_be_bytes());
        }
        if record.comment.is_active() {
            self.tree.insert(layout::author_key(author, id), layout::parent_value(parent));
            self.change_state(parent, |state| state.count += 1)?;
        }
        Ok(())
    }

    /// Puts a body in that a comment had.
    pub(crate) fn put_version(&self, id: CommentId, stored: &StoredVersion) {
        self.tree.insert(version_key(id, stored.version.version), stored.encode());
    }

    /// Changes what is known of a thread as a whole.
    pub(crate) fn change_state(
        &self,
        parent: Parent,
        change: impl FnOnce(&mut CommentThreadState),
    ) -> Result<()> {
        let mut state = self.state(parent)?;
        change(&mut state);
        self.tree.insert(layout::state_key(parent), layout::state_value(state));
        Ok(())
    }

    /// All comments as of a moment, thread by thread.
    pub(crate) fn records(&self, moment: SeqNo) -> impl Iterator<Item = Result<Record>> + Send + use<> {
        let ids = self.ids;
        self.tree.rows(&[layout::RECORD], (None, None), moment).map(move |row| read_record(ids, &row?))
    }

    /// All bodies before the newest ones, as of a moment.
    fn all_versions(
        &self,
        moment: SeqNo,
    ) -> impl Iterator<Item = Result<(CommentId, StoredVersion)>> + Send + use<> {
        self.tree.rows(&[layout::OLDER_BODY], (None, None), moment).map(|row| {
            let (key, value) = row?;
            StoredVersion::decode(&key, &value).ok_or_else(damaged)
        })
    }

    /// All locked threads, as of a moment.
    fn locked(&self, moment: SeqNo) -> impl Iterator<Item = Result<Parent>> + Send + use<> {
        let ids = self.ids;
        self.tree.rows(&[layout::STATE], (None, None), moment).filter_map(move |row| {
            let read = |(key, value): Row| {
                let parent = layout::read_parent(ids, key.get(1..).unwrap_or_default());
                parent.zip(layout::read_state(&value)).ok_or_else(damaged)
            };
            let locked = |(parent, state): (Parent, CommentThreadState)| state.locked.then_some(parent);
            row.and_then(read).map(locked).transpose()
        })
    }
}

impl TreeProjection for Comments {
    const CONTENT: Content = Content::Comments;
    const STAGE: &'static str = "comparing comments";
    const KEYED: &'static str = "comment";
    type Tally = verify::Tallying;

    fn tree(&self) -> &LsmTree {
        &self.tree
    }

    fn keys(&self) -> &IdempotencyKeys {
        &self.keys
    }

    fn apply_event(&self, event: &Event) -> Result<()> {
        if let EventBody::Comment(body) = &event.body { self.apply_one(body, event) } else { Ok(()) }
    }

    fn examine(
        self: &Arc<Self>,
        row: &Row,
        tally: &mut Self::Tally,
        found: &mut Vec<Difference>,
    ) -> Result<()> {
        verify::examine(self, row, tally, found)
    }

    fn finish_tally(self: &Arc<Self>, tally: &mut Self::Tally, found: &mut Vec<Difference>) -> Result<()> {
        verify::finish_tally(self, tally, found)
    }

    fn key_of(&self, event: &Event) -> Option<LoggedKey> {
        let EventBody::Comment(body) = &event.body else { return None };
        let LoggedCommentEvent::Written { head, key: Some(hash), .. } = &**body else { return None };
        let logged = Some(KeyUse { id: Id::Uuid(head.id.0), at: event.at });
        Some(LoggedKey { author: head.author, hash: *hash, logged })
    }

    fn is_sound(&self, key: &LoggedKey, KeyUse { id, at }: KeyUse, _: Timestamp) -> Result<bool> {
        let is_it = |record: Record| record.comment.author == key.author && record.comment.created_at == at;
        Ok(self.record(comment_id(id))?.is_some_and(is_it))
    }

    fn back_up(&self) -> Result<BackupPart> {
        Ok(backup::back_up(self))
    }

    fn may_be_compacted(&self) -> bool {
        // Erasing purged bodies compacts all of them; others would have to wait for it.
        !self.erasing.is_locked()
    }
}

/// An id as that of a comment, which is a UUID.
fn comment_id(id: Id) -> CommentId {
    match id {
        Id::Uuid(id) => CommentId(id),
        Id::Integer(id) => CommentId(id.into()),
    }
}

fn read_record(ids: IdKind, (key, value): &Row) -> Result<Record> {
    let read = layout::read_record_key(ids, key);
    read.and_then(|(parent, id)| Record::decode(parent, id, value)).ok_or_else(damaged)
}

fn damaged() -> Error {
    Error::corrupt("a row of comments has an unknown layout; restore from a backup")
}

/// A row refers to a comment whose record is missing.
fn torn(id: CommentId) -> Error {
    Error::corrupt(format!("the record of comment {id} is missing; run verify"))
}
