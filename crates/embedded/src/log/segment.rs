//! Segment files: names, headers, and what is known of each while the store is open.
//!
//! A segment is named after its first position, in 20 digits, and starts with 64 bytes:
//! `"KINFOLKL" | version u32 | ids u32 (1 integer, 2 uuid) | epoch u64 | first position u64 | zeros | crc32c u32`,
//! little-endian. Frames follow without gaps.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use kinfolk_core::{Epoch, Error, IdKind, Result, Sequence, Timestamp};
use parking_lot::RwLock;

use crate::disk::files::{IoContext, file_head, id_kind_number};

pub(crate) const HEADER_LEN: u64 = 64;
const MAGIC: &[u8; 8] = b"KINFOLKL";
const VERSION: u32 = 1;

/// What is known of one segment.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// The position of its first event.
    pub first: Sequence,
    /// Where it is.
    pub path: PathBuf,
    /// How many bytes of it are in use.
    pub bytes: u64,
    /// The time of its newest event, if it is known and there is one.
    pub newest_at: Option<Timestamp>,
    /// Where some of its frames start, by their first position; `None` until somebody reads it.
    pub index: Option<Vec<(Sequence, u64)>>,
}

/// The segments of an open log, oldest first, shared by its writer and its readers.
#[derive(Debug, Default)]
pub(crate) struct Segments(pub RwLock<VecDeque<Segment>>);

/// The header of a segment.
pub(crate) fn encode_header(ids: IdKind, epoch: Epoch, first: Sequence) -> [u8; HEADER_LEN as usize] {
    let mut header = [0; HEADER_LEN as usize];
    header[..32].copy_from_slice(&file_head(MAGIC, [VERSION, id_kind_number(ids)], epoch, first));
    let checksum = crc32c::crc32c(&header[..60]);
    header[60..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// The path of a segment.
pub(crate) fn path(folder: &Path, first: Sequence) -> PathBuf {
    folder.join(format!("{:020}.segment", first.0))
}

/// Finds the segments in a folder, oldest first.
pub(crate) fn list(folder: &Path) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(folder).during("reading folder", folder)? {
        let entry = entry.during("reading folder", folder)?;
        let name = entry.file_name();
        let number =
            name.to_str().and_then(|name| name.strip_suffix(".segment")).filter(|digits| digits.len() == 20);
        let Some(first) = number.and_then(|digits| digits.parse().ok()) else {
            return Err(Error::corrupt(format!(
                "{} does not belong into the change log; move it away",
                entry.path().display()
            )));
        };
        let bytes = entry.metadata().during("reading", &entry.path())?.len();
        segments.push(Segment {
            first: Sequence(first),
            path: entry.path(),
            bytes,
            newest_at: None,
            index: None,
        });
    }
    segments.sort_by_key(|segment| segment.first);
    Ok(segments)
}

/// Adds a frame to a sparse index, if the last one noted is some way back.
pub(crate) fn note_frame(index: &mut Vec<(Sequence, u64)>, first: Sequence, offset: u64) {
    const DISTANCE: u64 = 64 << 10;
    if index.last().is_none_or(|&(_, last)| offset >= last + DISTANCE) {
        index.push((first, offset));
    }
}
