//! The next segment of a log that has grown, made ready in the background: a file of zeros, as long as a segment, and synced.
//!
//! The writer extends its segment in steps. The sync after a step has the file system record a new size, for which it may wait until
//! what is written to other files is on disk, too: hundreds of milliseconds beside a compaction. A file that was made ready needs
//! neither. Until it is used, it lies beside the log; a start removes it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kinfolk_core::Result;
use parking_lot::Mutex;

use super::writer::{LogSizes, write_zeros};
use crate::disk::files::{IoContext, remove_file};
use crate::disk::free_space::available_bytes;

const FILE_NAME: &str = "next-segment";
/// What is written is synced in steps: the syncs of the log wait for less then.
const STEP_BYTES: u64 = 8 << 20;
/// How long one call works on it: others wait for its thread.
const TURN: Duration = Duration::from_millis(200);
/// None is made on a disk that has less space than for so many.
const ROOM_FOR: u64 = 8;

/// The file, and whether there is one.
#[derive(Debug)]
pub(crate) struct Spare {
    path: PathBuf,
    /// How long it is: a segment, and a frame that goes past its end.
    length: u64,
    wanted: AtomicBool,
    /// The file that is being made, and how much of it is.
    unfinished: Mutex<Option<(File, u64)>>,
    ready: Mutex<Option<File>>,
}

impl Spare {
    /// None yet. Removes what an earlier process has left.
    pub(super) fn new(store_folder: &Path, sizes: LogSizes) -> Result<Self> {
        let path = store_folder.join(FILE_NAME);
        remove_file(&path)?;
        let length = sizes.segment_bytes + sizes.allocate_bytes;
        let (unfinished, ready) = (Mutex::default(), Mutex::default());
        Ok(Self { path, length, wanted: AtomicBool::new(false), unfinished, ready })
    }

    /// Has one made from now on, whenever there is none.
    pub(super) fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Whether one can be installed.
    pub(super) fn is_ready(&self) -> bool {
        self.ready.lock().is_some()
    }

    /// Works for a moment on making it ready, if it is wanted and there is plenty of room.
    pub(super) fn prepare(&self) -> Result<()> {
        let mut unfinished = self.unfinished.lock();
        if !self.wanted.load(Ordering::Relaxed) || self.is_ready() {
            return Ok(());
        }
        let (file, mut done) = match unfinished.take() {
            Some(begun) => begun,
            None if self.is_disk_nearly_full() => return Ok(()),
            None => {
                remove_file(&self.path)?;
                (File::create_new(&self.path).during("creating", &self.path)?, 0)
            }
        };
        let began = Instant::now();
        while done < self.length && began.elapsed() < TURN {
            let end = self.length.min(done + STEP_BYTES);
            let written = write_zeros(&file, done, end).and_then(|()| file.sync_all());
            // What a failure leaves may take the last space.
            written.during("preparing", &self.path).inspect_err(|_| drop(remove_file(&self.path)))?;
            done = end;
        }
        if done < self.length {
            *unfinished = Some((file, done));
        } else {
            *self.ready.lock() = Some(file);
        }
        Ok(())
    }

    fn is_disk_nearly_full(&self) -> bool {
        self.path.parent().is_none_or(|folder| available_bytes(folder) / ROOM_FOR < self.length)
    }

    /// Moves it to where it is a segment, with its header. The folder is the caller's to sync.
    pub(super) fn install(&self, header: &[u8], path: &Path) -> io::Result<Option<File>> {
        // Held to the end: only then may the next one be made in its place.
        let mut ready = self.ready.lock();
        let Some(file) = ready.take() else { return Ok(None) };
        let install = || file.write_all_at(header, 0).and_then(|()| file.sync_data());
        match install().and_then(|()| fs::rename(&self.path, path)) {
            Ok(()) => Ok(Some(file)),
            // Somebody has removed it to free space.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                drop(remove_file(&self.path));
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

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

    /// The file made ready, as its number on the disk.
    fn make_ready(store: &Embedded, file: &Path) -> u64 {
        let log = &store.store.log;
        while !log.spare.is_ready() {
            log.prepare_next().unwrap();
        }
        fs::metadata(file).unwrap().ino()
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
        let made = make_ready(&store, &file);
        // To the end of what is allocated, and beyond.
        post(&store, 12..30);
        let segments = segment::list(&folder.path().join("log")).unwrap();
        assert_eq!(segments.len(), 2);
        let second = fs::metadata(&segments[1].path).unwrap();
        assert_eq!((second.ino(), second.len()), (made, SEGMENT_BYTES * 2), "it was not extended");
        drop(store);
        let store = open(folder.path());
        assert_eq!(store.store.position().0, 29);
    }

    #[test]
    fn a_log_goes_on_without_the_file_that_was_made_ready() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE_NAME);
        let store = open(folder.path());
        post(&store, 1..12);
        make_ready(&store, &file);
        fs::remove_file(&file).unwrap();
        post(&store, 12..40);
        drop(store);
        assert_eq!(open(folder.path()).store.position().0, 39);
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
