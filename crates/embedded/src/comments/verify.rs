//! Compares all other rows of comments with the records, which are the truth, and repairs them. How many there are of what is
//! counted is for a recount to say.

use std::fmt;
use std::sync::Arc;

use kinfolk_core::comments::{Comment, CommentId, CommentStatus, Parent};
use kinfolk_core::{Id, Result, Timestamp};
use lsm_tree::SeqNo;

use super::{Comments, Record, StoredVersion, damaged, layout, read_record};
use crate::projection::{Count, Counting, Difference, Fault, FaultOf, Row, difference};

/// A row that follows from a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DerivedRow {
    /// The parent of a comment.
    Parent(CommentId, Parent),
    /// A reply among those to a comment.
    Reply(Parent, Option<CommentId>, CommentId),
    /// A comment in its author's list.
    By(Id, CommentId, Parent),
    /// A body that a comment had.
    Version(CommentId, u32),
}

impl fmt::Display for DerivedRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parent(id, _) => write!(out, "the place of comment {id} differs from where its record is"),
            Self::Reply(_, Some(target), id) => {
                write!(out, "the replies to comment {target} differ from the record of comment {id}")
            }
            Self::Reply(Parent { kind, id: of }, None, id) => {
                let kind = kind.name();
                write!(out, "the comments at the top of {kind} {of} differ from the record of comment {id}")
            }
            Self::By(author, id, _) => {
                write!(out, "the comments by {author} differ from the record of comment {id}")
            }
            Self::Version(id, version) => {
                write!(out, "there is a body of version {version} of comment {id}, which it does not have")
            }
        }
    }
}

impl Fault for FaultOf<Comments, DerivedRow> {
    fn recheck(&self, _: Timestamp) -> Result<Option<Difference>> {
        Ok(self.of.change_of(self.fault)?.map(|_| difference(&self.of, self.fault)))
    }

    fn repair(&self, _: Timestamp) -> Result<()> {
        match self.of.change_of(self.fault)? {
            None => {}
            Some(Change { key, value: Some(value) }) => self.of.tree.insert(key, value),
            Some(Change { key, value: None }) => self.of.tree.remove(key),
        }
        Ok(())
    }
}

/// What rows count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tally {
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

impl Count for FaultOf<Comments, Tally> {
    fn stored(&self) -> Result<u64> {
        self.of.stored_count(self.fault)
    }

    fn rows(&self) -> Result<Counting> {
        let (comments, ids) = (&self.of, self.of.ids);
        let prefix = match self.fault {
            Tally::Thread(parent) => layout::thread_prefix(parent),
            Tally::Replies(id) => match comments.parent_of(id)? {
                Some(parent) => layout::branch_prefix(parent, Some(id)),
                None => return Ok(Box::new(std::iter::empty())),
            },
        };
        let rows = comments.tree.rows(&prefix, (None, None), comments.tree.now());
        Ok(match self.fault {
            Tally::Replies(_) => Box::new(rows.map(|row| row.map(|_| true))),
            Tally::Thread(_) => Box::new(rows.map(move |row| {
                let (status, _) = layout::read_version(ids, &row?.1).ok_or_else(damaged)?;
                Ok(status == CommentStatus::Active)
            })),
        })
    }

    fn correct(&self, step: i64) -> Result<()> {
        match self.fault {
            // Only the row itself knows whether the thread is locked.
            Tally::Thread(parent) => {
                self.of.change_state(parent, |state| state.count = state.count.saturating_add_signed(step))
            }
            Tally::Replies(id) => {
                let tree = &self.of.tree;
                match self.stored()?.saturating_add_signed(step) {
                    0 => tree.remove(layout::reply_count_key(id)),
                    count => tree.insert(layout::reply_count_key(id), count.to_be_bytes()),
                }
                Ok(())
            }
        }
    }

    fn difference(&self, _: u64, _: u64) -> Difference {
        difference(&self.of, self.fault)
    }
}

/// What is being counted while rows are gone through, and how many there were so far.
#[derive(Default)]
pub(crate) struct Tallying(Option<(Tally, u64)>);

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

/// Suspects a count that differs from what was counted, if something was.
pub(super) fn finish_tally(
    comments: &Arc<Comments>,
    tallying: &mut Tallying,
    found: &mut Vec<Difference>,
) -> Result<()> {
    if let Some((tally, count)) = tallying.0.take()
        && comments.stored_count(tally)? != count
    {
        found.push(difference(comments, tally));
    }
    Ok(())
}

/// Finds what seems to differ by a row. Rows come in the order of their keys, so that what is counted stands together.
pub(super) fn examine(
    comments: &Arc<Comments>,
    row: &Row,
    tallying: &mut Tallying,
    found: &mut Vec<Difference>,
) -> Result<()> {
    let (ids, (key, value)) = (comments.ids, row);
    let Some(&tag) = key.first() else { return Ok(()) };
    match tag {
        layout::RECORD => {
            let Record { comment, .. } = read_record(ids, row)?;
            for derived in derived_rows(&comment) {
                look_at(comments, derived, found)?;
            }
            let mut before = tallying.add(Tally::Thread(comment.parent), u64::from(comment.is_active()));
            finish_tally(comments, &mut before, found)
        }
        layout::PARENT | layout::REPLY | layout::BY_AUTHOR | layout::OLDER_BODY => {
            let derived = comments.read_derived(tag, row)?;
            if let DerivedRow::Reply(_, target, _) = derived {
                let mut before = match target {
                    Some(target) => tallying.add(Tally::Replies(target), 1),
                    None => std::mem::take(tallying),
                };
                finish_tally(comments, &mut before, found)?;
            }
            if comments.is_met_by_record(derived)? { Ok(()) } else { look_at(comments, derived, found) }
        }
        // Where there is something to count, it was counted; where there is nothing, nothing may be stored.
        layout::STATE => {
            let parent = layout::read_parent(ids, key.get(1..).unwrap_or_default()).ok_or_else(damaged)?;
            let state = layout::read_state(value).ok_or_else(damaged)?;
            if state.count > 0 && !comments.has_rows(&layout::thread_prefix(parent))? {
                found.push(difference(comments, Tally::Thread(parent)));
            }
            Ok(())
        }
        layout::REPLY_COUNT => {
            let id = layout::read_tagged(key).ok_or_else(damaged)?;
            let is_stray = match comments.parent_of(id)? {
                Some(parent) => !comments.has_rows(&layout::branch_prefix(parent, Some(id)))?,
                None => true,
            };
            found.extend(is_stray.then(|| difference(comments, Tally::Replies(id))));
            Ok(())
        }
        _ => Ok(()),
    }
}

fn look_at(comments: &Arc<Comments>, derived: DerivedRow, found: &mut Vec<Difference>) -> Result<()> {
    found.extend(comments.change_of(derived)?.map(|_| difference(comments, derived)));
    Ok(())
}

/// A key, and the value that it should have, if any.
struct Change {
    key: Vec<u8>,
    value: Option<Vec<u8>>,
}

impl Comments {
    /// Whether the record of a comment leads to a row: then it is looked at there, and not where it is itself.
    fn is_met_by_record(&self, derived: DerivedRow) -> Result<bool> {
        let (DerivedRow::Parent(id, parent)
        | DerivedRow::Reply(parent, _, id)
        | DerivedRow::By(_, id, parent)) = derived
        else {
            return Ok(false);
        };
        let record = self.record_in(parent, id)?;
        Ok(record.is_some_and(|record| derived_rows(&record.comment).contains(&derived)))
    }

    /// What a row says of a count.
    fn stored_count(&self, tally: Tally) -> Result<u64> {
        match tally {
            Tally::Thread(parent) => Ok(self.state(parent)?.count),
            Tally::Replies(id) => self.reply_count(id),
        }
    }

    fn has_rows(&self, prefix: &[u8]) -> Result<bool> {
        Ok(self.tree.rows(prefix, (None, None), SeqNo::MAX).next().transpose()?.is_some())
    }

    fn read_derived(&self, tag: u8, (key, value): &Row) -> Result<DerivedRow> {
        let ids = self.ids;
        let read = || match tag {
            layout::PARENT => {
                Some(DerivedRow::Parent(layout::read_tagged(key)?, layout::read_parent(ids, value)?))
            }
            layout::REPLY => {
                let (parent, reply_to, id) = layout::read_reply_key(ids, key)?;
                Some(DerivedRow::Reply(parent, reply_to, id))
            }
            layout::BY_AUTHOR => {
                let (author, id) = layout::read_author_key(ids, key)?;
                Some(DerivedRow::By(author, id, layout::read_parent(ids, value)?))
            }
            _ => {
                let (id, stored) = StoredVersion::decode(key, value)?;
                Some(DerivedRow::Version(id, stored.version.version))
            }
        };
        read().ok_or_else(damaged)
    }

    /// The row as it should be, if that is not what is there.
    fn change_of(&self, derived: DerivedRow) -> Result<Option<Change>> {
        let Change { key, value } = self.expected(derived)?;
        let found = self.tree.get(&key)?;
        // A row that names another parent is for the record there to judge.
        let is_another = match derived {
            DerivedRow::Parent(_, parent) | DerivedRow::By(_, _, parent) => {
                value.is_none() && found.as_deref() != Some(&layout::parent_value(parent))
            }
            DerivedRow::Reply(..) | DerivedRow::Version(..) => false,
        };
        Ok((found.as_deref() != value.as_deref() && !is_another).then_some(Change { key, value }))
    }

    fn expected(&self, derived: DerivedRow) -> Result<Change> {
        let (key, value) = match derived {
            DerivedRow::Parent(id, parent) => {
                let is = self.record_in(parent, id)?.is_some();
                (layout::parent_key(id), is.then(|| layout::parent_value(parent)))
            }
            DerivedRow::Reply(parent, reply_to, id) => {
                let is =
                    self.record_in(parent, id)?.is_some_and(|record| record.comment.reply_to == reply_to);
                (layout::reply_key(parent, reply_to, id), is.then(Vec::new))
            }
            DerivedRow::By(author, id, parent) => {
                let record = self.record_in(parent, id)?;
                let is = record
                    .is_some_and(|Record { comment, .. }| comment.author == author && comment.is_active());
                (layout::author_key(author, id), is.then(|| layout::parent_value(parent)))
            }
            DerivedRow::Version(id, version) => {
                let key = layout::version_key(id, version);
                let is = self.record(id)?.is_some_and(|Record { comment, .. }| {
                    comment.status != CommentStatus::Purged && version < comment.version
                });
                let value = self.tree.get(&key)?.filter(|_| is).map(|value| value.to_vec());
                (key, value)
            }
        };
        Ok(Change { key, value })
    }
}

/// The rows that must or must not be there, by the record of a comment.
fn derived_rows(comment: &Comment) -> [DerivedRow; 3] {
    let &Comment { id, parent, author, reply_to, .. } = comment;
    [
        DerivedRow::Parent(id, parent),
        DerivedRow::Reply(parent, reply_to, id),
        DerivedRow::By(author, id, parent),
    ]
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

        let tree = &store.store.comments.tree;
        let other = Parent { id: Id::Integer(2), ..parent };
        tree.remove(layout::parent_key(ids[0]));
        tree.insert(layout::parent_key(CommentId(3)), layout::parent_value(parent));
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
