//! Compares all other rows of comments with the records, which are the truth, and repairs them. How many there are of what is
//! counted is for a recount to say.

use std::fmt;
use std::sync::Arc;

use kinfolk_core::comments::{Comment, CommentId, CommentStatus, Parent};
use kinfolk_core::{Id, Result, Timestamp};
use lsm_tree::{SeqNo, UserKey, UserValue};

use super::{Comments, Record, StoredVersion, comment_id, damaged, layout, read_record};
use crate::log::{Event, EventBody, LoggedCommentEvent};
use crate::lsm::{KeyUse, LoggedKey, first_key};
use crate::projection::{Counting, Difference, Fault, Findings, Reconcile, Suspects, difference};

/// A row that follows from records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Where a comment is.
    Of(CommentId, Parent),
    /// A reply among those to a comment.
    Reply(Parent, Option<CommentId>, CommentId),
    /// A comment in its author's list.
    By(Id, CommentId, Parent),
    /// A text that a comment had.
    Version(CommentId, u32),
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Of(id, _) => write!(out, "the place of comment {id} differs from where its record is"),
            Self::Reply(_, Some(answered), id) => {
                write!(out, "the replies to comment {answered} differ from the record of comment {id}")
            }
            Self::Reply(parent, None, id) => {
                let Parent { kind, id: of } = parent;
                write!(
                    out,
                    "the comments at the top of {} {of} differ from the record of comment {id}",
                    kind.name()
                )
            }
            Self::By(author, id, _) => {
                write!(out, "the comments by {author} differ from the record of comment {id}")
            }
            Self::Version(id, version) => {
                write!(out, "there is a text of version {version} of comment {id}, which it does not have")
            }
        }
    }
}

/// What rows count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tally {
    /// The active comments of a thread.
    Thread(Parent),
    /// The direct replies to a comment.
    Replies(CommentId),
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(Parent { kind, id }) => {
                write!(out, "the count of comments on {} {id} differs from how many there are", kind.name())
            }
            Self::Replies(id) => {
                write!(out, "the count of replies to comment {id} differs from how many there are")
            }
        }
    }
}

/// What is being counted while rows are gone through, and how many there were so far.
#[derive(Default)]
pub struct Tallying(Option<(Tally, u64)>);

impl Tallying {
    /// Adds to a tally; returns what came of the one before it when another begins.
    fn add(&mut self, tally: Tally, count: u64) -> Self {
        match &mut self.0 {
            Some((current, total)) if *current == tally => {
                *total += count;
                Self(None)
            }
            before => Self(before.replace((tally, count))),
        }
    }
}

/// Something that differs from the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentFault {
    /// A row is not what the records say.
    Row(Place),
    /// An idempotency key names something else than the log and the records.
    Key(LoggedKey),
    /// Comments or replies are counted as more or fewer than there are.
    Count(Tally),
}

impl fmt::Display for CommentFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row(place) => place.fmt(out),
            Self::Key(key) => key.describe(out, "comment"),
            Self::Count(tally) => tally.fmt(out),
        }
    }
}

impl Fault<Comments> for CommentFault {
    fn recheck(&self, comments: &Comments, now: Timestamp) -> Result<Option<Self>> {
        let differs = match self {
            Self::Row(place) => comments.difference(*place)?.is_some(),
            Self::Key(key) => comments.key_difference(key, now)?.is_some(),
            Self::Count(_) => false,
        };
        Ok(differs.then_some(*self))
    }

    fn repair(&self, comments: &Comments, now: Timestamp) -> Result<()> {
        match self {
            Self::Row(place) => comments.mend(*place),
            Self::Key(key) => comments.mend_key(key, now),
            // A recount does it.
            Self::Count(_) => Ok(()),
        }
    }

    fn is_count(&self) -> bool {
        matches!(self, Self::Count(_))
    }

    fn stored_count(&self, comments: &Comments) -> Result<u64> {
        if let Self::Count(tally) = self { comments.stored_count(*tally) } else { Ok(0) }
    }

    fn counted_rows(&self, comments: &Comments) -> Result<Counting> {
        match self {
            Self::Count(tally) => comments.counted_rows(*tally),
            Self::Row(_) | Self::Key(_) => Ok(Box::new(std::iter::empty())),
        }
    }

    fn correct_count(&self, comments: &Comments, step: i64) -> Result<()> {
        if let Self::Count(tally) = self { comments.correct_count(*tally, step) } else { Ok(()) }
    }
}

/// Compares all rows.
pub fn compare(comments: &Arc<Comments>, now: Timestamp, suspects: &mut Suspects<'_>) -> Result<()> {
    let mut tallying = Tallying::default();
    for (number, row) in (1..).zip(comments.tree.all_rows()) {
        suspects.step("comparing comments", number);
        let found = &mut |fault| suspects.add(difference(comments, fault));
        comments.examine(&row?, now, &mut tallying, found)?;
    }
    comments.finish_tally(&mut tallying, &mut |fault| suspects.add(difference(comments, fault)))
}

/// The key that an event must have left.
pub fn logged_key(comments: &Arc<Comments>, event: &Event) -> Option<Difference> {
    let EventBody::Comment(body) = &event.body else { return None };
    let LoggedCommentEvent::Written { place, key: Some(hash), .. } = &**body else { return None };
    let logged = Some(KeyUse { id: Id::Uuid(place.id.0), at: event.at });
    let key = LoggedKey { author: place.author, hash: *hash, logged };
    Some(difference(comments, CommentFault::Key(key)))
}

/// Goes through all rows of comments.
pub struct CommentReconcile {
    comments: Arc<Comments>,
    from: Vec<u8>,
    /// What is being counted.
    tallying: Tallying,
}

impl CommentReconcile {
    /// Begins with the first row.
    pub fn new(comments: &Arc<Comments>) -> Self {
        Self { comments: Arc::clone(comments), from: first_key(), tallying: Tallying::default() }
    }
}

impl Reconcile for CommentReconcile {
    fn step(&mut self, findings: &mut Findings) -> bool {
        let Self { comments, from, tallying } = self;
        let mut part = comments.tree.part(from, findings.rows_max);
        let is_broken = findings.note_part(&mut part);
        let mut suspected = Vec::new();
        let mut found = |fault| {
            suspected.push(difference(comments, fault));
            Ok(())
        };
        for row in &part.rows {
            findings.readable(comments.examine(row, findings.now, tallying, &mut found));
        }
        if is_broken {
            // Who knows how many rows were passed over.
            *tallying = Tallying::default();
        }
        let is_complete = part.next.is_none();
        if is_complete {
            findings.readable(comments.finish_tally(tallying, &mut found));
        }
        findings.suspected.extend(suspected);
        *from = part.next.unwrap_or_else(first_key);
        is_complete
    }
}

/// What takes what seems to differ.
type Found<'a> = &'a mut dyn FnMut(CommentFault) -> Result<()>;

impl Comments {
    /// Finds what seems to differ by a row. Rows come in the order of their keys, so that what is counted stands together.
    fn examine(
        &self,
        row: &(UserKey, UserValue),
        now: Timestamp,
        tallying: &mut Tallying,
        found: Found<'_>,
    ) -> Result<()> {
        let (ids, (key, value)) = (self.ids, row);
        let Some(&tag) = key.first() else { return Ok(()) };
        match tag {
            layout::RECORD => {
                let Record { comment, .. } = read_record(ids, row)?;
                for place in places(&comment) {
                    self.look_at(place, found)?;
                }
                let mut before = tallying.add(Tally::Thread(comment.parent), u64::from(comment.is_active()));
                self.finish_tally(&mut before, found)
            }
            layout::PLACE | layout::REPLY | layout::BY_AUTHOR | layout::VERSION => {
                let place = self.read_place(tag, row)?;
                if let Place::Reply(_, answered, _) = place {
                    let mut before = match answered {
                        Some(answered) => tallying.add(Tally::Replies(answered), 1),
                        None => std::mem::take(tallying),
                    };
                    self.finish_tally(&mut before, found)?;
                }
                if self.is_met_by_record(place)? { Ok(()) } else { self.look_at(place, found) }
            }
            layout::KEY => {
                let key = self.keys.read_key(&self.tree, key)?;
                match self.key_difference(&key, now)? {
                    Some(_) => found(CommentFault::Key(key)),
                    None => Ok(()),
                }
            }
            // Where there is something to count, it was counted; where there is nothing, nothing may be said.
            layout::STATE => {
                let parent =
                    layout::read_parent(ids, key.get(1..).unwrap_or_default()).ok_or_else(damaged)?;
                let state = layout::read_state(value).ok_or_else(damaged)?;
                let is_stray = state.count > 0 && !self.has_rows(&layout::thread_prefix(parent))?;
                if is_stray { found(CommentFault::Count(Tally::Thread(parent))) } else { Ok(()) }
            }
            layout::REPLY_COUNT => {
                let id = layout::read_tagged(key).ok_or_else(damaged)?;
                let parent = self.parent_of(id)?;
                let is_stray = match parent {
                    Some(parent) => !self.has_rows(&layout::branch_prefix(parent, Some(id)))?,
                    None => true,
                };
                if is_stray { found(CommentFault::Count(Tally::Replies(id))) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Suspects a count that differs from what was counted, if something was.
    fn finish_tally(&self, tallying: &mut Tallying, found: Found<'_>) -> Result<()> {
        match tallying.0.take() {
            Some((tally, count)) if self.stored_count(tally)? != count => found(CommentFault::Count(tally)),
            _ => Ok(()),
        }
    }

    fn look_at(&self, place: Place, found: Found<'_>) -> Result<()> {
        if self.difference(place)?.is_some() { found(CommentFault::Row(place)) } else { Ok(()) }
    }

    /// Whether the record of a comment leads to a place: then it is looked at there, and not where its row is.
    fn is_met_by_record(&self, place: Place) -> Result<bool> {
        let (Place::Of(id, parent) | Place::Reply(parent, _, id) | Place::By(_, id, parent)) = place else {
            return Ok(false);
        };
        let record = self.record_in(parent, id)?;
        Ok(record.is_some_and(|record| places(&record.comment).contains(&place)))
    }

    /// What a row says of a count.
    fn stored_count(&self, tally: Tally) -> Result<u64> {
        match tally {
            Tally::Thread(parent) => Ok(self.state(parent)?.count),
            Tally::Replies(id) => self.reply_count(id),
        }
    }

    /// The rows that a tally counts, as of now. Called by the writer, between batches.
    fn counted_rows(&self, tally: Tally) -> Result<Counting> {
        let ids = self.ids;
        let prefix = match tally {
            Tally::Thread(parent) => layout::thread_prefix(parent),
            Tally::Replies(id) => match self.parent_of(id)? {
                Some(parent) => layout::branch_prefix(parent, Some(id)),
                None => return Ok(Box::new(std::iter::empty())),
            },
        };
        let rows = self.tree.rows(&prefix, (None, None), self.tree.now());
        Ok(match tally {
            Tally::Replies(_) => Box::new(rows.map(|row| row.map(|_| true))),
            Tally::Thread(_) => Box::new(rows.map(move |row| {
                let (status, _) = layout::read_version(ids, &row?.1).ok_or_else(damaged)?;
                Ok(status == CommentStatus::Active)
            })),
        })
    }

    /// Adds to a count, to repair it. Runs on the writer's thread.
    fn correct_count(&self, tally: Tally, step: i64) -> Result<()> {
        match tally {
            // Only the row itself knows whether the thread is locked.
            Tally::Thread(parent) => {
                self.change_state(parent, |state| state.count = state.count.saturating_add_signed(step))
            }
            Tally::Replies(id) => {
                match self.reply_count(id)?.saturating_add_signed(step) {
                    0 => self.tree.remove(layout::reply_count_key(id)),
                    count => self.tree.insert(layout::reply_count_key(id), count.to_be_bytes()),
                }
                Ok(())
            }
        }
    }

    fn has_rows(&self, prefix: &[u8]) -> Result<bool> {
        Ok(self.tree.rows(prefix, (None, None), SeqNo::MAX).next().transpose()?.is_some())
    }

    /// The place that a row is at.
    fn read_place(&self, tag: u8, (key, value): &(UserKey, UserValue)) -> Result<Place> {
        let ids = self.ids;
        Ok(match tag {
            layout::PLACE => {
                let parent = layout::read_parent(ids, value).ok_or_else(damaged)?;
                Place::Of(layout::read_tagged(key).ok_or_else(damaged)?, parent)
            }
            layout::REPLY => {
                let (parent, reply_to, id) = layout::read_reply_key(ids, key).ok_or_else(damaged)?;
                Place::Reply(parent, reply_to, id)
            }
            layout::BY_AUTHOR => {
                let (author, id) = layout::read_author_key(ids, key).ok_or_else(damaged)?;
                Place::By(author, id, layout::read_parent(ids, value).ok_or_else(damaged)?)
            }
            _ => {
                let (id, stored) = StoredVersion::decode(key, value).ok_or_else(damaged)?;
                Place::Version(id, stored.version.version)
            }
        })
    }

    /// The row of a place as it should be, if that is not what is there.
    fn difference(&self, place: Place) -> Result<Option<Change>> {
        let (key, expected) = self.expected(place)?;
        let found = self.tree.get(&key)?;
        // A row that says something else than the place is for another place to judge.
        let (Place::Of(_, parent) | Place::By(_, _, parent)) = place else {
            return Ok((found.as_deref() != expected.as_deref()).then_some((key, expected)));
        };
        let is_another = expected.is_none() && found.as_deref() != Some(&layout::parent_value(parent));
        Ok((found.as_deref() != expected.as_deref() && !is_another).then_some((key, expected)))
    }

    fn expected(&self, place: Place) -> Result<Change> {
        Ok(match place {
            Place::Of(id, parent) => {
                let is = self.record_in(parent, id)?.is_some();
                (layout::place_key(id), is.then(|| layout::parent_value(parent)))
            }
            Place::Reply(parent, reply_to, id) => {
                let is =
                    self.record_in(parent, id)?.is_some_and(|record| record.comment.reply_to == reply_to);
                (layout::reply_key(parent, reply_to, id), is.then(Vec::new))
            }
            Place::By(author, id, parent) => {
                let record = self.record_in(parent, id)?;
                let is = record
                    .is_some_and(|Record { comment, .. }| comment.author == author && comment.is_active());
                (layout::author_key(author, id), is.then(|| layout::parent_value(parent)))
            }
            Place::Version(id, version) => {
                let key = layout::version_key(id, version);
                let is = self.record(id)?.is_some_and(|Record { comment, .. }| {
                    comment.status != CommentStatus::Purged && version < comment.version
                });
                let value = self.tree.get(&key)?.filter(|_| is).map(|value| value.to_vec());
                (key, value)
            }
        })
    }

    /// Brings the row of a place back to what the records say. Runs on the writer's thread.
    fn mend(&self, place: Place) -> Result<()> {
        match self.difference(place)? {
            None => {}
            Some((key, Some(value))) => self.tree.insert(key, value),
            Some((key, None)) => self.tree.remove(key),
        }
        Ok(())
    }

    /// What a key should stand for, if that is not what it does.
    fn key_difference(&self, key: &LoggedKey, now: Timestamp) -> Result<Option<Option<KeyUse>>> {
        let is_sound = |KeyUse { id, at }| self.is_written(comment_id(id), key.author, at);
        self.keys.difference(&self.tree, key, now, is_sound)
    }

    fn is_written(&self, id: CommentId, author: Id, at: Timestamp) -> Result<bool> {
        let record = self.record(id)?;
        Ok(record.is_some_and(|Record { comment, .. }| comment.author == author && comment.created_at == at))
    }

    /// Brings a key back to what it stands for. Runs on the writer's thread.
    fn mend_key(&self, key: &LoggedKey, now: Timestamp) -> Result<()> {
        self.keys.mend(&self.tree, key, self.key_difference(key, now)?);
        Ok(())
    }
}

/// A key, and the value that it should have, if any.
type Change = (Vec<u8>, Option<Vec<u8>>);

/// Where a comment must be found, or must not.
fn places(comment: &Comment) -> [Place; 3] {
    let &Comment { id, parent, author, reply_to, .. } = comment;
    [Place::Of(id, parent), Place::Reply(parent, reply_to, id), Place::By(author, id, parent)]
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::block_on;
    use kinfolk_core::comments::{
        CommentOrder, CommentStore, CommentThreadState, CommentVersion, NewComment, ParentKind, Withdrawal,
    };
    use kinfolk_core::{Frontier, IdKind, Sequence};

    use super::*;
    use crate::{Embedded, Settings};

    /// Everything that can differ, differs; a repair brings it back, for good.
    #[test]
    fn differences_are_found_and_repaired() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::create(folder.path(), IdKind::Integer, Settings::default()).unwrap();
        let (parent, author) = (Parent { kind: ParentKind::Item, id: Id::Integer(1) }, Id::Integer(7));
        let request = |reply_to| NewComment {
            parent,
            author,
            body: "text".into(),
            reply_to,
            idempotency_key: None,
            depth_max: 50,
        };
        let write = |reply_to| block_on(store.comment(request(reply_to))).unwrap().comment.id;
        let first = write(None);
        let ids: Vec<CommentId> = (0..5).map(|_| write(Some(first))).collect();
        block_on(store.withdraw_comment(ids[4], Withdrawal::Delete, None)).unwrap();
        block_on(store.lock_comment_thread(parent, true)).unwrap();
        let read = |store: &Embedded| {
            let thread =
                block_on(store.comment_thread(parent, CommentOrder::Oldest, None, 99, Frontier::EMPTY))
                    .unwrap();
            let by = block_on(store.comments_by(author, None, 99, Frontier::EMPTY)).unwrap();
            (thread, by, block_on(store.comment_threads(&[parent], Frontier::EMPTY)).unwrap())
        };
        let before = read(&store);
        assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());

        let tree = &store.shared().comments.tree;
        let other = Parent { id: Id::Integer(2), ..parent };
        tree.remove(layout::place_key(ids[0]));
        tree.insert(layout::place_key(CommentId(3)), layout::parent_value(parent));
        tree.remove(layout::reply_key(parent, Some(first), ids[1]));
        tree.insert(layout::reply_key(parent, None, ids[2]), []);
        tree.insert(layout::author_key(author, ids[4]), layout::parent_value(parent));
        tree.remove(layout::author_key(author, ids[3]));
        tree.insert(
            layout::state_key(parent),
            layout::state_value(CommentThreadState { count: 9, locked: true }),
        );
        tree.insert(
            layout::state_key(other),
            layout::state_value(CommentThreadState { count: 3, locked: false }),
        );
        tree.insert(layout::reply_count_key(ids[0]), 4_u64.to_be_bytes());
        tree.insert(layout::reply_count_key(CommentId(4)), 1_u64.to_be_bytes());
        let text = before.0[0].clone();
        let version = CommentVersion { version: 7, at: text.created_at, body: "stray".into() };
        let stored = StoredVersion { position: Sequence(1), version };
        tree.insert(layout::version_key(first, 7), stored.encode());
        let found = store.verify(false, &|_| {}).unwrap();
        // The replies to the first are one fewer too.
        assert_eq!((found.difference_count, found.repaired), (12, false), "{:#?}", found.differences);
        assert!(store.verify(true, &|_| {}).unwrap().repaired);
        assert_eq!(read(&store), before);
        store.close().unwrap();
        let store = Embedded::open(folder.path(), Settings::default()).unwrap();
        assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
        assert_eq!(read(&store), before);
    }
}
