//! The index on disk, so that a start reads it in order instead of all rows.
//!
//! ```text
//! magic "KINFOLKX" | version u32 | ids u32 | epoch u64 | position u64
//! for each kind: its parts (parts.rs)
//! for each kind: what a start must know to read them (parts.rs)
//! crc32c u32 of all before
//! ```
//!
//! Little-endian where nothing else is said. Users come from a running store: they have everything up to the position and perhaps
//! some later changes, which replaying the log settles. Follower counts are not stored: they are counted while loading. A snapshot
//! that is missing or damaged is not an error: the rows have it all. Versions 1 and 2 are read (old_snapshot.rs).

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use kinfolk_core::{EdgeKind, Epoch, IdKind, Result, Sequence};

use super::parts::{PartSource, SavedKind};
use super::{Index, old_snapshot};
use crate::disk::checksummed::write_beside;
use crate::disk::files::{self, IoContext, sync_folder};

const MAGIC: &[u8; 8] = b"KINFOLKX";
const VERSION: u32 = 3;
/// How many kinds a snapshot of this version has.
const KINDS: usize = 7;
const _: () = assert!(EdgeKind::ALL.len() == KINDS, "a new kind makes a new version of snapshots");
const FILE_NAME: &str = "index.snapshot";
const HEAD_LEN: usize = 32;
const CHECKSUM_LEN: usize = 4;

fn header(version: u32, ids: IdKind, epoch: Epoch, position: Sequence) -> [u8; HEAD_LEN] {
    files::file_head(MAGIC, [version, files::id_kind_number(ids)], epoch, position)
}

/// Writes a snapshot that holds everything up to `position`, replacing the one before.
pub(crate) fn save(index: &Index, folder: &Path, epoch: Epoch, position: Sequence) -> Result<()> {
    let path = folder.join(FILE_NAME);
    let temporary = write_beside(&path, |out| {
        out.bytes(&header(VERSION, index.ids, epoch, position))?;
        let mut directory = Vec::new();
        for kind in EdgeKind::ALL {
            index.of(kind).save(out)?.push_to(&mut directory);
        }
        out.bytes(&directory)
    })?;
    fs::rename(&temporary, &path).during("replacing", &path)?;
    sync_folder(folder)
}

/// Whether there is a snapshot.
pub(crate) fn is_saved(folder: &Path) -> bool {
    folder.join(FILE_NAME).exists()
}

/// Loads the snapshot, with its position; `None` if there is no usable one.
pub(crate) fn load(folder: &Path, ids: IdKind, epoch: Epoch) -> Result<Option<(Index, Sequence)>> {
    let instead = "the index is rebuilt from the rows";
    files::read_dispensable(&folder.join(FILE_NAME), instead, |file| read(file, ids, epoch))
}

fn read(mut file: File, ids: IdKind, epoch: Epoch) -> io::Result<(Index, Sequence)> {
    let mut head = [0; HEAD_LEN];
    file.read_exact(&mut head)?;
    let position = Sequence(u64::from_le_bytes(std::array::from_fn(|offset| head[24 + offset])));
    let is_of = |version| head == header(version, ids, epoch, position);
    let mut index = Index::new(ids);
    if is_of(VERSION) {
        read_parts(&file, &head, &mut index)?;
    } else if let Some((_, kinds)) =
        old_snapshot::KINDS_OF_VERSION.into_iter().find(|&(version, _)| is_of(version))
    {
        old_snapshot::read(file, &head, kinds, &mut index)?;
    } else {
        return Err(invalid("it is of another store, epoch or version"));
    }
    Ok((index, position))
}

/// Reads a snapshot of this version after its head. Its checksum is put together from those of its parts, which are read side by side.
fn read_parts(file: &File, head: &[u8], index: &mut Index) -> io::Result<()> {
    const DIRECTORY_LEN: usize = KINDS * SavedKind::LEN;
    let length = file.metadata()?.len();
    let directory_at = length.checked_sub((DIRECTORY_LEN + CHECKSUM_LEN) as u64);
    let directory_at = directory_at.ok_or_else(|| invalid("it is too short"))?;
    let mut tail = [0; DIRECTORY_LEN + CHECKSUM_LEN];
    file.read_exact_at(&mut tail, directory_at)?;
    let (directory, expected) = tail.split_at(DIRECTORY_LEN);

    let kinds: Option<Vec<_>> = directory.chunks_exact(SavedKind::LEN).map(SavedKind::read).collect();
    let kinds = kinds.ok_or_else(|| invalid("its directory is too short"))?;
    // Before room is made for what it says.
    let parts_len = kinds.iter().map(SavedKind::bytes).fold(0, u64::saturating_add);
    if parts_len != directory_at.saturating_sub(HEAD_LEN as u64) || !kinds.iter().all(SavedKind::is_plausible)
    {
        return Err(invalid("its parts have another size"));
    }
    let mut checksum = crc32c::crc32c(head);
    let mut start = HEAD_LEN as u64;
    for (graph, saved) in index.kinds.iter_mut().zip(&kinds) {
        let checksums = graph.load(saved, &PartSource { file, start })?;
        for (part, of_part) in saved.parts.iter().zip(checksums) {
            checksum = crc32c::crc32c_combine(checksum, of_part, part.bytes as usize);
        }
        start += saved.bytes();
    }
    checksum = crc32c::crc32c_append(checksum, directory);
    if expected == checksum.to_le_bytes() { Ok(()) } else { Err(invalid("its checksum is wrong")) }
}

pub(super) fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use kinfolk_core::Id;
    use kinfolk_core::graph::Edge;

    use super::*;

    const EPOCH: Epoch = Epoch(3);

    fn sample(of: fn(u64) -> Id, ids: IdKind) -> Index {
        let index = Index::new(ids);
        for (kind, a, b) in [(1, 1, 2), (1, 1, 3), (1, 2, 1), (2, 5, 1), (6, 9, 8)] {
            let kind = EdgeKind::from_number(kind).unwrap();
            index.of(kind).insert(Edge { follower: of(a), followee: of(b) });
        }
        index
    }

    #[test]
    fn what_is_saved_is_loaded() {
        for (ids, of) in [
            (IdKind::Integer, Id::Integer as fn(u64) -> Id),
            (IdKind::Uuid, |value| Id::Uuid(u128::from(value) << 70)),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let index = sample(of, ids);
            save(&index, folder.path(), EPOCH, Sequence(7)).unwrap();
            let (loaded, position) = load(folder.path(), ids, EPOCH).unwrap().unwrap();
            assert_eq!(position, Sequence(7));
            for kind in EdgeKind::ALL {
                assert_eq!(loaded.of(kind).edge_count(), index.of(kind).edge_count());
                for id in (0..10).map(of) {
                    assert_eq!(loaded.of(kind).counts(id), index.of(kind).counts(id));
                    assert_eq!(loaded.of(kind).followees(id), index.of(kind).followees(id));
                }
            }
            assert!(load(folder.path(), ids, Epoch(4)).unwrap().is_none());
        }
    }

    #[test]
    fn damage_is_always_seen() {
        let folder = tempfile::tempdir().unwrap();
        save(&sample(Id::Integer, IdKind::Integer), folder.path(), EPOCH, Sequence(7)).unwrap();
        let path = folder.path().join(FILE_NAME);
        let bytes = fs::read(&path).unwrap();
        // One bit of each byte: all bits of a byte are read together.
        for bit in (0..bytes.len()).map(|byte| byte * 8 + byte % 8) {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, &damaged).unwrap();
            assert!(load(folder.path(), IdKind::Integer, EPOCH).unwrap().is_none(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            fs::write(&path, &bytes[..cut]).unwrap();
            assert!(load(folder.path(), IdKind::Integer, EPOCH).unwrap().is_none(), "cut at {cut}");
        }
    }
}
