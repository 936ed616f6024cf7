//! Compares all other rows of comments with the records, which are the truth, and repairs them.

use std::collections::BTreeSet;
use std::fmt;

use kinfolk_core::thread::{CommentId, Parent, ThreadState};
use kinfolk_core::{Id, Result};
use lsm_tree::{SeqNo, UserKey, UserValue};

use super::{Record, Threads, damaged, layout};

/// A row that follows from records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Where a comment is.
    Of(CommentId, Parent),
    /// A reply among those to a comment.
    Reply(Parent, Option<CommentId>, CommentId),
    /// A comment in its author's list.
    By(Id, CommentId, Parent),
    /// How many comments a thread has.
    Count(Parent),
    /// How many replies a comment has, if it is known where it is.
    Replies(CommentId, Option<Parent>),
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
            Self::Count(Parent { kind, id }) => {
                write!(out, "the count of comments on {} {id} differs from how many there are", kind.name())
            }
            Self::Replies(id, _) => {
                write!(out, "the count of replies to comment {id} differs from how many there are")
            }
        }
    }
}

impl Threads {
    /// Up to `limit` places where a row seems to differ from the records. Writes go on meanwhile: look again.
    pub fn suspects(&self, limit: usize, step: &dyn Fn(&'static str, u64)) -> Result<BTreeSet<Place>> {
        let mut suspects = BTreeSet::new();
        let mut thread: Option<(Parent, u64)> = None;
        for (number, row) in (1..).zip(self.records(SeqNo::MAX)) {
            step("comparing comments", number);
            let (parent, id, record) = row?;
            for place in places(parent, id, &record) {
                if suspects.len() < limit && self.difference(place)?.is_some() {
                    suspects.insert(place);
                }
            }
            if thread.is_none_or(|(current, _)| current != parent) {
                self.suspect_count(thread.take(), &mut suspects)?;
            }
            thread.get_or_insert((parent, 0)).1 += u64::from(record.is_active());
        }
        self.suspect_count(thread, &mut suspects)?;
        for tag in [layout::PLACE, layout::REPLY, layout::BY_AUTHOR, layout::STATE, layout::REPLY_COUNT] {
            for (number, row) in (1..).zip(self.tree.rows(&[tag], (None, None), SeqNo::MAX)) {
                step("comparing lists of comments", number);
                let place = self.read_place(tag, &row?)?;
                // The counts of threads that have comments were compared with them.
                let counted = matches!(place, Place::Count(parent) if self.has_comments(parent)?);
                if suspects.len() < limit && !counted && self.difference(place)?.is_some() {
                    suspects.insert(place);
                }
            }
        }
        Ok(suspects)
    }

    fn suspect_count(&self, thread: Option<(Parent, u64)>, suspects: &mut BTreeSet<Place>) -> Result<()> {
        if let Some((parent, count)) = thread
            && self.state(parent)?.count != count
        {
            suspects.insert(Place::Count(parent));
        }
        Ok(())
    }

    fn has_comments(&self, parent: Parent) -> Result<bool> {
        let first = self.tree.rows(&layout::thread_prefix(parent), (None, None), SeqNo::MAX).next();
        Ok(first.transpose()?.is_some())
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
            layout::STATE => {
                let parent = layout::read_parent(ids, key.get(1..).unwrap_or_default());
                Place::Count(parent.ok_or_else(damaged)?)
            }
            _ => {
                let id = layout::read_tagged(key).ok_or_else(damaged)?;
                Place::Replies(id, self.parent_of(id)?)
            }
        })
    }

    /// The row of a place as it should be, if that is not what is there.
    pub fn difference(&self, place: Place) -> Result<Option<Change>> {
        let (key, expected) = self.expected(place)?;
        let found = self.tree.get(&key)?;
        Ok((found.as_deref() != expected.as_deref()).then_some((key, expected)))
    }

    fn expected(&self, place: Place) -> Result<Change> {
        Ok(match place {
            Place::Of(id, parent) => {
                let is = self.record_in(parent, id)?.is_some();
                (layout::place_key(id), is.then(|| layout::parent_value(parent)))
            }
            Place::Reply(parent, reply_to, id) => {
                let is = self.record_in(parent, id)?.is_some_and(|record| record.reply_to == reply_to);
                (layout::reply_key(parent, reply_to, id), is.then(Vec::new))
            }
            Place::By(author, id, parent) => {
                let record = self.record_in(parent, id)?;
                let is = record.is_some_and(|record| record.author == author && record.is_active());
                (layout::author_key(author, id), is.then(|| layout::parent_value(parent)))
            }
            Place::Count(parent) => {
                let mut count = 0;
                for row in self.tree.rows(&layout::thread_prefix(parent), (None, None), SeqNo::MAX) {
                    count += u64::from(self.read_record(&row?)?.2.is_active());
                }
                // Only the row itself knows whether the thread is locked.
                let state = ThreadState { count, ..self.state(parent)? };
                let key = layout::state_key(parent);
                let is = state != ThreadState::default() || self.tree.get(&key)?.is_some();
                (key, is.then(|| layout::state_value(state)))
            }
            Place::Replies(id, parent) => {
                let prefix = parent.map(|parent| layout::branch_prefix(parent, Some(id)));
                let rows = prefix.map(|prefix| self.tree.rows(&prefix, (None, None), SeqNo::MAX));
                let count =
                    rows.into_iter().flatten().try_fold(0_u64, |count, row| row.map(|_| count + 1))?;
                (layout::reply_count_key(id), (count > 0).then(|| count.to_be_bytes().to_vec()))
            }
        })
    }

    /// Brings the row of a place back to what the records say. Runs on the writer's thread.
    pub fn mend(&self, place: Place) -> Result<()> {
        match self.difference(place)? {
            None => {}
            Some((key, Some(value))) => self.tree.insert(key, value),
            Some((key, None)) => self.tree.remove(key),
        }
        Ok(())
    }
}

/// A key, and the value that it should have, if any.
type Change = (Vec<u8>, Option<Vec<u8>>);

/// Where a comment must be found, or must not.
fn places(parent: Parent, id: CommentId, record: &Record) -> impl Iterator<Item = Place> {
    let replies = record.reply_to.map(|answered| Place::Replies(answered, Some(parent)));
    [Place::Of(id, parent), Place::Reply(parent, record.reply_to, id), Place::By(record.author, id, parent)]
        .into_iter()
        .chain(replies)
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::block_on;
    use kinfolk_core::IdKind;
    use kinfolk_core::thread::{NewComment, ParentKind, ThreadOrder, ThreadStore, Withdrawal};

    use super::*;
    use crate::{Embedded, Settings};

    /// Everything that can differ, differs; a repair brings it back, for good.
    #[test]
    fn differences_are_found_and_repaired() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::create(folder.path(), IdKind::Integer, Settings::default()).unwrap();
        let (parent, author) = (Parent { kind: ParentKind::Item, id: Id::Integer(1) }, Id::Integer(7));
        let wish = |reply_to| NewComment {
            parent,
            author,
            body: "text".into(),
            reply_to,
            idempotency_key: None,
            depth_max: 50,
        };
        let write = |reply_to| block_on(store.comment(wish(reply_to))).unwrap().comment.id;
        let first = write(None);
        let ids: Vec<CommentId> = (0..5).map(|_| write(Some(first))).collect();
        block_on(store.withdraw_comment(ids[4], Withdrawal::Delete)).unwrap();
        block_on(store.lock_thread(parent, true)).unwrap();
        let read = |store: &Embedded| {
            let thread = block_on(store.thread(parent, ThreadOrder::Oldest, None, 99)).unwrap();
            let by = block_on(store.comments_by(author, None, 99)).unwrap();
            (thread, by, block_on(store.threads(&[parent])).unwrap())
        };
        let before = read(&store);
        assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());

        let tree = &store.shared().threads.tree;
        let other = Parent { id: Id::Integer(2), ..parent };
        tree.remove(layout::place_key(ids[0]));
        tree.insert(layout::place_key(CommentId(3)), layout::parent_value(parent));
        tree.remove(layout::reply_key(parent, Some(first), ids[1]));
        tree.insert(layout::reply_key(parent, None, ids[2]), []);
        tree.insert(layout::author_key(author, ids[4]), layout::parent_value(parent));
        tree.remove(layout::author_key(author, ids[3]));
        tree.insert(layout::state_key(parent), layout::state_value(ThreadState { count: 9, locked: true }));
        tree.insert(layout::state_key(other), layout::state_value(ThreadState { count: 3, locked: false }));
        tree.insert(layout::reply_count_key(ids[0]), 4_u64.to_be_bytes());
        let found = store.verify(false, &|_| {}).unwrap();
        // The replies to the first are one fewer too.
        assert_eq!((found.difference_count, found.repaired), (10, false), "{:#?}", found.differences);
        assert!(store.verify(true, &|_| {}).unwrap().repaired);
        assert_eq!(read(&store), before);
        store.close().unwrap();
        let store = Embedded::open(folder.path(), Settings::default()).unwrap();
        assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
        assert_eq!(read(&store), before);
    }
}
