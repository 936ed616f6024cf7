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
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use kinfolk_core::{EdgeKind, Epoch, IdKind, Result, Sequence};

use super::Index;
use crate::disk::files::{self, remove_file, sync_folder};

const MAGIC: &[u8; 8] = b"KINFOLKX";
const VERSION: u32 = 2;
/// How many kinds a snapshot of version 1 has.
const KINDS_OF_VERSION_1: usize = 6;
const FILE_NAME: &str = "index.snapshot";
const BUFFER_BYTES: usize = 1 << 20;

/// Writes and checksums.
pub struct Sink<'a> {
    out: &'a mut dyn Write,
    checksum: u32,
    written: u64,
    ids_start: u64,
}

impl Sink<'_> {
    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum = crc32c::crc32c_append(self.checksum, bytes);
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    /// One number.
    pub fn number(&mut self, number: u32) -> io::Result<()> {
        self.bytes(&number.to_le_bytes())
    }

    /// The ids of a kind.
    pub fn ids(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.ids_start = self.written;
        self.bytes(bytes)
    }
}

/// Reads and checksums the lists of a kind. Its ids stand behind them in the file but are needed first.
pub struct Source<'a> {
    lists: &'a mut BufReader<File>,
    ids: Vec<u8>,
    checksum: u32,
    scratch: Vec<u8>,
}

impl Source<'_> {
    /// One number.
    pub fn number(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.lists.read_exact(&mut bytes)?;
        self.checksum = crc32c::crc32c_append(self.checksum, &bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    /// A list of numbers, which its length precedes.
    pub fn numbers(&mut self) -> io::Result<Vec<u32>> {
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

    /// The ids of the kind, big-endian, by number.
    pub fn ids(&self) -> &[u8] {
        &self.ids
    }
}

fn header(version: u32, ids: IdKind, epoch: Epoch, position: Sequence) -> [u8; 32] {
    let mut header = [0; 32];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&version.to_le_bytes());
    header[12..16].copy_from_slice(&(if ids == IdKind::Integer { 1u32 } else { 2 }).to_le_bytes());
    header[16..24].copy_from_slice(&epoch.0.to_le_bytes());
    header[24..].copy_from_slice(&position.0.to_le_bytes());
    header
}

/// Writes a snapshot that holds everything up to `position`, replacing the one before.
pub fn save(index: &Index, folder: &Path, epoch: Epoch, position: Sequence) -> Result<()> {
    let path = folder.join(FILE_NAME);
    let temporary = path.with_extension("tmp");
    let write = || -> io::Result<()> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, File::create(&temporary)?);
        let mut sink = Sink { out: &mut out, checksum: 0, written: 0, ids_start: 0 };
        sink.bytes(&header(VERSION, index.ids, epoch, position))?;
        let mut places = Vec::new();
        for kind in EdgeKind::ALL {
            let lists = sink.written;
            index.of(kind).save(&mut sink)?;
            places.extend([lists, sink.ids_start, sink.written]);
        }
        for place in places {
            sink.bytes(&place.to_le_bytes())?;
        }
        let checksum = sink.checksum;
        sink.bytes(&checksum.to_le_bytes())?;
        out.flush()?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&temporary, &path)
    };
    if let Err(error) = write() {
        let _ = remove_file(&temporary);
        return Err(files::io_error("writing", &path, &error));
    }
    sync_folder(folder)
}

/// Whether there is a snapshot.
pub fn is_saved(folder: &Path) -> bool {
    folder.join(FILE_NAME).exists()
}

/// Loads the snapshot, with its position; `None` if there is no usable one.
pub fn load(folder: &Path, ids: IdKind, epoch: Epoch) -> Result<Option<(Index, Sequence)>> {
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
    let versions = [(VERSION, EdgeKind::ALL.len()), (1, KINDS_OF_VERSION_1)];
    let (_, kinds) = versions
        .into_iter()
        .find(|&(version, _)| start == header(version, ids, epoch, position))
        .ok_or_else(|| invalid("it is of another store, epoch or version"))?;

    let places_len = kinds * 24;
    let places_at = length.checked_sub(places_len as u64 + 4).ok_or_else(|| invalid("too short"))?;
    input.seek(SeekFrom::Start(places_at))?;
    let mut tail = vec![0; places_len + 4];
    input.read_exact(&mut tail)?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|offset| tail[at + offset]));

    let mut index = Index::new(ids);
    let mut checksum = crc32c::crc32c(&start);
    for (number, graph) in index.kinds.iter_mut().take(kinds).enumerate() {
        let place = |which: usize| word(number * 24 + which * 8);
        let (lists, ids, end) = (place(0), place(1), place(2));
        if !(lists <= ids && ids <= end && end <= places_at) {
            return Err(invalid("its parts are out of order"));
        }
        checksum = read_kind(&mut input, &mut **graph, (lists, ids, end), checksum)?;
    }
    checksum = crc32c::crc32c_append(checksum, &tail[..places_len]);
    if tail[places_len..] != checksum.to_le_bytes() {
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
