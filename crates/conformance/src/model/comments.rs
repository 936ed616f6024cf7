//! Comment threads by brute force: every read looks at all comments. Like [`Model`], so plain that it is right by reading
//! it. The model's log keeps every body until it is erased; [`Model::changes`] is the public view.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::comments::{
    Branch, Comment, CommentChange, CommentEdit, CommentId, CommentOrder, CommentStatus, CommentThreadState,
    CommentVersion, CommentWritten, Moderator, NewComment, Parent, ParentKind, Withdrawal,
};
use kinfolk_core::feeds::{PostState, WriteOutcome};
use kinfolk_core::{Error, Id, Result, Timestamp};

use crate::model::Model;

/// All threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Threads {
    pub comments: BTreeMap<CommentId, Written>,
    pub locked: BTreeSet<Parent>,
    pub unlogged: Unlogged,
}

/// A comment that was written once, whatever has become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub parent: Parent,
    pub author: Id,
    pub reply_to: Option<CommentId>,
    pub depth: u8,
    pub status: CommentStatus,
    pub removed_by: Option<Moderator>,
    /// All that it said, the oldest first: since when, and what. A text is missing where the log did not tell it.
    pub versions: Vec<(Timestamp, Option<Arc<str>>)>,
}

/// What a store keeps of comments that is not in its public log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unlogged {
    /// Which comment was written under an author's key.
    pub keys: BTreeMap<(Id, Arc<str>), CommentId>,
    /// What comments under keys said first: a purge does not make another body the same.
    pub bodies: BTreeMap<CommentId, Arc<str>>,
    /// Why moderators removed comments.
    pub reasons: BTreeMap<CommentId, Arc<str>>,
}

impl Written {
    fn is_active(&self) -> bool {
        self.status == CommentStatus::Active
    }

    pub(crate) fn version(&self) -> u32 {
        self.versions.len() as u32
    }

    /// What it said as a version, unless it was purged.
    fn text(&self, version: u32) -> Option<Arc<str>> {
        let (_, text) = &self.versions[version as usize - 1];
        text.clone().filter(|_| self.status != CommentStatus::Purged)
    }
}

impl Threads {
    /// Applies what is known to have happened at a time.
    pub(crate) fn apply(&mut self, at: Timestamp, reported: CommentChange) {
        match reported {
            CommentChange::Written { id, parent, author, reply_to, depth, body } => {
                let (status, versions) = (CommentStatus::Active, vec![(at, body)]);
                let written = Written { parent, author, reply_to, depth, status, removed_by: None, versions };
                self.comments.insert(id, written);
            }
            CommentChange::Edited { id, body, .. } => {
                self.comments.entry(id).and_modify(|written| written.versions.push((at, body)));
            }
            CommentChange::Withdrawn { id, status, by, .. } => {
                self.comments.entry(id).and_modify(|written| {
                    written.status = status;
                    written.removed_by = by.or(written.removed_by.take());
                });
            }
            CommentChange::Locked { parent, locked: true } => _ = self.locked.insert(parent),
            CommentChange::Locked { parent, locked: false } => _ = self.locked.remove(&parent),
        }
    }

    /// An id of version 7 that is higher than all before, and in the order of time where the clock goes forward.
    pub(crate) fn generate_id(&self, now: Timestamp) -> CommentId {
        let id = u128::from(now.millis()) << 80 | 7 << 76 | 2 << 62;
        let newest = self.comments.last_key_value();
        CommentId(newest.map_or(id, |(newest, _)| id.max(newest.0 + 1)))
    }

    /// A comment as it is now.
    pub(crate) fn comment(&self, id: CommentId) -> Option<Comment> {
        let written = self.comments.get(&id)?;
        let version = written.version();
        let edited_at = written.versions.last().map(|(at, _)| *at).filter(|_| version > 1);
        let replies = self.comments.values().filter(|other| other.reply_to == Some(id));
        Some(Comment {
            version,
            edited_at,
            status: written.status,
            body: written.text(version),
            reason: self.unlogged.reasons.get(&id).cloned(),
            removed_by: written.removed_by.clone(),
            reply_count: replies.count() as u64,
            ..self.first(id)?
        })
    }

    /// A comment as it was when it was written.
    pub(crate) fn first(&self, id: CommentId) -> Option<Comment> {
        let written = self.comments.get(&id)?;
        Some(Comment {
            id,
            parent: written.parent,
            author: written.author,
            reply_to: written.reply_to,
            depth: written.depth,
            created_at: written.versions[0].0,
            version: 1,
            edited_at: None,
            status: CommentStatus::Active,
            body: written.text(1),
            reason: None,
            removed_by: None,
            reply_count: 0,
        })
    }

    /// All comments that are wanted, in the order of their ids.
    pub(crate) fn all(&self, wanted: impl Fn(&Written) -> bool) -> Vec<Comment> {
        let wanted = self.comments.iter().filter(|(_, written)| wanted(written));
        wanted.filter_map(|(&id, _)| self.comment(id)).collect()
    }

    /// An event as the log shows it now: with a body only while it is the current body of an active comment.
    pub(crate) fn reported(&self, change: &Change) -> Change {
        let mut change = change.clone();
        let Some((id, version, body)) = text_of(&mut change) else { return change };
        let is_current = |written: &Written| written.is_active() && written.version() == version;
        if !self.comments.get(&id).is_some_and(is_current) {
            *body = None;
        }
        change
    }
}

impl Model {
    /// Writes a comment when the clock shows `now`; it gets the id `made`.
    pub(crate) fn write_comment(
        &mut self,
        request: &NewComment,
        generated: CommentId,
        now: Timestamp,
    ) -> Result<CommentWritten> {
        if let Some(comment) = self.repeated_comment(request)? {
            return Ok(CommentWritten { position: self.position, comment, is_new: false });
        }
        self.require_open(request.parent)?;
        let depth = self.depth_of(request)?;
        self.insert_comment(request, depth, generated, now)
    }

    /// The first result of a request that was fulfilled before.
    pub(crate) fn repeated_comment(&self, request: &NewComment) -> Result<Option<Comment>> {
        let threads = &self.threads;
        let key = request.idempotency_key.clone().map(|key| (request.author, key));
        let Some(&id) = key.and_then(|key| threads.unlogged.keys.get(&key)) else { return Ok(None) };
        let written = &threads.comments[&id];
        let is_purged = written.status == CommentStatus::Purged;
        let same = (written.parent, written.reply_to) == (request.parent, request.reply_to)
            && threads.unlogged.bodies.get(&id) == Some(&request.body);
        match same {
            false => Err(Error::IdempotencyConflict),
            true if is_purged => Ok(threads.comment(id)),
            true => Ok(threads.first(id)),
        }
    }

    /// Whether a comment can be written to a parent.
    pub(crate) fn require_open(&self, parent: Parent) -> Result<()> {
        self.require_parent(parent)?;
        if self.threads.locked.contains(&parent) { Err(Error::ThreadLocked) } else { Ok(()) }
    }

    pub(crate) fn require_parent(&self, parent: Parent) -> Result<()> {
        let is_there = matches!(self.post(parent.id), Some(PostState::Present(..)));
        if parent.kind != ParentKind::Post || is_there {
            return Ok(());
        }
        Err(Error::NotFound { detail: format!("there is no post {}", parent.id) })
    }

    /// How many comments are above one that is to be written.
    pub(crate) fn depth_of(&self, request: &NewComment) -> Result<u8> {
        let Some(id) = request.reply_to else { return Ok(0) };
        let refuse = |reason| Err(Error::InvalidReply { id: id.to_string(), reason });
        match self.threads.comments.get(&id) {
            None => refuse("there is no such comment"),
            Some(above) if above.parent != request.parent => refuse("it is in another thread"),
            Some(above) if !above.is_active() => refuse("it was deleted or removed"),
            Some(above) if above.depth >= request.depth_max => refuse("it is as deep as comments may be"),
            Some(above) => Ok(above.depth + 1),
        }
    }

    /// Fulfils a request that nothing speaks against.
    pub(crate) fn insert_comment(
        &mut self,
        request: &NewComment,
        depth: u8,
        generated: CommentId,
        now: Timestamp,
    ) -> Result<CommentWritten> {
        let NewComment { parent, author, reply_to, .. } = *request;
        let body = Some(Arc::clone(&request.body));
        let reported = CommentChange::Written { id: generated, parent, author, reply_to, depth, body };
        self.record(now, ChangeBody::Comment(reported));
        if let Some(key) = request.idempotency_key.clone() {
            self.threads.unlogged.keys.insert((author, key), generated);
            self.threads.unlogged.bodies.insert(generated, Arc::clone(&request.body));
        }
        self.commented(generated)
    }

    /// What was done to a comment just now.
    pub(crate) fn commented(&self, id: CommentId) -> Result<CommentWritten> {
        let comment = self.threads.comment(id).ok_or_else(|| no_comment(id))?;
        Ok(CommentWritten { position: self.position, comment, is_new: true })
    }

    /// Edits a comment when the clock shows `now`.
    pub(crate) fn edit_comment(&mut self, edit: &CommentEdit, now: Timestamp) -> Result<CommentWritten> {
        let written = self.written(edit.id)?;
        if !written.is_active() {
            return Err(Error::CommentDeleted { id: edit.id.to_string() });
        }
        if written.version() != edit.version {
            return Err(Error::VersionConflict { current: written.version() });
        }
        self.apply_edit(edit, now)
    }

    /// Makes an edit that nothing speaks against.
    pub(crate) fn apply_edit(&mut self, edit: &CommentEdit, now: Timestamp) -> Result<CommentWritten> {
        let (id, written) = (edit.id, self.written(edit.id)?);
        let (parent, author, version) = (written.parent, written.author, written.version() + 1);
        let body = Some(Arc::clone(&edit.body));
        self.record(now, ChangeBody::Comment(CommentChange::Edited { id, parent, author, version, body }));
        self.commented(id)
    }

    /// Takes a comment back when the clock shows `now`.
    pub(crate) fn withdraw_comment(
        &mut self,
        id: CommentId,
        (withdrawal, by): (&Withdrawal, Option<&Moderator>),
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        let changed = withdrawal.status() > self.written(id)?.status;
        if changed {
            self.apply_withdrawal(id, (withdrawal, by), now)?;
        }
        Ok(WriteOutcome { position: self.position, changed })
    }

    /// Makes a withdrawal that nothing speaks against.
    pub(crate) fn apply_withdrawal(
        &mut self,
        id: CommentId,
        (withdrawal, by): (&Withdrawal, Option<&Moderator>),
        now: Timestamp,
    ) -> Result<()> {
        let &Written { parent, author, .. } = self.written(id)?;
        let (status, by) = (withdrawal.status(), by.cloned());
        self.record(now, ChangeBody::Comment(CommentChange::Withdrawn { id, parent, author, status, by }));
        if let Withdrawal::Remove(reason) = withdrawal {
            self.threads.unlogged.reasons.insert(id, Arc::clone(reason));
        }
        Ok(())
    }

    fn written(&self, id: CommentId) -> Result<&Written> {
        self.threads.comments.get(&id).ok_or_else(|| no_comment(id))
    }

    /// Locks a thread, or unlocks it, when the clock shows `now`.
    pub(crate) fn lock_comment_thread(
        &mut self,
        parent: Parent,
        locked: bool,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        self.require_parent(parent)?;
        let changed = self.threads.locked.contains(&parent) != locked;
        if changed {
            self.record(now, ChangeBody::Comment(CommentChange::Locked { parent, locked }));
        }
        Ok(WriteOutcome { position: self.position, changed })
    }

    /// A comment, or its tombstone.
    pub(crate) fn comment(&self, id: CommentId) -> Option<Comment> {
        self.threads.comment(id)
    }

    /// Up to `limit` comments of a thread, strictly after `after`.
    pub(crate) fn comment_thread(
        &self,
        parent: Parent,
        order: CommentOrder,
        after: Option<CommentId>,
        limit: usize,
    ) -> Vec<Comment> {
        page(self.threads.all(|written| written.parent == parent), order, after, limit)
    }

    /// Up to `limit` direct replies.
    pub(crate) fn replies(&self, branch: Branch, limit: usize) -> Vec<Comment> {
        let Branch { parent, reply_to, after } = branch;
        let wanted = |written: &Written| (written.parent, written.reply_to) == (parent, reply_to);
        page(self.threads.all(wanted), CommentOrder::Oldest, after, limit)
    }

    /// Up to `limit` active comments of an author, newest first, strictly after `after`.
    pub(crate) fn comments_by(&self, author: Id, after: Option<CommentId>, limit: usize) -> Vec<Comment> {
        let wanted = |written: &Written| written.author == author && written.is_active();
        page(self.threads.all(wanted), CommentOrder::Newest, after, limit)
    }

    /// Up to `limit` texts of a comment with versions above `after`, oldest first.
    pub(crate) fn comment_versions(&self, id: CommentId, after: u32, limit: usize) -> Vec<CommentVersion> {
        let Ok(written) = self.written(id) else { return Vec::new() };
        let all = (1..).zip(&written.versions).filter(|(version, _)| *version > after);
        let reported = all.filter_map(|(version, (at, _))| {
            let body = written.text(version)?;
            Some(CommentVersion { version, at: *at, body })
        });
        reported.take(limit).collect()
    }

    /// What is known of a thread as a whole.
    pub(crate) fn thread_state(&self, parent: Parent) -> CommentThreadState {
        let active = self.threads.all(|written| written.parent == parent && written.is_active());
        CommentThreadState { count: active.len() as u64, locked: self.threads.locked.contains(&parent) }
    }

    /// Erases the texts of purged comments from the log; returns how many of them had any.
    pub(crate) fn erase_purged(&mut self) -> u64 {
        let comments = &mut self.threads.comments;
        let mut concerned = BTreeSet::new();
        for change in &mut self.changes {
            let Some((id, _, body)) = text_of(change) else { continue };
            let is_purged = comments.get(&id).is_some_and(|written| written.status == CommentStatus::Purged);
            if is_purged && body.take().is_some() {
                concerned.insert(id);
            }
        }
        for id in &concerned {
            comments
                .entry(*id)
                .and_modify(|written| written.versions.iter_mut().for_each(|(_, text)| *text = None));
        }
        concerned.len() as u64
    }
}

/// The body of an event, with its comment and version.
pub(crate) fn text_of(change: &mut Change) -> Option<(CommentId, u32, &mut Option<Arc<str>>)> {
    match &mut change.body {
        ChangeBody::Comment(CommentChange::Written { id, body, .. }) => Some((*id, 1, body)),
        ChangeBody::Comment(CommentChange::Edited { id, version, body, .. }) => Some((*id, *version, body)),
        _ => None,
    }
}

fn no_comment(id: CommentId) -> Error {
    Error::NotFound { detail: format!("there is no comment {id}") }
}

/// The page of comments, sorted by id, that begins after a place.
pub(crate) fn page(
    mut comments: Vec<Comment>,
    order: CommentOrder,
    after: Option<CommentId>,
    limit: usize,
) -> Vec<Comment> {
    match order {
        CommentOrder::Oldest => comments.retain(|comment| after.is_none_or(|after| comment.id > after)),
        CommentOrder::Newest => {
            comments.reverse();
            comments.retain(|comment| after.is_none_or(|after| comment.id < after));
        }
    }
    comments.truncate(limit);
    comments
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::users::START;

    const AUTHOR: Id = Id::Integer(1);
    const ITEM: Parent = Parent { kind: ParentKind::Item, id: Id::Integer(5) };

    fn request(body: &str, reply_to: Option<CommentId>, key: Option<&str>) -> NewComment {
        NewComment {
            parent: ITEM,
            author: AUTHOR,
            body: body.into(),
            reply_to,
            idempotency_key: key.map(Arc::from),
            depth_max: 1,
        }
    }

    #[test]
    fn a_short_history() {
        let (mut model, now) = (Model::default(), Timestamp::from_millis(10));
        let write = |model: &mut Model, request: &NewComment| {
            let generated = model.threads.generate_id(now);
            model.write_comment(request, generated, now)
        };
        let top = write(&mut model, &request("top", None, Some("k"))).unwrap();
        assert_eq!((top.position, top.is_new, top.comment.depth), (START.next(), true, 0));
        let id = top.comment.id;
        let reply = write(&mut model, &request("reply", Some(id), None)).unwrap().comment;
        assert_eq!((reply.depth, reply.id > id), (1, true));
        assert!(matches!(
            write(&mut model, &request("too deep", Some(reply.id), None)),
            Err(Error::InvalidReply { .. })
        ));
        let edit = CommentEdit { id, version: 1, body: "edited".into() };
        assert_eq!(model.edit_comment(&edit, now).unwrap().comment.version, 2);
        assert!(matches!(model.edit_comment(&edit, now), Err(Error::VersionConflict { current: 2 })));
        let again = write(&mut model, &request("top", None, Some("k"))).unwrap();
        assert_eq!(again, CommentWritten { position: START.next().next().next(), is_new: false, ..top });
        assert!(write(&mut model, &request("edited", None, Some("k"))).is_err());
        assert_eq!(model.comment_versions(id, 0, 9).len(), 2);
        assert_eq!(model.thread_state(ITEM), CommentThreadState { count: 2, locked: false });

        assert!(model.lock_comment_thread(ITEM, true, now).unwrap().changed);
        assert!(matches!(write(&mut model, &request("late", None, None)), Err(Error::ThreadLocked)));
        let remove = Withdrawal::Remove("rude".into());
        assert!(model.withdraw_comment(id, (&remove, None), now).unwrap().changed);
        assert!(!model.withdraw_comment(id, (&Withdrawal::Delete, None), now).unwrap().changed);
        let removed = model.comment(id).unwrap();
        assert_eq!((removed.body.as_deref(), removed.reason.as_deref()), (Some("edited"), Some("rude")));
        assert_eq!(model.comment_thread(ITEM, CommentOrder::Newest, None, 9), [reply.clone(), removed]);
        assert_eq!(model.comments_by(AUTHOR, None, 9), [reply]);

        let mut replayed = Model::replay(model.changes.clone());
        replayed.threads.unlogged = model.threads.unlogged.clone();
        assert_eq!(replayed, model);
        model.withdraw_comment(id, (&Withdrawal::Purge, None), now).unwrap();
        assert!(!format!("{:?}{:?}", model.changes(START, 9), model.comment(id)).contains("top"));
        assert_eq!((model.erase_purged(), model.erase_purged()), (1, 0));
        assert!(!format!("{:?}", model.changes).contains("edited"));
    }
}
