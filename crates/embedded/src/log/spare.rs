//! The next segment of a log that grows fast, made ready in the background: a file of zeros, as long as a segment, and synced.
//!
//! The writer extends its segment in steps. The sync after a step has the file system record a new size, for which it may wait until
//! what is written to other files is on disk, too: hundreds of milliseconds beside a compaction. A file that was made ready needs
//! neither. It is beside the log until it is used, where a start removes it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use kinfolk_core::Result;
use parking_lot::Mutex;

use super::writer::{LogSizes, write_zeros};
use crate::disk::files::{IoContext, remove_file};

const FILE_NAME: &str = "next-segment";
/// What is written is synced in steps: the syncs of the log wait for less then.
const STEP_BYTES: u64 = 8 << 20;

/// The file, and whether there is one.
#[derive(Debug)]
pub(crate) struct Spare {
    path: PathBuf,
    /// How long it is: a segment, and a frame that goes past its end.
    length: u64,
    wanted: AtomicBool,
    ready: Mutex<Option<File>>,
}

impl Spare {
    /// None yet. Removes what an earlier process has left.
    pub(super) fn new(store_folder: &Path, sizes: LogSizes) -> Result<Self> {
        let path = store_folder.join(FILE_NAME);
        remove_file(&path)?;
        let length = sizes.segment_bytes + sizes.allocate_bytes;
        Ok(Self { path, length, wanted: AtomicBool::new(false), ready: Mutex::default() })
    }

    /// Has one made from now on, whenever there is none.
    pub(super) fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Whether one can be installed.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.lock().is_some()
    }

    /// Makes it ready if it is wanted. One thread does so.
    pub(super) fn prepare(&self) -> Result<()> {
        if !self.wanted.load(Ordering::Relaxed) || self.is_ready() {
            return Ok(());
        }
        let make = || -> io::Result<File> {
            let file = File::create(&self.path)?;
            for from in (0..self.length).step_by(STEP_BYTES as usize) {
                write_zeros(&file, from, self.length.min(from + STEP_BYTES))?;
                file.sync_data()?;
            }
            file.sync_all()?;
            Ok(file)
        };
        // What a failure leaves may take the last space.
        let file = make().during("preparing", &self.path).inspect_err(|_| drop(remove_file(&self.path)))?;
        *self.ready.lock() = Some(file);
        Ok(())
    }

    /// Moves it to where it is a segment, with its header. The folder is the caller's to sync.
    pub(super) fn install(&self, header: &[u8], path: &Path) -> io::Result<Option<File>> {
        // Held to the end: only then may the next one be made in its place.
        let mut ready = self.ready.lock();
        let Some(file) = ready.take() else { return Ok(None) };
        let install = || file.write_all_at(header, 0).and_then(|()| file.sync_data());
        install()
            .and_then(|()| fs::rename(&self.path, path))
            .inspect_err(|_| drop(remove_file(&self.path)))?;
        Ok(Some(file))
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::block_on;
    use kinfolk_core::feeds::{NewPost, PostStore};
    use kinfolk_core::{Id, IdKind};

    use super::*;
    use crate::log::segment;
    use crate::{Embedded, Settings};

    const SEGMENT_BYTES: u64 = 64 << 10;

    fn open(folder: &Path) -> Embedded {
        let settings = Settings { segment_bytes: SEGMENT_BYTES, ..Settings::default() };
        if Embedded::exists(folder) {
            Embedded::open(folder, settings).unwrap()
        } else {
            Embedded::create(folder, IdKind::Integer, settings).unwrap()
        }
    }

    /// Posts of about a sixteenth of a segment.
    fn post(store: &Embedded, ids: std::ops::Range<u64>) {
        for id in ids {
            let payload = Some(format!("\"{}\"", "x".repeat(4_000)).into());
            let id = Some(Id::Integer(id));
            let author = Id::Integer(1);
            block_on(store.register(NewPost {
                id,
                author,
                created_at: None,
                payload,
                idempotency_key: None,
            }))
            .unwrap();
        }
    }

    fn lengths(folder: &Path) -> Vec<u64> {
        let segments = segment::list(&folder.join("log")).unwrap();
        segments.iter().map(|segment| segment.bytes).collect()
    }

    /// The writer goes on in it as soon as it would have to extend its segment, and a start finds everything.
    #[test]
    fn a_fast_log_goes_on_in_the_file_that_was_made_ready() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE_NAME);
        let store = open(folder.path());
        post(&store, 1..4);
        store.store.log.prepare_next().unwrap();
        assert!(!file.exists(), "nothing is made for a store that writes little");
        post(&store, 4..12);
        store.store.log.prepare_next().unwrap();
        let length = SEGMENT_BYTES * 2;
        assert_eq!(fs::metadata(&file).unwrap().len(), length);
        // To the end of what is allocated, and beyond.
        post(&store, 12..34);
        assert!(!file.exists());
        let found = lengths(folder.path());
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], length, "it was not extended");
        drop(store);
        let store = open(folder.path());
        assert_eq!(store.store.position().0, 33);
    }

    #[test]
    fn a_start_removes_what_was_made_ready() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE_NAME);
        drop(open(folder.path()));
        fs::write(&file, b"left behind").unwrap();
        let _store = open(folder.path());
        assert!(!file.exists());
    }
}
