//! Compares the authors' lists with the records, which are the truth, and repairs them.

use kinfolk_core::feed::{Delivery, PostKey};
use kinfolk_core::{Id, Result};
use lsm_tree::SeqNo;

use super::{Posts, Record, damaged, layout};

/// A place in an author's list.
pub type Place = (Id, PostKey);

impl Posts {
    /// Up to `limit` places where a list seems to differ from the records. Writes go on meanwhile: look again.
    pub fn suspects(&self, limit: usize, step: &dyn Fn(&'static str, u64)) -> Result<Vec<Place>> {
        let mut suspects = Vec::new();
        for (number, row) in (1..).zip(self.records(SeqNo::MAX)) {
            step("comparing posts", number);
            if let (_, Record::Present(post, _)) = row?
                && suspects.len() < limit
                && self.difference((post.author, post.key()))?.is_some()
            {
                suspects.push((post.author, post.key()));
            }
        }
        for (number, row) in (1..).zip(self.tree.rows(&[layout::BY_AUTHOR], (None, None), SeqNo::MAX)) {
            step("comparing authors' posts", number);
            let (key, value) = row?;
            let (author, at, _) = layout::read_author_row(self.ids, &key, &value).ok_or_else(damaged)?;
            // What the list lacks was found by its record.
            if suspects.len() < limit && self.difference((author, at))? == Some(None) {
                suspects.push((author, at));
            }
        }
        Ok(suspects)
    }

    /// What should be at a place of a list, if that is not what is there.
    pub fn difference(&self, (author, at): Place) -> Result<Option<Option<Delivery>>> {
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
        let noted = expected != Some(Delivery::Pull) || self.pulled_authors().binary_search(&author).is_ok();
        Ok((expected != found || !noted).then_some(expected))
    }

    /// Brings a place of a list back to what the record says. Runs on the writer's thread.
    pub fn mend(&self, (author, at): Place) -> Result<()> {
        match self.difference((author, at))? {
            None => {}
            Some(Some(delivery)) => self.put_in_list(author, at, delivery),
            Some(None) => self.tree.remove(layout::author_key(author, at)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::block_on;
    use kinfolk_core::feed::{NewPost, PostStore};
    use kinfolk_core::{IdKind, Timestamp};

    use super::*;
    use crate::{Embedded, Settings};

    /// Everything that can differ, differs; a repair brings it back, for good.
    #[test]
    fn differences_are_found_and_repaired() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { fan_out_threshold: 0, ..Settings::default() };
        let store = Embedded::create(folder.path(), IdKind::Integer, settings.clone()).unwrap();
        let author = Id::Integer(1);
        let wish = NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None };
        let truth: Vec<_> = (0..9).map(|_| block_on(store.register(wish.clone())).unwrap().post).collect();
        let listed = |store: &Embedded| block_on(store.posts_by(author, None, 99)).unwrap();
        let before = listed(&store);
        assert_eq!(store.verify(false, &|_| {}).unwrap().difference_count, 0);

        let posts = &store.shared().posts;
        let stray = PostKey { since: Timestamp::MIN, id: truth[3].id };
        posts.tree.insert(layout::author_key(author, stray), layout::author_value(Delivery::Pull));
        posts.tree.insert(layout::author_key(author, truth[4].key()), layout::author_value(Delivery::Push));
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
        assert_eq!(*store.shared().posts.pulled_authors(), [author]);
    }
}
