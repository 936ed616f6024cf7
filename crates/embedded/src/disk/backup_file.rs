//! The file of a backup: every edge, post and comment as of one position, readable by any version that knows the file's. What goes
//! into its blocks is said by each room.
//!
//! ```text
//! magic "KINFOLKB" | version u32 | ids u32 | epoch u64 | position u64 | floor u64 | crc32c u32
//! blocks: kind u32 | length u32 | crc32c u32 of kind, length and records | records
//! end:    0 u32 | length u32 | crc32c u32 | number of edges u64 | from version 2: of posts u64 | of their idempotency keys u64
//!         | from version 3: of comments u64 | of their older bodies u64 | of their idempotency keys u64
//! ```
//!
//! Little-endian. Blocks of the kinds of edges hold records as in a run of pairs; those of posts, which make a backup
//! version 2, and of comments, which make it version 3, are documented with them. Version 4 differs from 3 in that records of comments
//! may name a moderator. Not in a backup: the change log (a restore starts a new epoch, so older tokens
//! fail clearly) and the signing keys.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use kinfolk_core::bulk::{BackupReport, Progress};
use kinfolk_core::{Error, IdKind, Result, Sequence, Shard, Timestamp};

use super::files::{self, IoContext};
use super::format::{Content, Identity};

const MAGIC: &[u8; 8] = b"KINFOLKB";
const HEADER_LEN: usize = 44;
/// Kind, length and checksum of a block.
const BLOCK_HEAD_LEN: usize = 12;
/// A block is closed when it has reached this.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
/// No block is longer: the last record of one may be a post with the longest payload.
const BLOCK_BYTES_MAX: usize = BLOCK_BYTES + (2 << 20);

/// How much a backup holds; what its end says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub edges: u64,
    pub posts: u64,
    pub keys: u64,
    pub comments: u64,
    pub versions: u64,
    pub comment_keys: u64,
}

impl Totals {
    /// What is said of a backup with so much in it.
    pub(crate) fn report(self, position: Sequence, bytes: u64) -> BackupReport {
        let Self { edges, posts, comments, .. } = self;
        BackupReport { edges, posts, comments, position: position.on(Shard::ONLY), bytes }
    }

    fn encode(self, content: Content) -> Vec<u8> {
        let all = [self.edges, self.posts, self.keys, self.comments, self.versions, self.comment_keys];
        let kept = match content {
            Content::Edges => &all[..1],
            Content::Posts => &all[..3],
            Content::Comments | Content::Moderators => &all,
        };
        kept.iter().flat_map(|count| count.to_le_bytes()).collect()
    }
}

/// What a projection puts into a backup, as of one moment.
pub(crate) type BackupPart =
    Box<dyn FnOnce(&mut Blocks<'_>, &mut Totals, &dyn Fn(Progress)) -> Result<()> + Send>;

/// Writes blocks.
pub(crate) struct Blocks<'a> {
    /// Not buffered: what is written is large, or the stream collects it.
    out: &'a mut dyn Write,
    /// How many bytes were written.
    written: u64,
    /// The records of the block that is being filled.
    block: Vec<u8>,
}

impl<'a> Blocks<'a> {
    /// Begins a backup.
    pub(crate) fn begin(out: &'a mut dyn Write, head: &Header, identity: Identity) -> Result<Self> {
        let mut blocks = Self { out, written: 0, block: Vec::new() };
        blocks.write(&header(head, identity))?;
        Ok(blocks)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| not_written(&error))?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn close(&mut self, kind: u32) -> Result<()> {
        let mut block = std::mem::take(&mut self.block);
        let mut head = [0; BLOCK_HEAD_LEN];
        head[..4].copy_from_slice(&kind.to_le_bytes());
        head[4..8].copy_from_slice(&(block.len() as u32).to_le_bytes());
        head[8..].copy_from_slice(&block_checksum(kind, &block).to_le_bytes());
        self.write(&head)?;
        self.write(&block)?;
        block.clear();
        self.block = block;
        Ok(())
    }

    /// Writes rows into blocks of a kind: `encode` appends a row to a block, and `report` gets the number of rows whenever a block is
    /// full. Returns how many there were.
    pub(crate) fn write_rows<T>(
        &mut self,
        kind: u32,
        rows: impl Iterator<Item = Result<T>>,
        mut encode: impl FnMut(&mut Vec<u8>, T),
        report: impl Fn(u64),
    ) -> Result<u64> {
        let mut count = 0;
        for row in rows {
            encode(&mut self.block, row?);
            count += 1;
            if self.block.len() >= BLOCK_BYTES {
                self.close(kind)?;
                report(count);
            }
        }
        if !self.block.is_empty() {
            self.close(kind)?;
        }
        Ok(count)
    }

    /// Writes the end block, without which a backup is not complete; returns how many bytes there were in all.
    pub(crate) fn finish(mut self, totals: Totals, content: Content) -> Result<u64> {
        self.block = totals.encode(content);
        self.close(0)?;
        self.out.flush().map_err(|error| not_written(&error))?;
        Ok(self.written)
    }
}

fn not_written(error: &io::Error) -> Error {
    files::storage_error(format!("writing the backup: {error}"), error)
}

fn header(&Header { content, position, floor, .. }: &Header, identity: Identity) -> [u8; HEADER_LEN] {
    let numbers = [content as u32, files::id_kind_number(identity.ids)];
    let mut header = [0; HEADER_LEN];
    header[..32].copy_from_slice(&files::file_head(MAGIC, numbers, identity.epoch, position));
    header[32..40].copy_from_slice(&floor.millis().to_le_bytes());
    let checksum = crc32c::crc32c(&header[..40]);
    header[40..].copy_from_slice(&checksum.to_le_bytes());
    header
}

fn block_checksum(kind: u32, bytes: &[u8]) -> u32 {
    let head = [kind.to_le_bytes(), (bytes.len() as u32).to_le_bytes()].concat();
    crc32c::crc32c_append(crc32c::crc32c(&head), bytes)
}

/// What the header of a backup says.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub content: Content,
    pub ids: IdKind,
    pub position: Sequence,
    pub floor: Timestamp,
}

/// A backup being read.
pub(crate) struct Reader<'a> {
    input: BufReader<File>,
    path: &'a Path,
    pub bytes: u64,
    /// The block that was read but belongs to a later kind.
    held: Option<(u32, Vec<u8>)>,
    pub totals: Totals,
    ended: bool,
    /// What comes later is restored as of this time.
    pub latest: Timestamp,
}

impl<'a> Reader<'a> {
    /// Opens a file.
    pub(crate) fn open(path: &'a Path) -> Result<Self> {
        let file = File::open(path).during("opening", path)?;
        let bytes = file.metadata().during("reading", path)?.len();
        let input = BufReader::with_capacity(1 << 20, file);
        let (totals, latest) = (Totals::default(), Timestamp::MAX);
        Ok(Self { input, path, bytes, held: None, totals, ended: false, latest })
    }

    /// The error for a backup that can't be decoded.
    pub(crate) fn damaged(&self) -> Error {
        Error::corrupt(format!(
            "the backup {} is damaged or cut short; nothing was restored",
            self.path.display()
        ))
    }

    /// A time of the backup, as it is restored.
    pub(crate) fn clamped(&self, time: Timestamp) -> Timestamp {
        time.min(self.latest)
    }

    /// The header, which comes first.
    pub(crate) fn header(&mut self) -> Result<Header> {
        let mut bytes = [0; HEADER_LEN];
        let read = self.input.read_exact(&mut bytes);
        if read.is_err() || &bytes[..8] != MAGIC {
            let detail = format!("{} is not a Kinfolk backup", self.path.display());
            return Err(Error::InvalidInput { detail });
        }
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|offset| bytes[at + offset]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|offset| bytes[at + offset]));
        if half(40) != crc32c::crc32c(&bytes[..40]) {
            return Err(self.damaged());
        }
        let (version, newest) = (half(8), Content::NEWEST as u32);
        let Some(content) = Content::from_number(version) else {
            let detail = format!(
                "{} has backup version {version}, this Kinfolk reads up to {newest}",
                self.path.display()
            );
            return Err(Error::InvalidInput { detail });
        };
        let ids = if half(12) == 1 { IdKind::Integer } else { IdKind::Uuid };
        Ok(Header { content, ids, position: Sequence(word(24)), floor: Timestamp::from_millis(word(32)) })
    }

    /// The next block of a kind, or `None` where another kind or the end comes.
    pub(crate) fn block(&mut self, kind: u32) -> Result<Option<Vec<u8>>> {
        if self.ended {
            return Ok(None);
        }
        let (found, bytes) = self.held.take().map_or_else(|| self.read_block(), Ok)?;
        if found == kind {
            return Ok(Some(bytes));
        }
        self.held = Some((found, bytes));
        Ok(None)
    }

    fn read_block(&mut self) -> Result<(u32, Vec<u8>)> {
        let mut head = [0; BLOCK_HEAD_LEN];
        self.input.read_exact(&mut head).map_err(|_| self.damaged())?;
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|offset| head[at + offset]));
        let (kind, length, checksum) = (half(0), half(4), half(8));
        if length as usize > BLOCK_BYTES_MAX {
            return Err(self.damaged());
        }
        let mut bytes = vec![0; length as usize];
        self.input.read_exact(&mut bytes).map_err(|_| self.damaged())?;
        if block_checksum(kind, &bytes) == checksum { Ok((kind, bytes)) } else { Err(self.damaged()) }
    }

    fn is_at_end(&mut self) -> bool {
        matches!(self.input.read(&mut [0]), Ok(0))
    }

    /// Requires that the end comes now and that nothing was left out.
    pub(crate) fn end(&mut self, content: Content) -> Result<()> {
        let (kind, bytes) = self.held.take().map_or_else(|| self.read_block(), Ok)?;
        self.ended = true;
        if kind == 0 && bytes == self.totals.encode(content) && self.is_at_end() {
            Ok(())
        } else {
            Err(self.damaged())
        }
    }
}

/// Reads a backup to its end without restoring it: every checksum must be right.
pub(crate) fn inspect(path: &Path) -> Result<BackupReport> {
    let mut reader = Reader::open(path)?;
    let position = reader.header()?.position;
    let end = loop {
        let (kind, records) = reader.read_block()?;
        if kind == 0 {
            break records;
        }
    };
    let (counts, _) = end.as_chunks::<8>();
    let count = |at: usize| counts.get(at).map_or(0, |&bytes| u64::from_le_bytes(bytes));
    if counts.is_empty() || !reader.is_at_end() {
        return Err(reader.damaged());
    }
    let (edges, posts, comments) = (count(0), count(1), count(3));
    Ok(BackupReport { edges, posts, comments, position: position.on(Shard::ONLY), bytes: reader.bytes })
}
