//! Opening the log after a stop of any kind: everything acknowledged is found, or opening fails with the reason.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use kinfolk_core::{Error, Result, Sequence, Timestamp};

use super::frame::Frame;
use super::mark::Mark;
use super::reader::{FrameReader, LogReader, Next};
use super::segment::{self, Segment, Segments};
use super::spare::Spare;
use super::writer::{LogEnd, LogSizes, LogWriter, write_zeros};
use crate::disk::files::{self, IoContext};
use crate::disk::format::Identity;
use crate::runtime::folder::StoreFolder;

/// An open log.
pub(crate) struct Recovered {
    /// Its appending side.
    pub writer: LogWriter,
    /// Its reading side.
    pub reader: LogReader,
    /// The earliest `since` that may be given out, as far as the frames that were read know.
    pub floor: Timestamp,
}

/// Opens the log in the folder `log` and hands every frame with events after `from` to `replay`, in order.
///
/// Refuses when acknowledged events are missing: when the log starts after `from`, has a gap, or ends before the
/// mark. What a crash tore at the end was never acknowledged and is cut off.
pub(crate) fn recover(
    folder: &StoreFolder,
    identity: Identity,
    sizes: LogSizes,
    from: Sequence,
    replay: &mut dyn FnMut(Frame) -> Result<()>,
) -> Result<Recovered> {
    let log_folder = folder.path().join("log");
    let spare = Arc::new(Spare::new(folder.path(), sizes)?);
    files::create_folder(&log_folder)?;
    let (mut mark, marked) = Mark::open(folder.path(), identity.epoch)?;
    let found = segment::list(&log_folder)?;
    let found = drop_unfinished_segment(found, identity, marked)?;
    let mut scan = Scan {
        identity,
        marked,
        next: identity.base.next(),
        floor: Timestamp::MIN,
        offset: segment::HEADER_LEN,
        started_at: None,
    };
    let segments = scan.run(found, from, replay)?;
    scan.require_mark()?;
    let end = Sequence(scan.next.0 - 1);
    // A mark that is older than the log is harmless.
    let instead = "the disk is full: the end of the change log is not marked until something is written";
    files::unless_full(mark.record(end).and_then(|()| mark.sync()), instead)?;
    let segments = Arc::new(Segments(parking_lot::RwLock::new(segments.into())));
    let reader = LogReader { ids: identity.ids, segments: Arc::clone(&segments), spare: Arc::clone(&spare) };
    let Scan { offset, next, started_at, .. } = scan;
    let end = LogEnd { offset, next, started_at, mark };
    let writer = LogWriter::open(folder, identity, sizes, segments, spare, end)?;
    Ok(Recovered { writer, reader, floor: scan.floor })
}

/// A crash may leave a last segment whose header never became durable. It holds nothing that was acknowledged.
fn drop_unfinished_segment(
    mut found: Vec<Segment>,
    identity: Identity,
    marked: Option<Sequence>,
) -> Result<Vec<Segment>> {
    if let Some(last) = found.last()
        && marked.is_some_and(|marked| marked < last.first)
        && !has_header(last, identity)?
    {
        files::remove_file(&last.path)?;
        found.pop();
    }
    Ok(found)
}

fn has_header(segment: &Segment, identity: Identity) -> Result<bool> {
    let mut header = Vec::new();
    let file = File::open(&segment.path).during("opening", &segment.path)?;
    file.take(segment::HEADER_LEN).read_to_end(&mut header).during("reading", &segment.path)?;
    Ok(header == segment::encode_header(identity.ids, identity.epoch, segment.first))
}

struct Scan {
    identity: Identity,
    marked: Option<Sequence>,
    /// The position that the next event must have.
    next: Sequence,
    floor: Timestamp,
    /// Where the last segment's valid part ends.
    offset: u64,
    /// The time of the first frame in the last segment.
    started_at: Option<Timestamp>,
}

impl Scan {
    /// Reads all segments from the one that holds the first event after `from`.
    fn run(
        &mut self,
        mut found: Vec<Segment>,
        from: Sequence,
        replay: &mut dyn FnMut(Frame) -> Result<()>,
    ) -> Result<Vec<Segment>> {
        let Some(oldest) = found.first() else {
            return if from < self.next { Ok(found) } else { Err(self.ends_before(from)) };
        };
        if oldest.first > from.next() {
            return Err(Error::corrupt(format!(
                "the change log starts at position {} but the stored rows end at {from}: a part of the log is \
                     missing; restore from a backup",
                oldest.first
            )));
        }
        let start = found.partition_point(|segment| segment.first <= from.next()) - 1;
        self.next = found[start].first;
        let last = found.len() - 1;
        for (at, segment) in found.iter_mut().enumerate().skip(start) {
            self.scan_segment(segment, at == last, from, replay)?;
        }
        if from >= self.next { Err(self.ends_before(from)) } else { Ok(found) }
    }

    /// Refuses a log that ends before what was acknowledged.
    fn require_mark(&self) -> Result<()> {
        let end = Sequence(self.next.0 - 1);
        match self.marked.filter(|&marked| marked > end) {
            None => Ok(()),
            Some(marked) => Err(Error::corrupt(format!(
                "the change log ends at position {end}, but position {marked} was acknowledged: \
                     its end is missing or damaged; restore from a backup"
            ))),
        }
    }

    fn ends_before(&self, from: Sequence) -> Error {
        Error::corrupt(format!(
            "the change log ends at position {} but the stored rows are at {from}: the end of the log is \
                 missing; restore from a backup",
            self.next.0 - 1
        ))
    }

    fn scan_segment(
        &mut self,
        segment: &mut Segment,
        is_last: bool,
        from: Sequence,
        replay: &mut dyn FnMut(Frame) -> Result<()>,
    ) -> Result<()> {
        if segment.first != self.next || !has_header(segment, self.identity)? {
            return Err(damaged(segment, "a part is missing before, or the header is damaged,"));
        }
        if is_last {
            // Durable before it is replayed: rows that a replay flushes must not outlive their events in a power loss.
            let clean = self.read_frames(segment, &mut |_| Ok(()))?;
            if !clean && self.marked.is_none() {
                return Err(damaged(
                    segment,
                    "the mark is missing, so that damage cannot be distinguished from a torn end",
                ));
            }
            // Before anything is cut off: what is behind the damage may be needed to save what can be saved.
            self.require_mark()?;
            self.settle_end(segment, self.offset)?;
            self.next = segment.first;
        }
        let clean = self.read_frames(segment, &mut |frame| {
            let is_new = frame.events.last().is_some_and(|last| last.position > from);
            if is_new { replay(frame) } else { Ok(()) }
        })?;
        segment.bytes = self.offset;
        if clean || is_last {
            Ok(())
        } else {
            Err(damaged(segment, &format!("damage after position {} in a part", self.next.0 - 1)))
        }
    }

    /// Reads a segment's frames up to where its valid part ends; whether nothing but unused room follows.
    fn read_frames(
        &mut self,
        segment: &mut Segment,
        take: &mut dyn FnMut(Frame) -> Result<()>,
    ) -> Result<bool> {
        let mut reader = FrameReader::open(&segment.path, self.identity.ids, segment::HEADER_LEN)?;
        self.started_at = None;
        let mut index = Vec::new();
        let end = loop {
            let start = reader.offset;
            match reader.next()? {
                Next::Frame(frame, _) => {
                    let Some(last) = frame.events.last() else {
                        return Err(damaged(segment, "an empty frame in a part"));
                    };
                    if frame.events[0].position != self.next {
                        return Err(damaged(segment, "positions are out of order in a part"));
                    }
                    segment::note_frame(&mut index, self.next, start);
                    self.next = last.position.next();
                    self.floor = self.floor.max(frame.floor);
                    segment.newest_at = Some(last.at);
                    self.started_at.get_or_insert(last.at);
                    take(frame)?;
                }
                other => break other,
            }
        };
        segment.index = Some(index);
        self.offset = reader.offset;
        Ok(matches!(end, Next::Unused))
    }

    /// Cuts off what was torn and writes the valid part's tail anew: if a sync failed before the stop, the kernel
    /// may hold bytes that never reached the disk.
    fn settle_end(&self, segment: &Segment, valid: u64) -> Result<()> {
        const TAIL: u64 = 16 << 20;
        let acknowledged = self.marked.is_some_and(|marked| marked.0 + 1 >= self.next.0);
        let intact = acknowledged && fs::metadata(&segment.path).is_ok_and(|found| found.len() >= valid);
        let path = &segment.path;
        let file = File::options().read(true).write(true).open(path).during("opening", path)?;
        let length = file.metadata().during("reading", path)?.len();
        if !intact || !rest_is_zero(&file, valid, length).during("reading", path)? {
            let from = valid.saturating_sub(TAIL);
            let mut tail = vec![0; (valid - from) as usize];
            file.read_exact_at(&mut tail, from).during("reading", path)?;
            file.set_len(valid).during("cutting", path)?;
            file.write_all_at(&tail, from).during("writing", path)?;
            // Space that somebody else has taken meanwhile is missed by the first write, which says so.
            let extended = write_zeros(&file, valid, length.max(valid)).during("extending", path);
            if matches!(extended, Err(Error::StorageFull { .. })) {
                file.set_len(valid).during("cutting", path)?;
            } else {
                extended?;
            }
            file.sync_all().during("syncing", path)?;
        }
        Ok(())
    }
}

fn damaged(segment: &Segment, what: &str) -> Error {
    Error::corrupt(format!("{what} of the change log in {}; restore from a backup", segment.path.display()))
}

fn rest_is_zero(file: &File, from: u64, to: u64) -> std::io::Result<bool> {
    let mut buffer = [0; 16 << 10];
    let mut at = from;
    while at < to {
        let len = (to - at).min(buffer.len() as u64) as usize;
        file.read_exact_at(&mut buffer[..len], at)?;
        if buffer[..len].iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        at += len as u64;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::block_on;
    use kinfolk_core::feeds::{NewPost, PostStore};
    use kinfolk_core::{Id, IdKind};

    use super::*;
    use crate::disk::folder_lock::FolderLock;
    use crate::disk::format;
    use crate::{Embedded, Settings};

    /// Rows that a replay flushes would outlive events that a power loss takes.
    #[test]
    fn the_end_of_the_log_is_settled_before_it_is_replayed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::create(folder.path(), IdKind::Integer, Settings::default()).unwrap();
        let author = Id::Integer(1);
        let post = NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None };
        block_on(store.register(post)).unwrap();
        drop(store);
        let segment = segment::path(&folder.path().join("log"), Sequence(1));
        let file = File::options().read(true).write(true).open(&segment).unwrap();
        let written = fs::read(&segment).unwrap().iter().rposition(|&byte| byte != 0).unwrap() as u64;
        let torn = written + 64;
        file.write_all_at(b"torn", torn).unwrap();
        let mut replayed = 0;
        let lock = Arc::new(FolderLock::take(folder.path()).unwrap());
        let identity = format::read_identity(folder.path()).unwrap();
        let sizes = Settings::default().log_sizes();
        let replay = &mut |frame: Frame| {
            let mut found = [1; 4];
            file.read_exact_at(&mut found, torn).unwrap();
            assert_eq!(found, [0; 4], "replayed while the end is torn");
            replayed += frame.events.len();
            Ok(())
        };
        recover(&StoreFolder { lock, health: Arc::default() }, identity, sizes, Sequence::START, replay)
            .unwrap();
        assert_eq!(replayed, 1);
    }
}
