//! The appending side of the log. One owner; what it has synced is never lost or changed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::{Error, Result, Sequence, Timestamp};

use super::mark::Mark;
use super::segment::{self, Segment, Segments};
use super::spare::Spare;
use super::sync::{self, Syncer};
use crate::disk::files::{IoContext, io_error, remove_file, sync_folder};
use crate::disk::format::Identity;
use crate::disk::free_space::FreeSpace;
use crate::runtime::folder::StoreFolder;

/// A log that has written so much of a segment will soon need another one.
const WANTED_FROM_SHARE: u64 = 4;

/// When segments are closed, and how they grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogSizes {
    /// A segment that has reached this is closed.
    pub segment_bytes: u64,
    /// How much zeroed space is made ready at a time. Writing into existing space keeps a sync from having to
    /// record a new file size, which makes it a third faster.
    pub allocate_bytes: u64,
    /// A segment whose first frame is older is closed by the next write, so that a slow store's log ages in steps.
    pub roll_after: Duration,
}

/// The end of the log.
#[derive(Debug)]
pub(crate) struct LogWriter {
    store_folder: StoreFolder,
    pub(super) folder: PathBuf,
    identity: Identity,
    sizes: LogSizes,
    pub(super) segments: Arc<Segments>,
    /// What the next segment can be.
    spare: Arc<Spare>,
    mark: Mark,
    file: Arc<File>,
    syncer: Syncer,
    /// Whether something was written that no sync has been begun for.
    unsynced: bool,
    path: PathBuf,
    /// Where the next frame goes.
    offset: u64,
    /// The time of the segment's first frame.
    started_at: Option<Timestamp>,
    /// Up to where the file has space.
    allocated: u64,
    /// How many bytes were written since the log was opened.
    written: u64,
    /// The position of the next event.
    next: Sequence,
    /// For segments that only retention wants.
    pub(super) room: FreeSpace,
}

/// What a new [`LogWriter`] goes on from.
pub(crate) struct LogEnd {
    pub offset: u64,
    pub next: Sequence,
    pub started_at: Option<Timestamp>,
    pub mark: Mark,
}

impl LogWriter {
    /// Goes on in the last segment of `segments`, or starts the first one.
    pub(crate) fn open(
        store_folder: &StoreFolder,
        identity: Identity,
        sizes: LogSizes,
        segments: Arc<Segments>,
        spare: Arc<Spare>,
        end: LogEnd,
    ) -> Result<Self> {
        let folder = store_folder.path().join("log");
        let last = segments.0.read().back().map(|segment| segment.path.clone());
        let (file, path) = match last {
            Some(path) => (File::options().write(true).open(&path).during("opening", &path)?, path),
            None => {
                let path = segment::path(&folder, end.next);
                let file = create_segment(&folder, identity, end.next, sizes).during("creating", &path)?;
                segments.0.write().push_back(new_segment(end.next, path.clone()));
                (file, path)
            }
        };
        let allocated = file.metadata().during("reading", &path)?.len();
        let syncer = Syncer::start(&store_folder.health)?;
        let LogEnd { offset, next, started_at, mark } = end;
        Ok(Self {
            store_folder: store_folder.clone(),
            folder,
            identity,
            sizes,
            segments,
            spare,
            mark,
            file: Arc::new(file),
            syncer,
            unsynced: false,
            path,
            offset,
            started_at,
            allocated,
            written: 0,
            next,
            room: FreeSpace::default(),
        })
    }

    /// The position that the next event will get.
    pub(crate) fn next(&self) -> Sequence {
        self.next
    }

    /// Returns an error if nothing can be appended any more.
    pub(crate) fn require_writable(&self) -> Result<()> {
        self.store_folder.health.require_writable()
    }

    /// Writes a frame of `count` events behind the last one. It is on stable storage only after a sync. A full disk leaves the log
    /// unchanged; after any other failure the frame may or may not be on disk, and no further write is tried.
    pub(crate) fn write(&mut self, frame: &[u8], count: u64, newest_at: Timestamp) -> Result<()> {
        self.require_writable()?;
        if self.started_at.is_some_and(|started_at| self.is_old(started_at, newest_at)) {
            match self.roll() {
                // Without room for another segment, this one goes on.
                Ok(()) | Err(Error::StorageFull { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.make_room(frame.len() as u64)?;
        if let Err(error) = self.file.write_all_at(frame, self.offset) {
            return Err(self.refuse("writing", &self.path, &error));
        }
        {
            // Readers stop at the newest visible position, which a frame reaches after its sync.
            let mut segments = self.segments.0.write();
            let active = segments.back_mut().expect("an open log has a segment");
            if let Some(index) = &mut active.index {
                segment::note_frame(index, self.next, self.offset);
            }
            active.bytes = self.offset + frame.len() as u64;
            active.newest_at = Some(newest_at);
        }
        self.started_at.get_or_insert(newest_at);
        self.offset += frame.len() as u64;
        self.written += frame.len() as u64;
        if self.written >= self.sizes.segment_bytes / WANTED_FROM_SHARE {
            self.spare.want();
        }
        self.next = Sequence(self.next.0 + count);
        self.unsynced = true;
        Ok(())
    }

    /// Begins to sync what was written, on another thread; [`LogWriter::finish_sync`] must follow before the next write.
    pub(crate) fn begin_sync(&mut self) {
        if std::mem::take(&mut self.unsynced) {
            self.syncer.begin(&self.file);
        }
    }

    /// Returns once everything written is on stable storage, with the time that the sync took.
    pub(crate) fn finish_sync(&mut self) -> Result<Duration> {
        let synced =
            if std::mem::take(&mut self.unsynced) { sync::sync(&self.file) } else { self.syncer.finish() };
        // A failed sync must never be tried again: the kernel may have dropped the data and report success.
        let took = synced.map_err(|error| self.fail("syncing", &self.path, &error))?;
        let recorded = self.mark.record(Sequence(self.next.0 - 1));
        recorded.map(|()| took).map_err(|error| self.end(&error.to_string()))
    }

    /// Makes the mark durable, so that it protects the log's end after a power cut too.
    pub(crate) fn sync_mark(&mut self) -> Result<()> {
        self.mark.sync()
    }

    fn make_room(&mut self, wanted: u64) -> Result<()> {
        let is_short = self.offset + wanted > self.allocated && self.offset > segment::HEADER_LEN;
        if self.offset >= self.sizes.segment_bytes || (is_short && self.spare.is_ready()) {
            self.roll()?;
        }
        if self.offset + wanted > self.allocated {
            let goal = self.offset + wanted.max(self.sizes.allocate_bytes);
            if let Err(error) = write_zeros(&self.file, self.allocated, goal) {
                // What was added is given back, as far as possible: it may be the last space on the disk.
                let _ = self.file.set_len(self.allocated);
                return Err(self.refuse("extending", &self.path, &error));
            }
            self.allocated = goal;
        }
        Ok(())
    }

    fn is_old(&self, started_at: Timestamp, now: Timestamp) -> bool {
        u128::from(now.millis().saturating_sub(started_at.millis())) >= self.sizes.roll_after.as_millis()
    }

    /// Refuses to make or remove files in a folder that is not the store's any more.
    pub(super) fn require_folder(&self) -> Result<()> {
        self.store_folder.lock.check().map_err(|reason| self.end(&reason))
    }

    /// Starts a new segment, then closes the old one at its exact length.
    pub(super) fn roll(&mut self) -> Result<()> {
        self.require_folder()?;
        let path = segment::path(&self.folder, self.next);
        let file = self.next_segment(&path).map_err(|error| self.refuse("creating", &path, &error))?;
        let closed = self.file.set_len(self.offset).and_then(|()| self.file.sync_all());
        if let Err(error) = closed {
            return Err(self.fail("closing", &self.path, &error));
        }
        self.allocated = file.metadata().map_err(|error| self.fail("reading", &path, &error))?.len();
        self.segments.0.write().push_back(new_segment(self.next, path.clone()));
        self.file = Arc::new(file);
        self.path = path;
        self.offset = segment::HEADER_LEN;
        self.started_at = None;
        Ok(())
    }

    /// The file of the segment that begins with the next event.
    fn next_segment(&self, path: &Path) -> io::Result<File> {
        let header = segment::encode_header(self.identity.ids, self.identity.epoch, self.next);
        match self.spare.install(&header, path)? {
            Some(file) => {
                let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
                synced.map(|()| file).inspect_err(|_| drop(fs::remove_file(path)))
            }
            None => create_segment(&self.folder, self.identity, self.next, self.sizes),
        }
    }

    /// Closes the segment that holds a position, if it is the one that is written to. Between two batches.
    pub(crate) fn close_segment_of(&mut self, position: Sequence) -> Result<()> {
        self.require_writable()?;
        let open = self.segments.0.read().back().is_some_and(|segment| segment.first <= position);
        if open && position < self.next {
            self.roll()?;
        }
        Ok(())
    }

    /// Puts a file in the place of a closed segment, if that is still kept. Readers may go on in the old one.
    pub(crate) fn replace_segment(&mut self, first: Sequence, replacement: &Path) -> Result<()> {
        let kept = self
            .segments
            .0
            .read()
            .iter()
            .find(|segment| segment.first == first)
            .map(|kept| kept.path.clone());
        let Some(path) = kept else { return remove_file(replacement) };
        self.require_folder()?;
        fs::rename(replacement, &path).during("replacing", &path)?;
        sync_folder(&self.folder)
    }

    /// A full disk leaves the log usable; anything else ends it.
    fn refuse(&self, doing: &str, path: &Path, error: &io::Error) -> Error {
        if error.kind() == io::ErrorKind::StorageFull {
            io_error(doing, path, error)
        } else {
            self.fail(doing, path, error)
        }
    }

    fn fail(&self, doing: &str, path: &Path, error: &io::Error) -> Error {
        self.end(&format!("{doing} {}: {error}", path.display()))
    }

    fn end(&self, reason: &str) -> Error {
        tracing::error!(%reason, "the change log failed; writes are refused from now on");
        self.store_folder.health.refuse_writes(reason);
        Error::ReadOnly { reason: reason.to_owned() }
    }
}

fn new_segment(first: Sequence, path: PathBuf) -> Segment {
    Segment { first, path, bytes: segment::HEADER_LEN, newest_at: None, index: Some(Vec::new()) }
}

fn create_segment(folder: &Path, identity: Identity, first: Sequence, sizes: LogSizes) -> io::Result<File> {
    let path = segment::path(folder, first);
    let create = || -> io::Result<File> {
        let file = File::options().write(true).create_new(true).open(&path)?;
        file.write_all_at(&segment::encode_header(identity.ids, identity.epoch, first), 0)?;
        write_zeros(&file, segment::HEADER_LEN, segment::HEADER_LEN + sizes.allocate_bytes)?;
        file.sync_all()?;
        File::open(folder)?.sync_all()?;
        Ok(file)
    };
    create().inspect_err(|_| drop(fs::remove_file(&path)))
}

/// Fills a range with zeros, so that its blocks are allocated and written.
pub(crate) fn write_zeros(file: &File, from: u64, to: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut at = from;
    while at < to {
        let len = (to - at).min(ZEROS.len() as u64);
        file.write_all_at(&ZEROS[..len as usize], at)?;
        at += len;
    }
    Ok(())
}
