//! Reading frames back: for consumers of changes, and for recovery.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use kinfolk_core::{Error, IdKind, Result, Sequence, Shard};

use super::frame::{self, Event, Frame};
use super::segment::{self, Segment, Segments};
use super::spare::Spare;
use crate::disk::files::{IoContext, io_error};

/// What stands at an offset of a segment.
pub(crate) enum Next {
    /// A whole frame, and where the next one starts.
    Frame(Frame, u64),
    /// Nothing was ever written here: zeros, or the end of the file.
    Unused,
    /// Something that is not a frame: torn or damaged.
    Broken,
}

/// Reads frames of one segment one after another.
pub(crate) struct FrameReader<'a> {
    file: io::BufReader<File>,
    path: &'a Path,
    ids: IdKind,
    pub offset: u64,
}

impl<'a> FrameReader<'a> {
    /// Starts at the offset of a frame.
    pub(crate) fn open(path: &'a Path, ids: IdKind, offset: u64) -> Result<Self> {
        let file = File::open(path).during("opening", path)?;
        let mut file = io::BufReader::with_capacity(256 << 10, file);
        file.seek(SeekFrom::Start(offset)).during("reading", path)?;
        Ok(Self { file, path, ids, offset })
    }

    /// The next frame.
    pub(crate) fn next(&mut self) -> Result<Next> {
        let Some((length, checksum)) = (match self.prefix()? {
            Some(prefix) if prefix == [0; frame::PREFIX_LEN] => return Ok(Next::Unused),
            Some(prefix) => frame::read_prefix(prefix),
            None => return Ok(Next::Unused),
        }) else {
            return Ok(Next::Broken);
        };
        let mut rest = Vec::new();
        (&mut self.file).take(length as u64).read_to_end(&mut rest).during("reading", self.path)?;
        let decoded = if rest.len() == length { frame::decode(self.ids, checksum, &rest) } else { None };
        Ok(match decoded {
            Some(frame) => {
                self.offset += (frame::PREFIX_LEN + length) as u64;
                Next::Frame(frame, self.offset)
            }
            None => Next::Broken,
        })
    }

    /// `None` at the end of the file; a prefix cut short is filled with zeros, which no valid frame has.
    fn prefix(&mut self) -> Result<Option<[u8; frame::PREFIX_LEN]>> {
        let mut prefix = Vec::with_capacity(frame::PREFIX_LEN);
        (&mut self.file)
            .take(frame::PREFIX_LEN as u64)
            .read_to_end(&mut prefix)
            .during("reading", self.path)?;
        if prefix.is_empty() {
            return Ok(None);
        }
        prefix.resize(frame::PREFIX_LEN, 0);
        Ok(prefix.try_into().ok())
    }
}

/// What is read at once ends with the frame that brings it over so many bytes.
const READ_BYTES_MAX: u64 = 4 << 20;

/// How much more may be read at once.
struct ReadBudget {
    events: usize,
    bytes: u64,
}

impl ReadBudget {
    fn is_left(&self) -> bool {
        self.events > 0 && self.bytes > 0
    }
}

/// Reads changes for consumers, at any position that is kept.
#[derive(Clone, Debug)]
pub(crate) struct LogReader {
    pub(super) ids: IdKind,
    pub(super) segments: Arc<Segments>,
    pub(super) spare: Arc<Spare>,
}

impl LogReader {
    /// Changes up to and including this position are gone.
    pub(crate) fn trimmed(&self) -> Sequence {
        let segments = self.segments.0.read();
        segments.front().map_or(Sequence::START, |oldest| Sequence(oldest.first.0 - 1))
    }

    /// Makes the next segment ready, if the log grows fast. For background work.
    pub(crate) fn prepare_next(&self) -> Result<()> {
        self.spare.prepare()
    }

    /// How many bytes the log has.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments.0.read().iter().map(|segment| segment.bytes).sum()
    }

    /// The segment that holds a position, if it is kept.
    pub(crate) fn segment_of(&self, position: Sequence) -> Option<Segment> {
        self.find(position).map(|(segment, _)| segment)
    }

    /// The segment that holds a position, and where the one after it starts.
    fn find(&self, position: Sequence) -> Option<(Segment, Option<Sequence>)> {
        let segments = self.segments.0.read();
        let at = segments.partition_point(|segment| segment.first <= position).checked_sub(1)?;
        Some((segments[at].clone(), segments.get(at + 1).map(|following| following.first)))
    }

    /// Up to `limit` events after `after` and not beyond `newest`; fewer where they are long, but one at least if there is one.
    pub(crate) fn read(&self, after: Sequence, newest: Sequence, limit: usize) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        let (mut at, mut budget) = (after, ReadBudget { events: limit, bytes: READ_BYTES_MAX });
        while budget.is_left() && at < newest {
            match self.read_on(&mut at, newest, &mut budget, &mut events) {
                Ok(()) => {}
                // Trimmed, perhaps while it was read. What was read before is whole.
                Err(_) if self.trimmed() > at && !events.is_empty() => return Ok(events),
                Err(_) if self.trimmed() > at => {
                    return Err(expired(after, self.trimmed()));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(events)
    }

    /// Reads on in the segment that holds the next position.
    fn read_on(
        &self,
        at: &mut Sequence,
        newest: Sequence,
        budget: &mut ReadBudget,
        events: &mut Vec<Event>,
    ) -> Result<()> {
        let Some((segment, following)) = self.locate(at.next())? else {
            return Err(expired(*at, self.trimmed()));
        };
        let before = *at;
        self.read_segment(&segment, at, newest, budget, events)?;
        // A segment that ends early where another follows has lost its end.
        if *at == before || (budget.is_left() && *at < newest && following != Some(at.next())) {
            return Err(damaged(&segment.path, *at));
        }
        Ok(())
    }

    fn read_segment(
        &self,
        segment: &Segment,
        at: &mut Sequence,
        newest: Sequence,
        budget: &mut ReadBudget,
        events: &mut Vec<Event>,
    ) -> Result<()> {
        let index = segment.index.as_deref().unwrap_or_default();
        let start = index.partition_point(|&(first, _)| first <= at.next());
        let offset = start.checked_sub(1).map_or(segment::HEADER_LEN, |entry| index[entry].1);
        let mut reader = FrameReader::open(&segment.path, self.ids, offset)?;
        while budget.is_left() && *at < newest {
            let start = reader.offset;
            let (frame, bytes) = match reader.next()? {
                Next::Frame(frame, end) => (frame, end - start),
                Next::Unused => return Ok(()),
                Next::Broken => return Err(damaged(&segment.path, *at)),
            };
            let known = events.len();
            for event in frame.events {
                if event.position == at.next() && event.position <= newest && budget.events > 0 {
                    *at = event.position;
                    budget.events -= 1;
                    events.push(event);
                }
            }
            if events.len() > known {
                budget.bytes = budget.bytes.saturating_sub(bytes);
            }
        }
        Ok(())
    }

    /// As [`LogReader::find`]. Indexes the segment if nobody has yet.
    fn locate(&self, position: Sequence) -> Result<Option<(Segment, Option<Sequence>)>> {
        let Some((mut segment, following)) = self.find(position) else { return Ok(None) };
        if segment.index.is_none() {
            let index =
                index_segment(&segment.path).map_err(|error| io_error("reading", &segment.path, &error))?;
            segment.index = Some(index.clone());
            let mut segments = self.segments.0.write();
            if let Some(known) = segments.iter_mut().find(|known| known.first == segment.first)
                && known.index.is_none()
            {
                known.index = Some(index);
            }
        }
        Ok(Some((segment, following)))
    }
}

/// Changes after a position are asked for, and gone.
fn expired(asked: Sequence, trimmed: Sequence) -> Error {
    Error::PositionExpired { asked: asked.on(Shard::ONLY), oldest: trimmed.next().on(Shard::ONLY) }
}

fn damaged(path: &Path, at: Sequence) -> Error {
    Error::corrupt(format!("the change log is damaged after position {at} in {}", path.display()))
}

/// Where some frames of a segment start, from their headers alone. Stops at the first oddity; reading the frames
/// then finds it.
fn index_segment(path: &Path) -> io::Result<Vec<(Sequence, u64)>> {
    let mut file = io::BufReader::with_capacity(4 << 10, File::open(path)?);
    let mut offset = segment::HEADER_LEN;
    let mut index = Vec::new();
    while let Some(head) = read_head(&mut file, offset)? {
        segment::note_frame(&mut index, head.first, offset);
        offset = head.end;
    }
    Ok(index)
}

/// What the head of a frame says.
pub(crate) struct Head {
    /// The position of its first event.
    pub first: Sequence,
    /// Where it ends.
    pub end: u64,
}

/// The head of the frame that starts at an offset; nothing where there is none, or an oddity.
pub(crate) fn read_head(file: &mut io::BufReader<File>, start: u64) -> io::Result<Option<Head>> {
    file.seek(SeekFrom::Start(start))?;
    let mut head = [0; frame::PREFIX_LEN + 12];
    if file.read_exact(&mut head).is_err() {
        return Ok(None);
    }
    let prefix = std::array::from_fn(|at| head[at]);
    let extent = frame::read_extent(&head[frame::PREFIX_LEN..]);
    let found = frame::read_prefix(prefix).zip(extent);
    Ok(found
        .map(|((length, _), (first, _))| Head { first, end: start + (frame::PREFIX_LEN + length) as u64 }))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

    use super::*;
    use crate::settings::Settings;

    /// A segment goes after a reader has looked it up: the pipe in its place keeps the reader waiting until then.
    #[test]
    fn a_reader_that_meets_a_trim_learns_that_the_position_is_gone() {
        for index in [None, Some(Vec::new())] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("pipe");
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            let segment = |first, index| Segment {
                first: Sequence(first),
                path: path.clone(),
                bytes: segment::HEADER_LEN,
                newest_at: None,
                index,
            };
            let segments = Arc::new(Segments::default());
            let spare = Arc::new(Spare::new(folder.path(), Settings::default().log_sizes()).unwrap());
            segments.0.write().extend([segment(1, index), segment(11, Some(Vec::new()))]);
            let reader = LogReader {
                ids: IdKind::Integer,
                segments: Arc::clone(&segments),
                spare: Arc::clone(&spare),
            };
            let reading = std::thread::spawn(move || reader.read(Sequence::START, Sequence(10), 100));
            // It can be opened for writing once the reader has begun to open it.
            let mut open = File::options();
            open.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
            loop {
                let mut kept = segments.0.write();
                if open.open(&path).is_ok() {
                    kept.pop_front();
                    break;
                }
                drop(kept);
                std::thread::yield_now();
            }
            let read = reading.join().unwrap();
            assert!(
                matches!(read, Err(Error::PositionExpired { oldest, .. }) if oldest.sequence == Sequence(11)),
                "{read:?}"
            );
        }
    }
}
