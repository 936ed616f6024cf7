//! The comments in a backup: their records, older bodies, idempotency keys and locks. Lists and counts are made anew by a
//! restore.
//!
//! ```text
//! block of kind 259, comments:         parent | id | length u32 | record as in the tree of comments
//! block of kind 260, older bodies:      id | version u32 | length u32 | body as in the tree of comments
//! block of kind 261, idempotency keys: author | hash of the key, 16 bytes | id | at u48
//! block of kind 262, locked threads:   parent
//! ```
//!
//! Lengths and versions are little-endian, everything else is as in the tree.

use kinfolk_core::Result;
use kinfolk_core::bulk::Progress;

use super::{Comments, Record, StoredVersion, version_key};
use crate::disk::backup_file::{BackupPart, Reader, Totals};
use crate::disk::byte_reader::push_bytes;
use crate::lsm::{RestoreOptions, TreeRestore};

const COMMENTS: u32 = 259;
const VERSIONS: u32 = 260;
const KEYS: u32 = 261;
const LOCKED: u32 = 262;

/// All comments as of now. Called by the writer, between two batches.
pub(crate) fn back_up(comments: &Comments) -> BackupPart {
    let moment = comments.tree.now();
    let (records, versions) = (comments.records(moment), comments.all_versions(moment));
    let (keys, locked) = (comments.keys.rows(&comments.tree, moment), comments.locked(moment));
    Box::new(move |out, totals, progress| {
        let report = |done| progress(Progress { stage: "backing up comments", done, total: None });
        totals.comments = out.write_rows(
            COMMENTS,
            records,
            |block, record: Record| {
                record.comment.parent.push_to(block);
                block.extend_from_slice(&record.comment.id.0.to_be_bytes());
                push_bytes(block, &record.encode());
            },
            report,
        )?;
        totals.versions = out.write_rows(
            VERSIONS,
            versions,
            |block, (id, stored)| {
                block.extend_from_slice(&id.0.to_be_bytes());
                block.extend_from_slice(&stored.version.version.to_le_bytes());
                push_bytes(block, &stored.encode());
            },
            |_| {},
        )?;
        totals.comment_keys = out.write_rows(KEYS, keys, |block, key| key.push_to(block), |_| {})?;
        out.write_rows(LOCKED, locked, |block, parent| parent.push_to(block), |_| {})?;
        Ok(())
    })
}

/// Reads comments from a backup and makes them durable.
pub(crate) fn restore(
    comments: &Comments,
    backup: &mut Reader<'_>,
    options: RestoreOptions<'_>,
) -> Result<()> {
    let mut restore = TreeRestore { backup, tree: &comments.tree, ids: comments.ids, options };
    let restored = restore.rows(COMMENTS, Some("restoring comments"), |block, clamped| {
        let (parent, id) = (block.parent()?, block.comment_id()?);
        let Record { mut comment, position } = Record::decode(parent, id, block.length_and_bytes()?)?;
        comment.created_at = clamped(comment.created_at);
        comment.edited_at = comment.edited_at.map(clamped);
        Some(comments.put_new(&Record { comment, position }))
    })?;
    let versions = restore.rows(VERSIONS, Some("restoring older bodies"), |block, clamped| {
        let (id, version) = (block.comment_id()?, u32::from_le_bytes(block.take()?));
        let (_, mut stored) = StoredVersion::decode(&version_key(id, version), block.length_and_bytes()?)?;
        stored.version.at = clamped(stored.version.at);
        comments.put_version(id, &stored);
        Some(Ok(()))
    })?;
    let comment_keys = restore.rows(KEYS, Some("restoring keys of comments"), |block, clamped| {
        comments.keys.put(&comments.tree, comments.keys.read_record(block, clamped)?);
        Some(Ok(()))
    })?;
    restore.rows(LOCKED, Some("restoring locks"), |block, _| {
        Some(comments.change_state(block.parent()?, |state| state.locked = true))
    })?;
    let totals = restore.backup.totals;
    restore.backup.totals = Totals { comments: restored, versions, comment_keys, ..totals };
    restore.flush()
}
