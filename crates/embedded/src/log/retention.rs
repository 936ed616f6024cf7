//! Which segments of the log are kept: how old they are, and which of them go. Age is judged by whole segments.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use kinfolk_core::{Error, IdKind, Result, Sequence, Timestamp};

use super::reader::{self, FrameReader, LogReader, Next};
use super::segment::{self, Segments};
use super::writer::LogWriter;
use crate::disk::files::{io_error, remove_file, sync_folder};

/// What is kept of the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    /// No more bytes than this…
    pub keep_bytes: u64,
    /// …and nothing from before this time…
    pub keep_after: Timestamp,
    /// …but all that came after this position: a start needs it.
    pub needed_after: Sequence,
}

/// The oldest segment.
struct Oldest {
    path: PathBuf,
    /// The position that the segment after it starts with, if there is one.
    following: Option<Sequence>,
    newest_at: Option<Timestamp>,
    /// How many bytes there are in all segments.
    total: u64,
}

impl Oldest {
    fn of(segments: &Segments) -> Option<Self> {
        let segments = segments.0.read();
        let oldest = segments.front()?;
        Some(Self {
            path: oldest.path.clone(),
            following: segments.get(1).map(|following| following.first),
            newest_at: oldest.newest_at,
            total: segments.iter().map(|segment| segment.bytes).sum(),
        })
    }

    fn is_too_old(&self, keep_after: Timestamp) -> bool {
        self.newest_at.is_some_and(|newest_at| newest_at < keep_after)
    }

    fn is_to_be_trimmed(&self, retention: &Retention, next: Sequence) -> bool {
        let is_too_large = self.following.is_some() && self.total > retention.keep_bytes;
        let is_surplus = is_too_large || self.is_too_old(retention.keep_after);
        is_surplus && self.following.unwrap_or(next).0 <= retention.needed_after.0 + 1
    }
}

impl LogReader {
    /// Looks up how old the oldest segments are that an earlier process has left, up to the first that is kept.
    pub(crate) fn date_oldest(&self, keep_after: Timestamp) {
        let first_undated = || {
            let segments = self.segments.0.read();
            // Of the one that is written to it is known, if there is anything in it.
            let mut closed = segments.iter().take(segments.len().saturating_sub(1));
            let kept =
                closed.find(|segment| segment.newest_at.is_none_or(|newest_at| newest_at >= keep_after))?;
            kept.newest_at.is_none().then(|| kept.path.clone())
        };
        while let Some(path) = first_undated() {
            let dated = newest_time(&path, self.ids).unwrap_or_else(|error| {
                tracing::warn!(%error, "the age of a part of the change log is not known; only its size counts");
                None
            });
            let mut segments = self.segments.0.write();
            if let Some(segment) = segments.iter_mut().find(|segment| segment.path == path) {
                segment.newest_at = Some(dated.unwrap_or(Timestamp::MAX));
            }
        }
    }

    /// Whether something is to be trimmed that nothing needs.
    pub(crate) fn is_to_be_trimmed(&self, retention: &Retention, newest: Sequence) -> bool {
        Oldest::of(&self.segments).is_some_and(|oldest| oldest.is_to_be_trimmed(retention, newest.next()))
    }

    /// The position up to which changes are too old to be kept though a start would need them, if there are such.
    pub(crate) fn held_up(&self, retention: &Retention, newest: Sequence) -> Option<Sequence> {
        let oldest = Oldest::of(&self.segments).filter(|oldest| oldest.is_too_old(retention.keep_after))?;
        let last = oldest.following.map_or(newest, |following| Sequence(following.0 - 1));
        (last > retention.needed_after).then_some(last)
    }
}

impl LogWriter {
    /// Removes the oldest segments that retention does not keep and that nothing needs any more.
    pub(crate) fn trim(&mut self, retention: &Retention) -> Result<()> {
        while let Some(oldest) = Oldest::of(&self.segments) {
            if !oldest.is_to_be_trimmed(retention, self.next()) {
                return Ok(());
            }
            if oldest.following.is_none() {
                // What is written to can't be removed: it is closed first.
                let (mut room, folder) = (std::mem::take(&mut self.room), self.folder.clone());
                let rolled = room.work(&folder, || self.roll());
                self.room = room;
                match rolled {
                    Some(Ok(())) => continue,
                    // There will be room for another one later.
                    None | Some(Err(Error::StorageFull { .. })) => return Ok(()),
                    Some(Err(error)) => return Err(error),
                }
            }
            self.require_folder()?;
            // Readers learn first, so that none opens a file that is about to go.
            self.segments.0.write().pop_front();
            remove_file(&oldest.path)?;
            sync_folder(&self.folder)?;
        }
        Ok(())
    }
}

/// The time of the newest event in a closed segment; nothing if it can't be read. Only the heads of its frames are looked at,
/// and the last frame.
fn newest_time(path: &Path, ids: IdKind) -> Result<Option<Timestamp>> {
    let look = || -> io::Result<Option<u64>> {
        let mut file = io::BufReader::with_capacity(4 << 10, File::open(path)?);
        let (mut at, mut last) = (segment::HEADER_LEN, None);
        while let Some(head) = reader::read_head(&mut file, at)? {
            last = Some(at);
            at = head.end;
        }
        Ok(last)
    };
    let Some(last) = look().map_err(|error| io_error("reading", path, &error))? else { return Ok(None) };
    Ok(match FrameReader::open(path, ids, last)?.next()? {
        Next::Frame(frame, _) => frame.events.last().map(|event| event.at),
        Next::Unused | Next::Broken => None,
    })
}
