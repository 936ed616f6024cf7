//! The mark: the newest position known to be synced, kept apart from the log.
//!
//! A torn end of the log and a damaged one look the same. The mark distinguishes them: everything up to it was
//! acknowledged, so a log that ends before it has lost something and must not be opened.
//!
//! Two slots of 28 bytes, 512 bytes apart so that no torn sector hits both:
//! `sequence u64 | position u64 | epoch u64 | crc32c u32`, little-endian; the valid one with the higher sequence
//! counts. One is written after each sync of the log and itself synced only now and then: after a power cut the
//! mark may be older than the log, which is harmless. The slot that was synced last is left alone until the
//! other one is synced too, so that there always is a valid one.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use kinfolk_core::{Epoch, Result, Sequence};

use crate::disk::files::{IoContext, sync_folder};

const SLOT_LEN: usize = 28;
const SLOT_DISTANCE: u64 = 512;
const FILE_NAME: &str = "mark";

/// The open mark file.
#[derive(Debug)]
pub(crate) struct Mark {
    file: File,
    path: PathBuf,
    epoch: Epoch,
    sequence: u64,
    /// The slot that may be overwritten: not the one synced last.
    open_slot: u64,
    /// Whether something was recorded since the last sync.
    is_recorded: bool,
}

fn encode(sequence: u64, position: Sequence, epoch: Epoch) -> [u8; SLOT_LEN] {
    let mut slot = [0; SLOT_LEN];
    slot[..8].copy_from_slice(&sequence.to_le_bytes());
    slot[8..16].copy_from_slice(&position.0.to_le_bytes());
    slot[16..24].copy_from_slice(&epoch.0.to_le_bytes());
    let checksum = crc32c::crc32c(&slot[..24]);
    slot[24..].copy_from_slice(&checksum.to_le_bytes());
    slot
}

fn decode(slot: &[u8; SLOT_LEN]) -> Option<(u64, Sequence, Epoch)> {
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|offset| slot[at + offset]));
    let (sequence, position, epoch) = (word(0), Sequence(word(8)), Epoch(word(16)));
    (encode(sequence, position, epoch) == *slot).then_some((sequence, position, epoch))
}

impl Mark {
    /// Opens the mark of a store, making it if it is missing; returns the position that it holds, if any.
    pub(crate) fn open(folder: &Path, epoch: Epoch) -> Result<(Self, Option<Sequence>)> {
        let path = folder.join(FILE_NAME);
        let missing = !path.exists();
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .during("opening", &path)?;
        if missing {
            sync_folder(folder)?;
        }
        let newest = (0..2)
            .filter_map(|index| {
                let mut slot = [0; SLOT_LEN];
                file.read_exact_at(&mut slot, index * SLOT_DISTANCE).ok()?;
                decode(&slot).map(|(sequence, position, of)| (index, sequence, position, of))
            })
            .filter(|&(_, _, _, of)| of == epoch)
            .max_by_key(|&(_, sequence, _, _)| sequence);
        let (slot, sequence) = newest.map_or((1, 0), |(slot, sequence, _, _)| (slot, sequence));
        let mark = Self { file, path, epoch, sequence, open_slot: 1 - slot, is_recorded: false };
        Ok((mark, newest.map(|(_, _, position, _)| position)))
    }

    /// Records that everything up to `position` is synced.
    pub(crate) fn record(&mut self, position: Sequence) -> Result<()> {
        self.sequence += 1;
        self.is_recorded = true;
        let slot = encode(self.sequence, position, self.epoch);
        self.file.write_all_at(&slot, self.open_slot * SLOT_DISTANCE).during("writing", &self.path)
    }

    /// Makes the mark itself durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        // Without it, the slot that was synced last would be opened again.
        if self.is_recorded {
            self.file.sync_data().during("syncing", &self.path)?;
            self.open_slot = 1 - self.open_slot;
            self.is_recorded = false;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: Epoch = Epoch(5);

    #[test]
    fn the_newest_valid_slot_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (mut mark, said) = Mark::open(folder.path(), EPOCH).unwrap();
        assert_eq!(said, None);
        for position in 1..=4 {
            mark.record(Sequence(position)).unwrap();
        }
        mark.sync().unwrap();
        mark.record(Sequence(5)).unwrap();
        drop(mark);
        assert_eq!(Mark::open(folder.path(), EPOCH).unwrap().1, Some(Sequence(5)));
        assert_eq!(Mark::open(folder.path(), Epoch(6)).unwrap().1, None);

        let path = folder.path().join(FILE_NAME);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[512 + 9] ^= 1; // the first sync was of slot 0, so 5 is in slot 1
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(Mark::open(folder.path(), EPOCH).unwrap().1, Some(Sequence(4)));
    }
}
