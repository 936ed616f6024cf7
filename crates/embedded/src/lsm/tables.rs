//! The list of tables that a tree consists of. The tree stores a checksum of it beside its number and never compares the two, so
//! a damaged list could show rows of long ago: it is compared here, before the tree is opened.
//!
//! `current`: number u64 | XXH3-128 of the file `vNUMBER` u128 | kind of checksum u8 (0), little-endian.

use std::fs;
use std::path::Path;

use kinfolk_core::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

use crate::disk::files::IoContext;

/// Refuses a tree whose list of tables is not the one that was written. A folder without a tree is none of its business.
pub(crate) fn require_intact(tree: &Path) -> Result<()> {
    let current = tree.join("current");
    let Some(pointer) = fs::read(&current).if_found("reading", &current)? else { return Ok(()) };
    let damaged =
        |path: &Path| Error::corrupt(format!("{} is damaged; restore from a backup", path.display()));
    let (number, checksum) = read_pointer(&pointer).ok_or_else(|| damaged(&current))?;
    let list = tree.join(format!("v{number}"));
    let found = fs::read(&list).if_found("reading", &list)?;
    let is_intact = found.is_some_and(|bytes| xxh3_128(&bytes) == checksum);
    if is_intact { Ok(()) } else { Err(damaged(&list)) }
}

/// The number of the list, and its checksum.
fn read_pointer(bytes: &[u8]) -> Option<(u64, u128)> {
    let (number, rest) = bytes.split_first_chunk()?;
    let (checksum, kind) = rest.split_first_chunk()?;
    (kind == [0]).then_some((u64::from_le_bytes(*number), u128::from_le_bytes(*checksum)))
}

#[cfg(test)]
mod tests {
    use lsm_tree::{AbstractTree, Config, SequenceNumberCounter};

    use super::*;

    #[test]
    fn any_flipped_bit_of_a_list_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path();
        assert!(require_intact(tree).is_ok(), "no tree yet");
        let counters = [SequenceNumberCounter::default(), SequenceNumberCounter::default()];
        let [sequence, visible] = counters.clone();
        let open = Config::new(tree, sequence, visible).open().unwrap();
        for number in 0..3 {
            open.insert("a", "b", number);
            open.flush_active_memtable(0).unwrap();
            require_intact(tree).unwrap();
        }
        drop(open);
        let list = fs::read_dir(tree).unwrap().map(|entry| entry.unwrap().path());
        let list = list.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with('v')).max();
        for path in [list.unwrap(), tree.join("current")] {
            let intact = fs::read(&path).unwrap();
            for bit in 0..intact.len() * 8 {
                let mut flipped = intact.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                fs::write(&path, flipped).unwrap();
                let refused = require_intact(tree).unwrap_err();
                assert!(matches!(refused, Error::Corrupt { .. }), "{refused}");
            }
            for length in 0..intact.len() {
                fs::write(&path, &intact[..length]).unwrap();
                assert!(require_intact(tree).is_err(), "cut to {length} bytes");
            }
            fs::write(&path, intact).unwrap();
        }
        require_intact(tree).unwrap();
    }
}
