//! Compares the authors' lists, the authors whose posts are pulled and the idempotency keys with the records, which are the
//! truth, and repairs them.

use std::fmt;
use std::sync::Arc;

use kinfolk_core::feeds::{Delivery, PostKey};
use kinfolk_core::{Id, Result, Timestamp};
use lsm_tree::{UserKey, UserValue};

use super::{Posts, Record, damaged, layout};
use crate::log::{Event, EventBody};
use crate::lsm::{KeyUse, LoggedKey, first_key};
use crate::projection::{Difference, Fault, Findings, Reconcile, Suspects, difference};

/// Something that differs from the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostFault {
    /// The list of an author's posts is not what the post's record says.
    Listed { author: Id, at: PostKey },
    /// An idempotency key names something else than the log and the records.
    Key(LoggedKey),
}

impl fmt::Display for PostFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed { author, at } => {
                write!(out, "the posts by {author} differ from the record of post {} of {}", at.id, at.since)
            }
            Self::Key(key) => key.describe(out, "post"),
        }
    }
}

impl Fault<Posts> for PostFault {
    fn recheck(&self, posts: &Posts, now: Timestamp) -> Result<Option<Self>> {
        let differs = match self {
            &Self::Listed { author, at } => posts.difference(author, at)?.is_some(),
            Self::Key(key) => posts.key_difference(key, now)?.is_some(),
        };
        Ok(differs.then_some(*self))
    }

    fn repair(&self, posts: &Posts, now: Timestamp) -> Result<()> {
        match self {
            &Self::Listed { author, at } => posts.mend(author, at),
            Self::Key(key) => posts.mend_key(key, now),
        }
    }
}

/// Compares all rows.
pub fn compare(posts: &Arc<Posts>, now: Timestamp, suspects: &mut Suspects<'_>) -> Result<()> {
    for (number, row) in (1..).zip(posts.tree.all_rows()) {
        suspects.step("comparing posts", number);
        if let Some(fault) = posts.examine(&row?, now)? {
            suspects.add(difference(posts, fault))?;
        }
    }
    Ok(())
}

/// The key that an event must have left.
pub fn logged_key(posts: &Arc<Posts>, event: &Event) -> Option<Difference> {
    let EventBody::Posted(posted) = &event.body else { return None };
    let (author, hash, id) = (posted.post.author, posted.key?, posted.post.id);
    let logged = Some(KeyUse { id, at: event.at });
    Some(difference(posts, PostFault::Key(LoggedKey { author, hash, logged })))
}

/// Goes through all rows of posts.
pub struct PostReconcile {
    posts: Arc<Posts>,
    from: Vec<u8>,
}

impl PostReconcile {
    /// Begins with the first row.
    pub fn new(posts: &Arc<Posts>) -> Self {
        Self { posts: Arc::clone(posts), from: first_key() }
    }
}

impl Reconcile for PostReconcile {
    fn step(&mut self, findings: &mut Findings) -> bool {
        let mut part = self.posts.tree.part(&self.from, findings.rows_max);
        findings.note_part(&mut part);
        for row in &part.rows {
            let fault = findings.readable(self.posts.examine(row, findings.now)).flatten();
            findings.suspected.extend(fault.map(|fault| difference(&self.posts, fault)));
        }
        let is_complete = part.next.is_none();
        self.from = part.next.unwrap_or_else(first_key);
        is_complete
    }
}

impl Posts {
    /// What seems to differ by a row.
    fn examine(&self, (key, value): &(UserKey, UserValue), now: Timestamp) -> Result<Option<PostFault>> {
        match key.first() {
            Some(&layout::RECORD) => {
                let id = layout::read_tagged(self.ids, key).ok_or_else(damaged)?;
                let record = Record::decode(id, value).ok_or_else(damaged)?;
                let Record::Present(post, _) = record else { return Ok(None) };
                let (author, at) = (post.author, post.key());
                let differs = self.difference(author, at)?.is_some();
                Ok(differs.then_some(PostFault::Listed { author, at }))
            }
            Some(&layout::BY_AUTHOR) => {
                let (author, at, _) = layout::read_author_row(self.ids, key, value).ok_or_else(damaged)?;
                // What the list lacks is found by its record.
                let is_stray = self.difference(author, at)? == Some(None);
                Ok(is_stray.then_some(PostFault::Listed { author, at }))
            }
            Some(&layout::KEY) => {
                let key = self.keys.read_key(&self.tree, key)?;
                let differs = self.key_difference(&key, now)?.is_some();
                Ok(differs.then_some(PostFault::Key(key)))
            }
            _ => Ok(None),
        }
    }

    /// What should be at a place of a list, if that is not what is there.
    fn difference(&self, author: Id, at: PostKey) -> Result<Option<Option<Delivery>>> {
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

    /// What a key should stand for, if that is not what it does.
    fn key_difference(&self, key: &LoggedKey, now: Timestamp) -> Result<Option<Option<KeyUse>>> {
        let is_sound = |used: KeyUse| Ok(used.at <= now && self.author_of(used.id)? == Some(key.author));
        self.keys.difference(&self.tree, key, now, is_sound)
    }

    /// Who has registered a post, whether or not it is there.
    fn author_of(&self, id: Id) -> Result<Option<Id>> {
        Ok(self.record(id)?.map(|record| match record {
            Record::Present(post, _) => post.author,
            Record::Deleted { author, .. } => author,
        }))
    }

    /// Brings a key back to what it stands for. Runs on the writer's thread.
    fn mend_key(&self, key: &LoggedKey, now: Timestamp) -> Result<()> {
        self.keys.mend(&self.tree, key, self.key_difference(key, now)?);
        Ok(())
    }

    /// Brings a place of a list back to what the record says. Runs on the writer's thread.
    fn mend(&self, author: Id, at: PostKey) -> Result<()> {
        match self.difference(author, at)? {
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

    /// What is known in memory may be missing from the rows: nobody would notice before the next start.
    #[test]
    fn the_rows_of_pulled_authors_are_compared_too() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { fan_out_threshold: 0, ..Settings::default() };
        let store = Embedded::create(folder.path(), IdKind::Integer, settings).unwrap();
        let author = Id::Integer(1);
        let request = NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None };
        block_on(store.register(request)).unwrap();
        let posts = &store.shared().posts;
        posts.tree.remove(layout::pulled_key(author));
        assert_eq!(store.verify(false, &|_| {}).unwrap().difference_count, 1);
        assert!(store.verify(true, &|_| {}).unwrap().repaired);
        assert!(posts.tree.get(layout::pulled_key(author)).unwrap().is_some());
    }
}
