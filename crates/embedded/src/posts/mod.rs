//! Posts on disk: one LSM tree with a projection of the log's posts. Not here: who sees them in a feed.
//!
//! ```text
//! 0u8                                    -> position u64                                 up to where the log is applied
//! 1u8 | id                               -> flags u8 | author | created_at u48 | payload what is known of an id
//! 2u8 | author | !created_at u48 | !id   -> flags u8                                     an author's posts, newest first
//! 3u8 | author | hash of the key         -> id | at u48                                  idempotency keys
//! 4u8 | author                           -> nothing                                      who has ever had a post pulled
//! 5u8                                    -> id                                           the newest that the store made
//! ```
//!
//! Everything is big-endian; `!` is the bitwise complement. Flags: 1 it is pulled, 2 it has a payload, 4 it was deleted
//! and only author and time are left. The records are the truth: a post is in its author's list after its record is
//! there, and out of it before the record says that it is gone. Posts are rare beside edges, so that the tree's own memory
//! takes new rows.

mod backup;
mod layout;
mod planning;
mod port;
mod verify;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::feeds::{Delivery, Post, PostKey, PostState, Registration};
use kinfolk_core::{Error, Id, IdKind, Result, Timestamp};
use lsm_tree::SeqNo;
use parking_lot::RwLock;

pub(crate) use backup::restore;
pub(crate) use layout::Record;
pub(crate) use planning::VisiblePosts;

use crate::disk::backup_file::BackupPart;
use crate::disk::format::Content;
use crate::log::{Event, EventBody};
use crate::lsm::{IdempotencyKeys, KeyRow, KeyUse, LoggedKey, LsmTree, Shared};
use crate::projection::{Difference, Row, TreeProjection, difference};

/// The posts of a store.
pub(crate) struct Posts {
    ids: IdKind,
    pub tree: LsmTree,
    /// Authors who have ever had a post pulled, by id.
    pulled: RwLock<Arc<[Id]>>,
    keys: IdempotencyKeys,
}

impl Posts {
    /// Opens the posts in a folder, making it if it is missing. Idempotency keys are kept for `key_keep`.
    pub(crate) fn open(folder: &Path, ids: IdKind, shared: &Shared, key_keep: Duration) -> Result<Self> {
        let keys = IdempotencyKeys::new(layout::KEY, ids, ids, key_keep);
        let tree = LsmTree::open("posts", folder, shared, &keys)?;
        let posts = Self { ids, tree, pulled: RwLock::new(Arc::from([])), keys };
        let authors = posts
            .tree
            .rows(&[layout::PULLED_AUTHOR], (None, None), SeqNo::MAX)
            .map(|row| layout::read_tagged(ids, &row?.0).ok_or_else(damaged));
        *posts.pulled.write() = authors.collect::<Result<_>>()?;
        Ok(posts)
    }

    /// What is known of an id.
    pub(crate) fn state(&self, id: Id) -> Result<Option<PostState>> {
        Ok(self.record(id)?.map(Record::into_state))
    }

    /// The record of an id.
    pub(crate) fn record(&self, id: Id) -> Result<Option<Record>> {
        let value = self.tree.get(layout::record_key(id))?;
        value.map(|value| Record::decode(id, &value).ok_or_else(damaged)).transpose()
    }

    /// Whether there is such a post, without reading all of it.
    pub(crate) fn is_present(&self, id: Id) -> Result<bool> {
        let value = self.tree.get(layout::record_key(id))?;
        value.map_or(Ok(false), |value| layout::read_presence(&value).ok_or_else(damaged))
    }

    /// The author's posts, newest first, strictly after a key if one is given, with how they are delivered. A post may
    /// be deleted before it is read: its state says so.
    pub(crate) fn by_author(
        &self,
        author: Id,
        after: Option<PostKey>,
    ) -> impl Iterator<Item = Result<(PostKey, Delivery)>> + Send + use<> {
        let ids = self.ids;
        let after = after.map(|after| layout::author_key(author, after));
        self.tree.rows(&layout::author_prefix(author), (after.as_deref(), None), SeqNo::MAX).map(move |row| {
            let (key, value) = row?;
            let (_, at, delivery) = layout::read_author_row(ids, &key, &value).ok_or_else(damaged)?;
            Ok((at, delivery))
        })
    }

    /// A page of an author's posts.
    pub(crate) fn page(&self, author: Id, after: Option<PostKey>, limit: usize) -> Result<Vec<Post>> {
        let mut posts = Vec::new();
        for row in self.by_author(author, after) {
            if posts.len() == limit {
                break;
            }
            // Deleted since its row was read: then it is in no page that is made from now on.
            if let Some(PostState::Present(post, _)) = self.state(row?.0.id)? {
                posts.push(post);
            }
        }
        Ok(posts)
    }

    /// Authors who have ever had a post pulled, by id.
    pub(crate) fn pulled_authors(&self) -> Arc<[Id]> {
        Arc::clone(&self.pulled.read())
    }

    /// The newest id that the store made, if it ever made one.
    pub(crate) fn newest_generated_id(&self) -> Result<Option<Id>> {
        let value = self.tree.get(layout::NEWEST_GENERATED_KEY)?;
        value.map(|value| self.ids.read(&value).ok_or_else(damaged)).transpose()
    }

    fn put(&self, registration: &Registration, at: Timestamp) {
        let Registration { post, delivery, key, is_id_generated } = registration;
        self.put_record(post.id, &Record::Present(post.clone(), *delivery));
        if let Some(hash) = key {
            let used = KeyUse { id: post.id, at };
            self.keys.put(&self.tree, KeyRow { author: post.author, hash: *hash, used });
        }
        if *is_id_generated {
            self.put_newest_generated_id(post.id);
        }
        self.keys.note(at);
    }

    /// Puts a record in, and the post into its author's list.
    pub(crate) fn put_record(&self, id: Id, record: &Record) {
        self.tree.insert(layout::record_key(id), record.encode());
        if let Record::Present(post, delivery) = record {
            self.put_in_list(post.author, post.key(), *delivery);
        }
    }

    fn put_in_list(&self, author: Id, at: PostKey, delivery: Delivery) {
        if delivery == Delivery::Pull {
            self.note_pulled(author);
        }
        self.tree.insert(layout::author_key(author, at), [layout::delivery_flag(delivery)]);
    }

    /// Remembers the newest id that the store made.
    pub(crate) fn put_newest_generated_id(&self, id: Id) {
        let mut value = Vec::with_capacity(16);
        id.push_to(&mut value);
        self.tree.insert(layout::NEWEST_GENERATED_KEY, value);
    }

    fn note_pulled(&self, author: Id) {
        let known = self.pulled_authors();
        if let Err(at) = known.binary_search(&author) {
            self.tree.insert(layout::pulled_key(author), []);
            let (before, after) = known.split_at(at);
            *self.pulled.write() = before.iter().chain([&author]).chain(after).copied().collect();
        }
    }

    /// All records as of a sequence number, by id.
    fn records(&self, sequence: SeqNo) -> impl Iterator<Item = Result<(Id, Record)>> + Send + use<> {
        let ids = self.ids;
        self.tree.rows(&[layout::RECORD], (None, None), sequence).map(move |row| {
            let (key, value) = row?;
            let id = layout::read_tagged(ids, &key).ok_or_else(damaged)?;
            Ok((id, Record::decode(id, &value).ok_or_else(damaged)?))
        })
    }
}

impl TreeProjection for Posts {
    const CONTENT: Content = Content::Posts;
    const STAGE: &'static str = "comparing posts";
    const KEYED: &'static str = "post";
    type Tally = ();

    fn tree(&self) -> &LsmTree {
        &self.tree
    }

    fn keys(&self) -> &IdempotencyKeys {
        &self.keys
    }

    fn apply_event(&self, event: &Event) -> Result<()> {
        match &event.body {
            EventBody::Posted(registration) => self.put(registration, event.at),
            &EventBody::PostDeleted { id, author, created_at } => {
                self.tree.remove(layout::author_key(author, PostKey { since: created_at, id }));
                self.tree.insert(layout::record_key(id), Record::Deleted { author, created_at }.encode());
            }
            _ => {}
        }
        Ok(())
    }

    fn examine(self: &Arc<Self>, row: &Row, (): &mut (), found: &mut Vec<Difference>) -> Result<()> {
        found.extend(self.suspect(row)?.map(|fault| difference(self, fault)));
        Ok(())
    }

    fn key_of(&self, event: &Event) -> Option<LoggedKey> {
        let EventBody::Posted(posted) = &event.body else { return None };
        let logged = Some(KeyUse { id: posted.post.id, at: event.at });
        Some(LoggedKey { author: posted.post.author, hash: posted.key?, logged })
    }

    fn is_sound(&self, key: &LoggedKey, used: KeyUse, now: Timestamp) -> Result<bool> {
        Ok(used.at <= now && self.author_of(used.id)? == Some(key.author))
    }

    fn back_up(&self) -> Result<BackupPart> {
        backup::back_up(self)
    }
}

fn damaged() -> Error {
    Error::corrupt("a row of posts has an unknown layout; restore from a backup")
}
