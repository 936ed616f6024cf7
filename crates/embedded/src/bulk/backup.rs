//! Backups: all projections as of one position, written into one stream.

use std::io::Write;

use kinfolk_core::Result;
use kinfolk_core::bulk::{BackupReport, Progress};

use crate::disk::backup_file::{BackupPart, Blocks, Header, Totals};
use crate::disk::format::Identity;
use crate::engine::store::Store;

/// Everything as of one moment.
pub struct Snapshot {
    /// Its content is the backup's version, so that an older Kinfolk reads what it knows.
    header: Header,
    parts: Vec<BackupPart>,
}

impl Snapshot {
    /// The store as it is now. Called by the writer, between two batches.
    pub fn take(store: &Store) -> Result<Self> {
        store.settle_rows()?;
        let content = store.content();
        let (ids, position, floor) = (store.identity.ids, store.position(), store.newest_time());
        let parts = store.projections.used(content).filter_map(|projection| projection.back_up().transpose());
        Ok(Self { header: Header { content, ids, position, floor }, parts: parts.collect::<Result<_>>()? })
    }
}

/// Writes a backup into a stream, as it is read from the snapshot: neither needs the backup's size in memory or on disk. The
/// snapshot is released at the end, also where the stream fails.
pub fn write(
    identity: Identity,
    Snapshot { header, parts }: Snapshot,
    out: &mut dyn Write,
    progress: &dyn Fn(Progress),
) -> Result<BackupReport> {
    let mut out = Blocks::begin(out, &header, identity)?;
    let mut totals = Totals::default();
    for part in parts {
        part(&mut out, &mut totals, progress)?;
    }
    let bytes = out.finish(totals, header.content)?;
    Ok(totals.report(header.position, bytes))
}
