//! Sorted runs of edges in files: what an external sort spills and an import keeps until it is applied.
//!
//! A run is a sequence of blocks: `length u32 | crc32c u32 | records`, little-endian. A record is LEB128 numbers that
//! count from the record before it in the block (from zeros at the block's start); see the two kinds of record.

use std::cmp::Reverse;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use kinfolk_core::{Error, Result};

use crate::disk::files::IoContext;
use crate::disk::id_encoding::IdEncoding;

/// Blocks are cut at about this size.
const BLOCK_BYTES: usize = 64 << 10;

/// What a run can hold: something that sorts and is small as a difference from the one before it.
pub(crate) trait Record: Copy + Ord + Default + Send + 'static {
    /// Appends this record, given the one before it.
    fn encode(self, before: Self, out: &mut Vec<u8>);

    /// Reads a record, given the one before it.
    fn decode(before: Self, input: &mut Block) -> Option<Self>;
}

/// An edge in the order of pairs: by follower, then followee, then `since`.
///
/// Encoded as the difference of the follower; the followee, or its difference where the follower is the same; the
/// zigzag difference of `since`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct PairRecord<K> {
    pub follower: K,
    pub followee: K,
    /// Milliseconds.
    pub since: u64,
}

impl<K: IdEncoding> Record for PairRecord<K> {
    #[inline]
    fn encode(self, before: Self, out: &mut Vec<u8>) {
        let base = if self.follower == before.follower { before.followee } else { K::default() };
        push_varint(out, self.follower.minus(before.follower));
        push_varint(out, self.followee.minus(base));
        push_difference(out, before.since, self.since);
    }

    #[inline]
    fn decode(before: Self, input: &mut Block) -> Option<Self> {
        let follower = before.follower.plus(input.varint()?)?;
        let base = if follower == before.follower { before.followee } else { K::default() };
        let followee = base.plus(input.varint()?)?;
        Some(Self { follower, followee, since: input.difference(before.since)? })
    }
}

/// An edge in the order of a follower list: by followee, then from the newest `since` to the oldest, then from the
/// highest follower to the lowest.
///
/// Encoded as the difference of the followee; the zigzag difference of `since`; the follower, or by how much it is
/// lower where followee and `since` are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct ListRecord<K> {
    pub followee: K,
    /// Milliseconds.
    pub since: u64,
    pub follower: K,
}

impl<K: Ord + Copy> Ord for ListRecord<K> {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |record: &Self| (record.followee, Reverse(record.since), Reverse(record.follower));
        key(self).cmp(&key(other))
    }
}

impl<K: Ord + Copy> PartialOrd for ListRecord<K> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: IdEncoding> Record for ListRecord<K> {
    #[inline]
    fn encode(self, before: Self, out: &mut Vec<u8>) {
        push_varint(out, self.followee.minus(before.followee));
        push_difference(out, before.since, self.since);
        let continues = self.followee == before.followee
            && self.since == before.since
            && self.follower <= before.follower;
        // The lowest bit says which of the two it is: a block's start has a "before" of zeros.
        let (value, bit) = if continues {
            (before.follower.minus(self.follower), 1)
        } else {
            (self.follower.minus(K::default()), 0)
        };
        push_varint(out, value >> 127);
        push_varint(out, value << 1 | bit);
    }

    #[inline]
    fn decode(before: Self, input: &mut Block) -> Option<Self> {
        let followee = before.followee.plus(input.varint()?)?;
        let since = input.difference(before.since)?;
        let high = input.varint()? << 127;
        let low = input.varint()?;
        let value = high | low >> 1;
        let follower = if low & 1 == 1 {
            K::default().plus(before.follower.minus(K::default()).checked_sub(value)?)?
        } else {
            K::default().plus(value)?
        };
        Some(Self { followee, since, follower })
    }
}

/// Writes a sorted run.
pub(crate) struct RunWriter<R> {
    out: BufWriter<File>,
    path: PathBuf,
    block: Vec<u8>,
    before: R,
}

impl<R: Record> RunWriter<R> {
    /// Starts a new file.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).during("creating", path)?;
        let out = BufWriter::with_capacity(1 << 20, file);
        Ok(Self {
            out,
            path: path.to_path_buf(),
            block: Vec::with_capacity(BLOCK_BYTES + 64),
            before: R::default(),
        })
    }

    /// The next record, not smaller than the one before.
    #[inline]
    pub(crate) fn push(&mut self, record: R) -> Result<()> {
        record.encode(self.before, &mut self.block);
        self.before = record;
        if self.block.len() >= BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<()> {
        let checksum = crc32c::crc32c(&self.block);
        let header = [(self.block.len() as u32).to_le_bytes(), checksum.to_le_bytes()].concat();
        let written = self.out.write_all(&header).and_then(|()| self.out.write_all(&self.block));
        self.block.clear();
        self.before = R::default();
        written.during("writing", &self.path)
    }

    /// Ends the run and makes it durable.
    pub(crate) fn finish(mut self) -> Result<()> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        self.out.flush().during("writing", &self.path)?;
        self.out.get_ref().sync_all().during("syncing", &self.path)
    }
}

/// The bytes of one block, and how far they are read.
#[derive(Default)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    at: usize,
}

impl Block {
    /// A block to read from its start.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0 }
    }

    /// Whether all of it is read.
    pub(crate) fn is_read(&self) -> bool {
        self.at == self.bytes.len()
    }

    #[inline]
    fn varint(&mut self) -> Option<u128> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(u128::from(value));
            }
            if shift == 56 {
                return self.long_varint(u128::from(value));
            }
        }
        None
    }

    /// The rest of a number of more than 63 bits.
    #[cold]
    fn long_varint(&mut self, mut value: u128) -> Option<u128> {
        for shift in (63..128).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            value |= u128::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    #[inline]
    fn difference(&mut self, before: u64) -> Option<u64> {
        let zigzag = u64::try_from(self.varint()?).ok()?;
        before.checked_add_signed((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }
}

/// Reads a sorted run.
pub(crate) struct RunReader<R> {
    input: BufReader<File>,
    path: PathBuf,
    block: Block,
    before: R,
}

impl<R: Record> RunReader<R> {
    /// Starts at the beginning.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let input = BufReader::with_capacity(128 << 10, File::open(path).during("opening", path)?);
        Ok(Self { input, path: path.to_path_buf(), block: Block::default(), before: R::default() })
    }

    /// The next record, or `None` at the end.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<R>> {
        if self.block.is_read() && !self.next_block()? {
            return Ok(None);
        }
        let record = R::decode(self.before, &mut self.block).ok_or_else(|| self.damaged())?;
        self.before = record;
        Ok(Some(record))
    }

    fn next_block(&mut self) -> Result<bool> {
        let mut header = [0; 8];
        match self.input.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            other => other.during("reading", &self.path)?,
        }
        let [a, b, c, d, checksum @ ..] = header;
        let length = u32::from_le_bytes([a, b, c, d]);
        if length as usize > BLOCK_BYTES * 2 {
            return Err(self.damaged());
        }
        self.block.bytes.clear();
        self.input
            .by_ref()
            .take(u64::from(length))
            .read_to_end(&mut self.block.bytes)
            .during("reading", &self.path)?;
        if self.block.bytes.len() != length as usize
            || crc32c::crc32c(&self.block.bytes).to_le_bytes() != checksum
        {
            return Err(self.damaged());
        }
        self.block.at = 0;
        self.before = R::default();
        Ok(true)
    }

    fn damaged(&self) -> Error {
        Error::corrupt(format!(
            "{} is damaged; remove its folder and run the import again",
            self.path.display()
        ))
    }
}

#[inline]
fn push_difference(bytes: &mut Vec<u8>, before: u64, value: u64) {
    let difference = value as i64 - before as i64;
    push_varint(bytes, u128::from((difference << 1 ^ difference >> 63) as u64));
}

#[inline]
fn push_varint(bytes: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trip<R: Record + std::fmt::Debug>(mut records: Vec<R>) {
        records.sort_unstable();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let mut writer = RunWriter::create(&path).unwrap();
        records.iter().for_each(|&record| writer.push(record).unwrap());
        writer.finish().unwrap();
        let mut reader = RunReader::open(&path).unwrap();
        for record in &records {
            assert_eq!(reader.next().unwrap(), Some(*record));
        }
        assert_eq!(reader.next().unwrap(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn runs_round_trip(values in proptest::collection::vec((any::<u64>(), any::<u128>(), 0u64..1 << 48), 0..50)) {
            let pair = |&(a, b, since): &(u64, u128, u64)| PairRecord { follower: a >> 60, followee: b as u64, since };
            round_trip(values.iter().map(pair).collect());
            let pair = |&(a, b, since): &(u64, u128, u64)| PairRecord { follower: u128::from(a) << 64, followee: b, since };
            round_trip(values.iter().map(pair).collect());
            let list = |&(a, b, since): &(u64, u128, u64)| ListRecord { followee: a >> 60, since: since % 3, follower: b as u64 };
            round_trip(values.iter().map(list).collect());
            let list = |&(a, b, since): &(u64, u128, u64)| ListRecord { followee: u128::from(a >> 62), since: since % 3, follower: b };
            round_trip(values.iter().map(list).collect());
        }
    }

    #[test]
    fn many_blocks_and_damage() {
        let records: Vec<_> =
            (0..40_000u64).map(|n| PairRecord { follower: n * n, followee: n, since: n % 7 }).collect();
        round_trip(records.clone());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let mut writer = RunWriter::create(&path).unwrap();
        records.iter().for_each(|&record| writer.push(record).unwrap());
        writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(997) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            std::fs::write(&path, &damaged).unwrap();
            let mut reader = RunReader::<PairRecord<u64>>::open(&path).unwrap();
            let failed = loop {
                match reader.next() {
                    Err(_) => break true,
                    Ok(None) => break false,
                    Ok(Some(_)) => {}
                }
            };
            assert!(failed, "byte {at}");
        }
    }
}
