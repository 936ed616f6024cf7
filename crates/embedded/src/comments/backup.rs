//! The comments in a backup: their records, older texts, idempotency keys and locks. Lists and counts are made anew by a
//! restore.
//!
//! ```text
//! block of kind 259, comments:         parent | id | length u32 | record as in the tree of comments
//! block of kind 260, older texts:      id | version u32 | length u32 | text as in the tree of comments
//! block of kind 261, idempotency keys: author | hash of the key, 16 bytes | id | at u48
//! block of kind 262, locked threads:   parent
//! ```
//!
//! Lengths and versions are little-endian, everything else is as in the tree.

use kinfolk_core::{Id, IdKind, Result, Sequence, Timestamp};

use super::{Comments, CommentsSnapshot, Record, StoredVersion, version_key};
use crate::disk::backup_file::{BackupPart, Blocks, Reader as Backup, Totals};
use crate::disk::id_encoding;
use crate::log::{Reader, push_parent};
use crate::lsm::{KeyRow, KeyUse, RowStorage, decode_since, since_value};
use crate::{Progress, Settings};

const COMMENTS: u32 = 259;
const VERSIONS: u32 = 260;
const KEYS: u32 = 261;
const LOCKED: u32 = 262;

impl BackupPart for CommentsSnapshot {
    fn write(
        self: Box<Self>,
        out: &mut Blocks<'_>,
        totals: &mut Totals,
        progress: &dyn Fn(Progress),
    ) -> Result<()> {
        for row in self.records {
            let record = row?;
            push_parent(&mut out.block, record.comment.parent);
            out.block.extend_from_slice(&record.comment.id.0.to_be_bytes());
            push_bytes(&mut out.block, &record.encode());
            totals.comments += 1;
            if out.close_if_full(COMMENTS)? {
                progress(Progress { stage: "backing up comments", done: totals.comments, total: None });
            }
        }
        out.close_if_any(COMMENTS)?;
        for row in self.versions {
            let (id, stored) = row?;
            out.block.extend_from_slice(&id.0.to_be_bytes());
            out.block.extend_from_slice(&stored.version.version.to_le_bytes());
            push_bytes(&mut out.block, &stored.encode());
            totals.versions += 1;
            out.close_if_full(VERSIONS)?;
        }
        out.close_if_any(VERSIONS)?;
        for row in self.keys {
            let KeyRow { author, hash, used } = row?;
            id_encoding::push_id(&mut out.block, author);
            out.block.extend_from_slice(&hash);
            out.block.extend_from_slice(&used.id.0.to_be_bytes());
            out.block.extend_from_slice(&since_value(used.at));
            totals.comment_keys += 1;
            out.close_if_full(KEYS)?;
        }
        out.close_if_any(KEYS)?;
        for parent in self.locked {
            push_parent(&mut out.block, parent?);
            out.close_if_full(LOCKED)?;
        }
        out.close_if_any(LOCKED)
    }
}

fn push_bytes(block: &mut Vec<u8>, bytes: &[u8]) {
    block.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    block.extend_from_slice(bytes);
}

/// Brings the comments of a backup into a store that has none, as of a position.
pub fn restore(
    backup: &mut Backup<'_>,
    (comments, ids): (&Comments, IdKind),
    position: Sequence,
    settings: &Settings,
    progress: &dyn Fn(Progress),
) -> Result<()> {
    let mut blocks = |kind: u32, stage: &'static str, put: Put| -> Result<u64> {
        let mut done = 0;
        while let Some(bytes) = backup.block(kind)? {
            let mut block = Reader { ids, bytes: &bytes };
            while !block.bytes.is_empty() {
                put(comments, &mut block, &|time| backup.clamped(time)).ok_or_else(|| backup.damaged())??;
                done += 1;
            }
            if comments.tree.unsealed() >= settings.flush_post_bytes {
                flush(comments, position)?;
            }
            progress(Progress { stage, done, total: None });
        }
        Ok(done)
    };
    let written = blocks(COMMENTS, "restoring comments", put_comment)?;
    let versions = blocks(VERSIONS, "restoring older texts", put_version)?;
    let comment_keys = blocks(KEYS, "restoring keys of comments", put_key)?;
    blocks(LOCKED, "restoring locks", put_lock)?;
    backup.totals = Totals { comments: written, versions, comment_keys, ..backup.totals };
    flush(comments, position)
}

fn flush(comments: &Comments, position: Sequence) -> Result<()> {
    comments.tree.seal(position);
    comments.tree.flush()
}

/// A time of the backup, as it is restored.
type Clamped<'a> = &'a dyn Fn(Timestamp) -> Timestamp;

/// Takes one of what a block holds and puts it in.
type Put = fn(&Comments, &mut Reader<'_>, Clamped<'_>) -> Option<Result<()>>;

fn put_comment(comments: &Comments, block: &mut Reader<'_>, clamped: Clamped<'_>) -> Option<Result<()>> {
    let (parent, id) = (block.parent()?, block.comment_id()?);
    let Record { mut comment, position } = Record::decode(parent, id, block.length_and_bytes()?)?;
    comment.created_at = clamped(comment.created_at);
    comment.edited_at = comment.edited_at.map(clamped);
    Some(comments.put_new(&Record { comment, position }))
}

fn put_version(comments: &Comments, block: &mut Reader<'_>, clamped: Clamped<'_>) -> Option<Result<()>> {
    let (id, version) = (block.comment_id()?, u32::from_le_bytes(block.take()?));
    let (_, mut stored) = StoredVersion::decode(&version_key(id, version), block.length_and_bytes()?)?;
    stored.version.at = clamped(stored.version.at);
    comments.put_version(id, &stored);
    Some(Ok(()))
}

fn put_key(comments: &Comments, block: &mut Reader<'_>, clamped: Clamped<'_>) -> Option<Result<()>> {
    let (author, hash): (Id, _) = (block.id()?, block.take()?);
    let (id, at) = (block.comment_id()?, clamped(decode_since(&block.take::<6>()?)?));
    comments.put_key(KeyRow { author, hash, used: KeyUse { id, at } });
    Some(Ok(()))
}

fn put_lock(comments: &Comments, block: &mut Reader<'_>, _: Clamped<'_>) -> Option<Result<()>> {
    let parent = block.parent()?;
    Some(comments.change_state(parent, |state| state.locked = true))
}
