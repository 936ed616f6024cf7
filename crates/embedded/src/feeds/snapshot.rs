//! Inboxes on disk, so that a restart need not fill all of them again. What came after a snapshot is delivered again.
//!
//! ```text
//! magic "KINFOLKI" | version u32 | ids u32 | epoch u64 | position u64
//! for each inbox: 1u8 | id | seen at u64 | 1u8 and the key that it is complete from, or 0u8 | length u32 | keys
//! 0u8 | crc32c u32 of all before
//! ```
//!
//! Little-endian but for ids and keys. Inboxes hold everything up to the position, and perhaps what came later. A snapshot
//! that is missing or damaged is not an error: inboxes are filled when their users come.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use kinfolk_core::{Epoch, Id, IdKind, Result, Sequence};

use super::Feeds;
use super::inbox::{Inbox, key_len};
use crate::disk::checksummed::write_beside;
use crate::disk::files::{self, IoContext, remove_file, sync_folder};

const MAGIC: &[u8; 8] = b"KINFOLKI";
const VERSION: u32 = 1;
const FILE_NAME: &str = "inboxes.snapshot";
const BUFFER_BYTES: usize = 1 << 20;
/// An inbox with more keys than this is damage.
const KEYS_BYTES_MAX: u32 = 64 << 20;

fn header(ids: IdKind, epoch: Epoch, position: Sequence) -> [u8; 32] {
    files::file_head(MAGIC, [VERSION, ids.id_len() as u32], epoch, position)
}

/// Stores all inboxes, replacing what was stored before.
pub(crate) fn save(feeds: &Feeds) -> Result<()> {
    feeds.folder.require()?;
    let path = feeds.folder.path().join(FILE_NAME);
    if feeds.inboxes.is_empty() {
        return remove_file(&path);
    }
    let dropped = *feeds.dropped.lock();
    // The position is read first: what inboxes get meanwhile is delivered again, harmlessly.
    let position = feeds.deliveries.delivered();
    let temporary = write_beside(&path, |out| {
        out.bytes(&header(feeds.identity.ids, feeds.identity.epoch, position))?;
        let records = RefCell::new(Vec::new());
        let write_records = || {
            let mut records = records.borrow_mut();
            let written = out.bytes(&records);
            records.clear();
            written
        };
        feeds.inboxes.visit(|of, inbox| encode(&mut records.borrow_mut(), of, inbox), write_records)?;
        out.bytes(&[0])
    })?;
    let dropped_now = feeds.dropped.lock();
    if *dropped_now != dropped {
        return remove_file(&temporary);
    }
    fs::rename(&temporary, &path).during("replacing", &path)?;
    drop(dropped_now);
    sync_folder(feeds.folder.path())
}

fn encode(record: &mut Vec<u8>, of: Id, inbox: &Inbox) {
    record.push(1);
    of.push_to(record);
    record.extend_from_slice(&inbox.seen_at.to_le_bytes());
    record.push(u8::from(inbox.complete_from().is_some()));
    record.extend_from_slice(inbox.complete_from().unwrap_or_default());
    record.extend_from_slice(&(inbox.keys().len() as u32).to_le_bytes());
    record.extend_from_slice(inbox.keys());
}

/// Drops the stored inboxes, also those that are being stored at the moment.
pub(crate) fn forget_stored(feeds: &Feeds) -> Result<()> {
    feeds.folder.require()?;
    *feeds.dropped.lock() += 1;
    remove_file(&feeds.folder.path().join(FILE_NAME))
}

/// What was stored: inboxes, and up to where they are complete.
pub(crate) type Loaded = (Vec<(Id, Inbox)>, Sequence);

/// Loads what was stored, if it is there and whole.
pub(crate) fn load(folder: &Path, ids: IdKind, epoch: Epoch) -> Result<Option<Loaded>> {
    let instead = "inboxes are filled again when their users come";
    files::read_dispensable(&folder.join(FILE_NAME), instead, |file| read(file, ids, epoch))
}

fn read(file: File, ids: IdKind, epoch: Epoch) -> io::Result<Loaded> {
    let invalid = |what: &'static str| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut input = Source { input: BufReader::with_capacity(BUFFER_BYTES, file), checksum: 0 };
    let start: [u8; 32] = input.array()?;
    let position = Sequence(u64::from_le_bytes(std::array::from_fn(|offset| start[24 + offset])));
    if start != header(ids, epoch, position) {
        return Err(invalid("they are of another store, epoch or version"));
    }
    let mut inboxes = Vec::new();
    while input.array()? == [1u8] {
        let id = input.bytes(ids.id_len())?;
        let id = ids.read(&id).ok_or_else(|| invalid("an id is not valid"))?;
        let seen_at = u64::from_le_bytes(input.array()?);
        let is_bounded = input.array()? == [1u8];
        let complete_from = if is_bounded { Some(input.bytes(key_len(ids))?) } else { None };
        let length = u32::from_le_bytes(input.array()?);
        if length > KEYS_BYTES_MAX || !(length as usize).is_multiple_of(key_len(ids)) {
            return Err(invalid("an inbox has an impossible length"));
        }
        let keys = input.bytes(length as usize)?;
        inboxes.push((id, Inbox::stored(keys, complete_from, seen_at)));
    }
    let checksum = input.checksum;
    if u32::from_le_bytes(input.array()?) != checksum {
        return Err(invalid("their checksum is wrong"));
    }
    Ok((inboxes, position))
}

/// Reads and checksums.
struct Source<R> {
    input: R,
    checksum: u32,
}

impl<R: Read> Source<R> {
    fn array<const LEN: usize>(&mut self) -> io::Result<[u8; LEN]> {
        let mut bytes = [0; LEN];
        self.input.read_exact(&mut bytes)?;
        self.checksum = crc32c::crc32c_append(self.checksum, &bytes);
        Ok(bytes)
    }

    fn bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.input.read_exact(&mut bytes)?;
        self.checksum = crc32c::crc32c_append(self.checksum, &bytes);
        Ok(bytes)
    }
}
