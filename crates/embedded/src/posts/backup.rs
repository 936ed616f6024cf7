//! The posts in a backup: what is known of each id, and the idempotency keys. Authors' lists are made anew by a restore.
//!
//! ```text
//! block of kind 256, posts:            id | length u32 | record as in the tree of posts
//! block of kind 257, idempotency keys: author | hash of the key, 16 bytes | id | at u48
//! block of kind 258, the newest id that the store made, if it made one: id
//! ```
//!
//! Lengths are little-endian, everything else is as in the tree.

use kinfolk_core::feeds::Post;
use kinfolk_core::{Id, IdKind, Result, Sequence};

use super::{Posts, PostsSnapshot, Record};
use crate::disk::backup_file::{BackupPart, Blocks, Reader, Totals};
use crate::disk::id_encoding;
use crate::edges::load::Block;
use crate::lsm::{KeyRow, KeyUse, RowStorage, decode_since, since_value};
use crate::{Progress, Settings};

const POSTS: u32 = 256;
const KEYS: u32 = 257;
const NEWEST_GENERATED: u32 = 258;

impl BackupPart for PostsSnapshot {
    fn write(
        self: Box<Self>,
        out: &mut Blocks<'_>,
        totals: &mut Totals,
        progress: &dyn Fn(Progress),
    ) -> Result<()> {
        for row in self.records {
            let (id, record) = row?;
            let record = record.encode();
            id_encoding::push_id(&mut out.block, id);
            out.block.extend_from_slice(&(record.len() as u32).to_le_bytes());
            out.block.extend_from_slice(&record);
            totals.posts += 1;
            if out.close_if_full(POSTS)? {
                progress(Progress { stage: "backing up posts", done: totals.posts, total: None });
            }
        }
        out.close_if_any(POSTS)?;
        for row in self.keys {
            let KeyRow { author, hash, used } = row?;
            id_encoding::push_id(&mut out.block, author);
            out.block.extend_from_slice(&hash);
            id_encoding::push_id(&mut out.block, used.id);
            out.block.extend_from_slice(&since_value(used.at));
            totals.keys += 1;
            out.close_if_full(KEYS)?;
        }
        out.close_if_any(KEYS)?;
        if let Some(id) = self.newest_generated_id {
            id_encoding::push_id(&mut out.block, id);
        }
        out.close_if_any(NEWEST_GENERATED)
    }
}

/// Brings the posts of a backup into a store that has none, as of a position.
pub fn restore(
    reader: &mut Reader<'_>,
    (posts, ids): (&Posts, IdKind),
    position: Sequence,
    settings: &Settings,
    progress: &dyn Fn(Progress),
) -> Result<()> {
    let flush = || {
        posts.tree.seal(position);
        posts.tree.flush()
    };
    let flush_if_large = || if posts.tree.unsealed() >= settings.flush_post_bytes { flush() } else { Ok(()) };
    while let Some(bytes) = reader.block(POSTS)? {
        let mut block = Block::new(bytes);
        while !block.is_read() {
            let (id, mut record) = read_post(ids, &mut block).ok_or_else(|| reader.damaged())?;
            let (Record::Present(Post { created_at, .. }, _) | Record::Deleted { created_at, .. }) =
                &mut record;
            *created_at = reader.clamped(*created_at);
            posts.put_record(id, &record);
            reader.totals.posts += 1;
        }
        flush_if_large()?;
        progress(Progress { stage: "restoring posts", done: reader.totals.posts, total: None });
    }
    while let Some(bytes) = reader.block(KEYS)? {
        let mut block = Block::new(bytes);
        while !block.is_read() {
            let mut key = read_key(ids, &mut block).ok_or_else(|| reader.damaged())?;
            key.used.at = reader.clamped(key.used.at);
            posts.put_key(key);
            reader.totals.keys += 1;
        }
        flush_if_large()?;
    }
    while let Some(bytes) = reader.block(NEWEST_GENERATED)? {
        let id = id_encoding::read_id(ids, &bytes).ok_or_else(|| reader.damaged())?;
        posts.put_newest_generated_id(id);
    }
    flush()
}

fn read_id(ids: IdKind, block: &mut Block) -> Option<Id> {
    id_encoding::read_id(ids, block.take(id_encoding::id_len(ids))?)
}

fn read_post(ids: IdKind, block: &mut Block) -> Option<(Id, Record)> {
    let id = read_id(ids, block)?;
    let length = u32::from_le_bytes(block.take(4)?.try_into().ok()?);
    Some((id, Record::decode(id, block.take(length as usize)?)?))
}

fn read_key(ids: IdKind, block: &mut Block) -> Option<KeyRow<Id>> {
    let author = read_id(ids, block)?;
    let hash = block.take(16)?.try_into().ok()?;
    let id = read_id(ids, block)?;
    Some(KeyRow { author, hash, used: KeyUse { id, at: decode_since(block.take(6)?)? } })
}
