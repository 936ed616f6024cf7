//! The posts in a backup: what is known of each id, and the idempotency keys. Authors' lists are made anew by a restore.
//!
//! ```text
//! block of kind 256, posts:            id | length u32 | record as in the tree of posts
//! block of kind 257, idempotency keys: author | hash of the key, 16 bytes | id | at u48
//! block of kind 258, the newest id that the store made, if it made one: id
//! ```
//!
//! Lengths are little-endian, everything else is as in the tree.

use kinfolk_core::Result;
use kinfolk_core::bulk::Progress;
use kinfolk_core::feeds::Post;

use super::{Posts, Record};
use crate::disk::backup_file::{BackupPart, Reader};
use crate::disk::byte_reader::push_bytes;
use crate::lsm::{RestoreOptions, TreeRestore};

const POSTS: u32 = 256;
const KEYS: u32 = 257;
const NEWEST_GENERATED: u32 = 258;

/// All posts as of now. Called by the writer, between two batches.
pub(crate) fn back_up(posts: &Posts) -> Result<BackupPart> {
    let moment = posts.tree.now();
    let (records, keys) = (posts.records(moment), posts.keys.rows(&posts.tree, moment));
    let newest_generated_id = posts.newest_generated_id()?;
    Ok(Box::new(move |out, totals, progress| {
        let report = |done| progress(Progress { stage: "backing up posts", done, total: None });
        totals.posts = out.write_rows(
            POSTS,
            records,
            |block, (id, record)| {
                id.push_to(block);
                push_bytes(block, &record.encode());
            },
            report,
        )?;
        totals.keys = out.write_rows(KEYS, keys, |block, key| key.push_to(block), |_| {})?;
        let newest = newest_generated_id.map(Ok).into_iter();
        out.write_rows(NEWEST_GENERATED, newest, |block, id| id.push_to(block), |_| {})?;
        Ok(())
    }))
}

/// Reads posts from a backup and makes them durable.
pub(crate) fn restore(posts: &Posts, backup: &mut Reader<'_>, options: RestoreOptions<'_>) -> Result<()> {
    let mut restore = TreeRestore { backup, tree: &posts.tree, ids: posts.ids, options };
    let restored = restore.rows(POSTS, Some("restoring posts"), |block, clamped| {
        let id = block.id()?;
        let mut record = Record::decode(id, block.length_and_bytes()?)?;
        let (Record::Present(Post { created_at, .. }, _) | Record::Deleted { created_at, .. }) = &mut record;
        *created_at = clamped(*created_at);
        posts.put_record(id, &record);
        Some(Ok(()))
    })?;
    let keys = restore.rows(KEYS, None, |block, clamped| {
        posts.keys.put(&posts.tree, posts.keys.read_record(block, clamped)?);
        Some(Ok(()))
    })?;
    restore.rows(NEWEST_GENERATED, None, |block, _| {
        posts.put_newest_generated_id(block.id()?);
        Some(Ok(()))
    })?;
    (restore.backup.totals.posts, restore.backup.totals.keys) = (restored, keys);
    restore.flush()
}
