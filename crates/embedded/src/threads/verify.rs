//! Compares all other rows of comments with the records, which are the truth, and repairs them.

use std::collections::BTreeSet;
use std::fmt;

use kinfolk_core::thread::{CommentId, CommentStatus, Parent, ThreadState};
use kinfolk_core::{Id, Result};
use lsm_tree::{SeqNo, UserKey, UserValue};

use super::{Record, StoredVersion, Threads, damaged, layout};

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
    /// A text that a comment had.
    Version(CommentId, u32),
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
            Self::Version(id, version) => {
                write!(out, "there is a text of version {version} of comment {id}, which it does not have")
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
        let mut suspects = Suspects { limit, found: BTreeSet::new() };
        let mut counting = Counting::default();
        for (number, row) in (1..).zip(self.records(SeqNo::MAX)) {
            step("comparing comments", number);
            let (parent, id, record) = row?;
            for place in places(parent, id, &record) {
                suspects.look_at(self, place)?;
            }
            if let Some(counted) = counting.add(Place::Count(parent), u64::from(record.is_active())) {
                self.compare_count(counted, &mut suspects)?;
            }
        }
        self.compare_count(counting, &mut suspects)?;
        let mut counting = Counting::default();
        for tag in [layout::PLACE, layout::REPLY, layout::BY_AUTHOR, layout::VERSION, layout::REPLY_COUNT] {
            for (number, row) in (1..).zip(self.tree.rows(&[tag], (None, None), SeqNo::MAX)) {
                step("comparing lists of comments", number);
                let place = self.read_place(tag, &row?)?;
                // Replies are counted group by group.
                if let Place::Reply(parent, Some(answered), _) = place
                    && let Some(counted) = counting.add(Place::Replies(answered, Some(parent)), 1)
                {
                    self.compare_count(counted, &mut suspects)?;
                }
                // What is counted was compared above; where nothing is there to count, nothing may be said.
                match place {
                    Place::Replies(answered, Some(parent)) if self.is_answered(parent, answered)? => {}
                    _ => suspects.look_at(self, place)?,
                }
            }
            self.compare_count(std::mem::take(&mut counting), &mut suspects)?;
        }
        for row in self.tree.rows(&[layout::STATE], (None, None), SeqNo::MAX) {
            let place = self.read_place(layout::STATE, &row?)?;
            if let Place::Count(parent) = place
                && !self.has_rows(&layout::thread_prefix(parent))?
            {
                suspects.look_at(self, place)?;
            }
        }
        Ok(suspects.found)
    }

    /// Suspects a count that differs from what was counted. Where it is written to all the time it is not suspected: looking again
    /// would take long on the writer's thread.
    fn compare_count(&self, Counting(counted): Counting, suspects: &mut Suspects) -> Result<()> {
        const TRIES: usize = 3;
        let Some((place, count)) = counted else { return Ok(()) };
        if self.stored_count(place)? == count {
            return Ok(());
        }
        for _ in 0..TRIES {
            let before = self.stored_count(place)?;
            let differs = self.count(place)? != before;
            if self.stored_count(place)? == before {
                if differs {
                    suspects.add(place);
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// What a row says of a count.
    fn stored_count(&self, place: Place) -> Result<u64> {
        match place {
            Place::Count(parent) => Ok(self.state(parent)?.count),
            Place::Replies(id, _) => self.reply_count(id),
            _ => Ok(0),
        }
    }

    /// How many there are of what a place counts.
    fn count(&self, place: Place) -> Result<u64> {
        let prefix = match place {
            Place::Count(parent) => layout::thread_prefix(parent),
            Place::Replies(id, Some(parent)) => layout::branch_prefix(parent, Some(id)),
            _ => return Ok(0),
        };
        let mut count = 0;
        for row in self.tree.rows(&prefix, (None, None), SeqNo::MAX) {
            let (_, value) = row?;
            count += match place {
                Place::Count(_) => {
                    let (status, _) = layout::read_version(self.ids, &value).ok_or_else(damaged)?;
                    u64::from(status == CommentStatus::Active)
                }
                _ => 1,
            };
        }
        Ok(count)
    }

    fn is_answered(&self, parent: Parent, id: CommentId) -> Result<bool> {
        self.has_rows(&layout::branch_prefix(parent, Some(id)))
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
            layout::VERSION => {
                let (id, stored) = StoredVersion::decode(key, value).ok_or_else(damaged)?;
                Place::Version(id, stored.version.version)
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
                // Only the row itself knows whether the thread is locked.
                let state = ThreadState { count: self.count(place)?, ..self.state(parent)? };
                let key = layout::state_key(parent);
                let is = state != ThreadState::default() || self.tree.get(&key)?.is_some();
                (key, is.then(|| layout::state_value(state)))
            }
            Place::Version(id, version) => {
                let key = layout::version_key(id, version);
                let is = self.record(id)?.is_some_and(|(_, record)| {
                    record.status != CommentStatus::Purged && version < record.version
                });
                let value = self.tree.get(&key)?.filter(|_| is).map(|value| value.to_vec());
                (key, value)
            }
            Place::Replies(id, _) => {
                let count = self.count(place)?;
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
fn places(parent: Parent, id: CommentId, record: &Record) -> [Place; 3] {
    [Place::Of(id, parent), Place::Reply(parent, record.reply_to, id), Place::By(record.author, id, parent)]
}

/// Places that seem to differ, up to a number of them.
struct Suspects {
    limit: usize,
    found: BTreeSet<Place>,
}

impl Suspects {
    fn add(&mut self, place: Place) {
        if self.found.len() < self.limit {
            self.found.insert(place);
        }
    }

    fn look_at(&mut self, threads: &Threads, place: Place) -> Result<()> {
        if threads.difference(place)?.is_some() {
            self.add(place);
        }
        Ok(())
    }
}

/// What is being counted, and how many there were so far.
#[derive(Default)]
struct Counting(Option<(Place, u64)>);

impl Counting {
    /// Counts for a place; returns what was counted for the one before it when another begins.
    fn add(&mut self, place: Place, count: u64) -> Option<Self> {
        match &mut self.0 {
            Some((current, total)) if *current == place => {
                *total += count;
                None
            }
            before => Some(Self(before.replace((place, count)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::block_on;
    use kinfolk_core::thread::{
        CommentVersion, NewComment, ParentKind, ThreadOrder, ThreadStore, Withdrawal,
    };
    use kinfolk_core::{IdKind, Position};

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
        block_on(store.withdraw_comment(ids[4], Withdrawal::Delete, None)).unwrap();
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
        tree.insert(layout::reply_count_key(CommentId(4)), 1_u64.to_be_bytes());
        let text = before.0[0].clone();
        let version = CommentVersion { version: 7, at: text.created_at, body: "stray".into() };
        let stored = StoredVersion { position: Position(1), version };
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
