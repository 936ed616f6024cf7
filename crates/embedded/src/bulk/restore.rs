//! Restores: a new store from a backup, in a folder that is missing or empty. What a backup is made of is not said here.
//!
//! The folder is marked before anything is made in it, and until everything is durable: a restore that was killed can be run
//! again, and replaces what it has made before, but nothing else.

use std::path::Path;
use std::sync::Arc;

use kinfolk_core::{EdgeKind, Epoch, IdKind, Result, Sequence, Timestamp};

use crate::BackupReport;
use crate::comments::{self, Comments};
use crate::disk::backup_file::{Header, Reader};
use crate::disk::checkpoint::Checkpoint;
use crate::disk::files::{self, IoContext};
use crate::disk::folder_lock::FolderLock;
use crate::disk::format::{self, Content, Identity};
use crate::disk::id_encoding::IdEncoding;
use crate::disk::restore_marker::Marker;
use crate::edges::KindEdges;
use crate::edges::Rows;
use crate::edges::index::{self, Index};
use crate::edges::load::{self, Target};
use crate::lsm::{RestoreOptions, Shared};
use crate::posts::{self, Posts};
use crate::{Progress, Settings};

/// For sorting.
const SCRATCH: &str = "restoring";
/// The folders that a restore makes.
const FOLDERS: [&str; 4] = ["rows", "posts", "comments", SCRATCH];
/// The files that it makes, and what a stop leaves of them.
const FILES: [&str; 6] =
    ["index.snapshot", "index.tmp", "checkpoint", "checkpoint.tmp", "FORMAT", "FORMAT.tmp"];

/// Makes a store from a backup in a folder that is missing, empty, or left by a restore that was stopped. Times after `latest`
/// become that one.
pub(crate) fn restore(
    path: &Path,
    folder: &Path,
    settings: &Settings,
    latest: Timestamp,
    progress: &dyn Fn(Progress),
) -> Result<BackupReport> {
    let mut reader = Reader::open(path)?;
    reader.latest = latest;
    let header = reader.header()?;
    let _lock = claim(folder)?;
    let restored = match header.ids {
        IdKind::Integer => restore_all::<u64>(&mut reader, folder, header, settings, progress),
        IdKind::Uuid => restore_all::<u128>(&mut reader, folder, header, settings, progress),
    };
    restored.inspect_err(|_| {
        // What can't be removed stays marked, for the next try.
        let _ = remove_parts(folder).and_then(|()| Marker::remove(folder));
    })?;
    Marker::remove(folder)?;
    Ok(reader.totals.report(header.position, reader.bytes))
}

/// Takes a folder, empties it of what a restore has left that was stopped, and marks it.
fn claim(folder: &Path) -> Result<FolderLock> {
    if matches!(Marker::of(folder)?, Marker::Absent | Marker::Foreign) {
        format::require_vacant(folder)?;
    }
    let lock = FolderLock::take(folder)?;
    // Again, now that nobody else can be doing the same.
    match Marker::of(folder)? {
        Marker::Absent | Marker::Foreign => {}
        Marker::Torn => Marker::remove(folder)?,
        Marker::Whole => {
            remove_parts(folder)?;
            Marker::remove(folder)?;
        }
    }
    format::require_vacant(folder)?;
    Marker::set(folder)?;
    Ok(lock)
}

/// Removes what a restore makes, and nothing else.
fn remove_parts(folder: &Path) -> Result<()> {
    for part in FOLDERS.map(|name| folder.join(name)) {
        std::fs::remove_dir_all(&part).if_found("removing", &part)?;
    }
    FILES.iter().try_for_each(|name| files::remove_file(&folder.join(name)))?;
    files::sync_folder(folder)
}

/// A restore builds a store from the bottom up, in an empty folder and without its log: it opens what it fills, one after another, in the
/// order of the file.
fn restore_all<K: IdEncoding>(
    reader: &mut Reader<'_>,
    folder: &Path,
    Header { content, position, floor, .. }: Header,
    settings: &Settings,
    progress: &dyn Fn(Progress),
) -> Result<()> {
    let shared = Shared::new(settings.cache_bytes, Sequence::START, &Arc::default());
    let rows = Rows::open(&folder.join("rows"), K::KIND, shared.clone())?;
    let index = Index::new(K::KIND);
    let scratch = folder.join(SCRATCH);
    files::create_folder(&scratch)?;
    for kind in EdgeKind::ALL {
        let target = Target {
            rows: &rows,
            index: &index,
            scratch: &scratch,
            sort_memory: settings.sort_memory,
            position,
            kind,
            trees: [true; 3],
            indexed: true,
            total: None,
        };
        let edges = KindEdges::<K>::new(reader, kind);
        load::load(&target, edges, None, progress)?;
    }
    let options = RestoreOptions { position, flush_bytes: settings.flush_post_bytes, progress };
    if content >= Content::Posts {
        let posts = Posts::open(&folder.join("posts"), K::KIND, &shared, settings.post_key_keep)?;
        posts::restore(&posts, reader, options)?;
    }
    if content >= Content::Comments {
        let folder = folder.join("comments");
        let comments = Comments::open(&folder, K::KIND, &shared, settings.comment_key_keep)?;
        comments::restore(&comments, reader, options)?;
    }
    reader.end(content)?;
    std::fs::remove_dir_all(&scratch).during("removing", &scratch)?;
    let epoch = Epoch(u64::from_le_bytes(format::random()?));
    index::save(&index, folder, epoch, position)?;
    Checkpoint { rows: position, floor: reader.clamped(floor) }.write(folder)?;
    format::write_identity(folder, Identity { ids: K::KIND, epoch, base: position, content })
}
