//! The index on disk, so that a start reads some hundred megabytes in order instead of all rows.
//!
//! ```text
//! magic "KINFOLKX" | version u32 | ids u32 | epoch u64 | position u64
//! for each kind: its lists: number u32 | length u32 | followees u32… , ended by 0xffffffff,
//!                then its ids, big-endian, by number
//! for each kind: where its lists start u64 | where its ids start u64 | where they end u64
//! crc32c u32 of all before
//! ```
//!
//! Version 1 has the first six kinds, version 2 seven: a kind that a snapshot does not have had no edges then.
//!
//! Little-endian where nothing else is said. The lists come from a running store: they hold everything up to
//! the position and perhaps some later changes, which replaying the log settles. Follower counts are not stored:
//! they are counted while loading. A snapshot that is missing or damaged is not an error: the rows have it all.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use kinfolk_core::{EdgeKind, Epoch, IdKind, Result, Sequence};

use super::Index;
use crate::disk::checksummed::write_beside;
use crate::disk::files::{self, IoContext, sync_folder};

const MAGIC: &[u8; 8] = b"KINFOLKX";
const VERSION: u32 = 2;
/// How many kinds a snapshot of each version has.
const KINDS_OF_VERSION_1: usize = 6;
const KINDS_OF_VERSION_2: usize = 7;
const _: () =
    assert!(EdgeKind::ALL.len() == KINDS_OF_VERSION_2, "a new kind makes a new version of snapshots");
const FILE_NAME: &str = "index.snapshot";
const BUFFER_BYTES: usize = 1 << 20;

/// Reads and checksums the lists of a kind. Its ids stand behind them in the file but are needed first.
pub(crate) struct Source<'a> {
    lists: &'a mut BufReader<File>,
    pub ids: Vec<u8>,
    checksum: u32,
    scratch: Vec<u8>,
}

impl Source<'_> {
    /// One number.
    pub(crate) fn number(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.lists.read_exact(&mut bytes)?;
        self.checksum = crc32c::crc32c_append(self.checksum, &bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    /// A list of numbers, which its length precedes.
    pub(crate) fn numbers(&mut self) -> io::Result<Vec<u32>> {
        let wanted = self.number()? as usize * 4;
        self.scratch.clear();
        let read = self.lists.by_ref().take(wanted as u64).read_to_end(&mut self.scratch)?;
        if read != wanted {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.checksum = crc32c::crc32c_append(self.checksum, &self.scratch);
        let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Ok(self.scratch.chunks_exact(4).map(word).collect())
    }
}

fn header(version: u32, ids: IdKind, epoch: Epoch, position: Sequence) -> [u8; 32] {
    files::file_head(MAGIC, [version, files::id_kind_number(ids)], epoch, position)
}

/// Writes a snapshot that holds everything up to `position`, replacing the one before.
pub(crate) fn save(index: &Index, folder: &Path, epoch: Epoch, position: Sequence) -> Result<()> {
    let path = folder.join(FILE_NAME);
    let temporary = write_beside(&path, |out| {
        out.bytes(&header(VERSION, index.ids, epoch, position))?;
        let mut offsets: Vec<u64> = Vec::new();
        for kind in EdgeKind::ALL {
            let lists = out.written;
            let ids = index.of(kind).save(out)?;
            offsets.extend([lists, ids, out.written]);
        }
        offsets.iter().try_for_each(|offset| out.bytes(&offset.to_le_bytes()))
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

fn read(file: File, ids: IdKind, epoch: Epoch) -> io::Result<(Index, Sequence)> {
    let invalid = |what: &'static str| io::Error::new(io::ErrorKind::InvalidData, what);
    let length = file.metadata()?.len();
    let mut input = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut start = [0; 32];
    input.read_exact(&mut start)?;
    let position = Sequence(u64::from_le_bytes(std::array::from_fn(|offset| start[24 + offset])));
    let versions = [(VERSION, KINDS_OF_VERSION_2), (1, KINDS_OF_VERSION_1)];
    let (_, kinds) = versions
        .into_iter()
        .find(|&(version, _)| start == header(version, ids, epoch, position))
        .ok_or_else(|| invalid("it is of another store, epoch or version"))?;

    let offsets_len = kinds * 24;
    let offsets_at = length.checked_sub(offsets_len as u64 + 4).ok_or_else(|| invalid("too short"))?;
    input.seek(SeekFrom::Start(offsets_at))?;
    let mut tail = vec![0; offsets_len + 4];
    input.read_exact(&mut tail)?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| tail[at + byte]));

    let mut index = Index::new(ids);
    let mut checksum = crc32c::crc32c(&start);
    for (number, graph) in index.kinds.iter_mut().take(kinds).enumerate() {
        let offset = |which: usize| word(number * 24 + which * 8);
        let (lists, ids, end) = (offset(0), offset(1), offset(2));
        if !(lists <= ids && ids <= end && end <= offsets_at) {
            return Err(invalid("its parts are out of order"));
        }
        checksum = read_kind(&mut input, &mut **graph, (lists, ids, end), checksum)?;
    }
    checksum = crc32c::crc32c_append(checksum, &tail[..offsets_len]);
    if tail[offsets_len..] != checksum.to_le_bytes() {
        return Err(invalid("its checksum is wrong"));
    }
    Ok((index, position))
}

/// Reads one kind; returns the checksum that now covers it too.
fn read_kind(
    input: &mut BufReader<File>,
    graph: &mut dyn super::KindIndex,
    (lists, ids, end): (u64, u64, u64),
    checksum: u32,
) -> io::Result<u32> {
    input.seek(SeekFrom::Start(ids))?;
    let mut id_bytes = Vec::new();
    input.by_ref().take(end - ids).read_to_end(&mut id_bytes)?;
    input.seek(SeekFrom::Start(lists))?;
    let mut source = Source { lists: input, ids: id_bytes, checksum, scratch: Vec::new() };
    graph.load(&mut source)?;
    let checksum = crc32c::crc32c_append(source.checksum, &source.ids);
    if input.stream_position()? == ids { Ok(checksum) } else { Err(io::ErrorKind::InvalidData.into()) }
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
        for bit in 0..bytes.len() * 8 {
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
