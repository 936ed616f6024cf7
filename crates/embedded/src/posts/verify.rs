//! Compares the authors' lists, the authors whose posts are pulled and the idempotency keys with the records, which are the
//! truth, and repairs them.

use std::fmt;

use kinfolk_core::feeds::{Delivery, PostKey};
use kinfolk_core::{Id, Result, Timestamp};

use super::{Posts, Record, damaged, layout};
use crate::projection::{Difference, Fault, FaultOf, Row, difference};

/// An author's list that is not what the record of a post says.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrongList {
    author: Id,
    at: PostKey,
}

impl fmt::Display for WrongList {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { author, at } = self;
        write!(out, "the posts by {author} differ from the record of post {} of {}", at.id, at.since)
    }
}

impl Fault for FaultOf<Posts, WrongList> {
    fn recheck(&self, _: Timestamp) -> Result<Option<Difference>> {
        let WrongList { author, at } = self.fault;
        Ok(self.of.list_difference(author, at)?.map(|_| difference(&self.of, self.fault)))
    }

    fn repair(&self, _: Timestamp) -> Result<()> {
        self.of.mend(self.fault)
    }
}

impl Posts {
    /// What seems to differ by a row.
    pub(super) fn suspect(&self, (key, value): &Row) -> Result<Option<WrongList>> {
        let (author, at, is_wrong) = match key.first() {
            Some(&layout::RECORD) => {
                let id = layout::read_tagged(self.ids, key).ok_or_else(damaged)?;
                let record = Record::decode(id, value).ok_or_else(damaged)?;
                let Record::Present(post, _) = record else { return Ok(None) };
                let (author, at) = (post.author, post.key());
                (author, at, self.list_difference(author, at)?.is_some())
            }
            Some(&layout::BY_AUTHOR) => {
                let (author, at, _) = layout::read_author_row(self.ids, key, value).ok_or_else(damaged)?;
                // What the list lacks is found by its record.
                (author, at, self.list_difference(author, at)? == Some(None))
            }
            _ => return Ok(None),
        };
        Ok(is_wrong.then_some(WrongList { author, at }))
    }

    /// What an author's list should have for a post, if that is not what it has.
    fn list_difference(&self, author: Id, at: PostKey) -> Result<Option<Option<Delivery>>> {
        let expected = match self.record(at.id)? {
            Some(Record::Present(post, delivery)) if (post.author, post.key()) == (author, at) => {
                Some(delivery)
            }
            _ => None,
        };
        let key = layout::author_key(author, at);
        let found = self.tree.get(&key)?;
        let found = found
            .map(|value| layout::read_author_row(self.ids, &key, &value).ok_or_else(damaged))
            .transpose()?
            .map(|(.., delivery)| delivery);
        let noted = expected != Some(Delivery::Pull) || self.is_noted_as_pulled(author)?;
        Ok((expected != found || !noted).then_some(expected))
    }

    /// Whether it is known, now and after a restart, that an author has posts that are pulled.
    fn is_noted_as_pulled(&self, author: Id) -> Result<bool> {
        let is_known = self.pulled_authors().binary_search(&author).is_ok();
        Ok(is_known && self.tree.get(layout::pulled_key(author))?.is_some())
    }

    /// Who has registered a post, whether or not it is there.
    pub(crate) fn author_of(&self, id: Id) -> Result<Option<Id>> {
        Ok(self.record(id)?.map(|record| match record {
            Record::Present(post, _) => post.author,
            Record::Deleted { author, .. } => author,
        }))
    }

    /// Brings a list back to what the record says. Runs on the writer's thread.
    fn mend(&self, WrongList { author, at }: WrongList) -> Result<()> {
        match self.list_difference(author, at)? {
            None => {}
            Some(Some(delivery)) => {
                self.put_in_list(author, at, delivery);
                if delivery == Delivery::Pull {
                    // What is known now may still be missing after a restart.
                    self.tree.insert(layout::pulled_key(author), []);
                }
            }
            Some(None) => self.tree.remove(layout::author_key(author, at)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::block_on;
    use kinfolk_core::feeds::{NewPost, PostStore};
    use kinfolk_core::{Frontier, IdKind, Timestamp};

    use super::*;
    use crate::{Embedded, Settings};

    /// Everything that can differ, differs; a repair brings it back, for good.
    #[test]
    fn differences_are_found_and_repaired() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { fan_out_threshold: 0, ..Settings::default() };
        let store = Embedded::create(folder.path(), IdKind::Integer, settings.clone()).unwrap();
        let author = Id::Integer(1);
        let request = NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None };
        let truth: Vec<_> = (0..9).map(|_| block_on(store.register(request.clone())).unwrap().post).collect();
        let listed = |store: &Embedded| block_on(store.posts_by(author, None, 99, Frontier::EMPTY)).unwrap();
        let before = listed(&store);
        assert_eq!(store.verify(false, &|_| {}).unwrap().difference_count, 0);

        let posts = &store.store.posts;
        let stray = PostKey { since: Timestamp::MIN, id: truth[3].id };
        posts.tree.insert(layout::author_key(author, stray), [layout::delivery_flag(Delivery::Pull)]);
        posts
            .tree
            .insert(layout::author_key(author, truth[4].key()), [layout::delivery_flag(Delivery::Push)]);
        posts.tree.remove(layout::author_key(author, truth[5].key()));
        *posts.pulled.write() = [].into();
        let found = store.verify(false, &|_| {}).unwrap();
        assert_eq!((found.difference_count, found.repaired), (10, false), "{:?}", found.differences);
        assert!(store.verify(true, &|_| {}).unwrap().repaired);
        assert_eq!(listed(&store), before);
        store.close().unwrap();
        let store = Embedded::open(folder.path(), settings).unwrap();
        assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
        assert_eq!(listed(&store), before);
        assert_eq!(*store.store.posts.pulled_authors(), [author]);
    }

    /// What is known in memory may be missing from the rows: nobody would notice before the next start.
    #[test]
    fn the_rows_of_pulled_authors_are_compared_too() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { fan_out_threshold: 0, ..Settings::default() };
        let store = Embedded::create(folder.path(), IdKind::Integer, settings).unwrap();
        let author = Id::Integer(1);
        let request = NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None };
        block_on(store.register(request)).unwrap();
        let posts = &store.store.posts;
        posts.tree.remove(layout::pulled_key(author));
        assert_eq!(store.verify(false, &|_| {}).unwrap().difference_count, 1);
        assert!(store.verify(true, &|_| {}).unwrap().repaired);
        assert!(posts.tree.get(layout::pulled_key(author)).unwrap().is_some());
    }
}
