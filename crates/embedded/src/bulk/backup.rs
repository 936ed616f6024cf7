//! Backups: every edge in one file, as of one position, readable by any version that knows the file's.
//!
//! ```text
//! magic "KINFOLKB" | version u32 | ids u32 | epoch u64 | position u64 | floor u64 | crc32c u32
//! blocks: kind u32 | length u32 | crc32c u32 of kind, length and records | records as in a run of pairs
//! end:    0 u32 | 8 u32 | crc32c u32 | number of edges u64
//! ```
//!
//! Little-endian. Not in a backup: the change log (a restore starts a new epoch, so older tokens fail clearly) and
//! the signing keys.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use kinfolk_core::{EdgeKind, Epoch, Error, IdKind, Position, Result, Timestamp};

use super::load::{self, Target};
use super::run::{Block, PairRecord, Record};
use crate::checkpoint::Checkpoint;
use crate::files::{self, IoContext};
use crate::format::{self, Identity};
use crate::index::{self, Index};
use crate::raw::RawId;
use crate::rows::{Rows, Tree};
use crate::store::Store;
use crate::{Progress, Settings};

const MAGIC: &[u8; 8] = b"KINFOLKB";
const VERSION: u32 = 1;
const HEADER_LEN: usize = 44;
const BLOCK_BYTES: usize = 64 << 10;

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// How many edges, of all kinds.
    pub edges: u64,
    /// As of which position.
    pub position: Position,
    /// The size of the file.
    pub bytes: u64,
}

/// Writes a backup into a file that does not exist yet.
pub fn write(store: &Store, path: &Path, progress: &dyn Fn(Progress)) -> Result<BackupReport> {
    if path.exists() {
        return Err(Error::InvalidInput {
            detail: format!("{} exists already; name another file", path.display()),
        });
    }
    let temporary = path.with_extension("partial");
    let written = match store.identity.ids {
        IdKind::Integer => write_edges::<u64>(store, &temporary, progress),
        IdKind::Uuid => write_edges::<u128>(store, &temporary, progress),
    };
    let report = written.inspect_err(|_| {
        let _ = files::remove_file(&temporary);
    })?;
    std::fs::rename(&temporary, path).during("renaming to", path)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    files::sync_folder(parent)?;
    Ok(report)
}

fn write_edges<K: RawId>(store: &Store, path: &Path, progress: &dyn Fn(Progress)) -> Result<BackupReport> {
    let file = File::create(path).during("creating", path)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    // All kinds are read as of one moment: the iterators are made while no batch goes in.
    let paused = store.rows.pause();
    let position = store.rows.applied(Tree::Pairs)?;
    let floor = store.floor.load(std::sync::atomic::Ordering::Acquire);
    let scans = EdgeKind::ALL.map(|kind| (kind, store.rows.scan(Tree::Pairs, kind)));
    drop(paused);
    out.write_all(&header(store.identity.ids, store.identity.epoch, position, floor))
        .during("writing", path)?;
    let total = EdgeKind::ALL.iter().map(|&kind| store.index.edge_count(kind)).sum();
    let mut edges = 0u64;
    let mut block = Vec::with_capacity(BLOCK_BYTES + 64);
    for (kind, scan) in scans {
        let mut before = PairRecord::<K>::default();
        for row in scan {
            let (edge, since) = row?;
            let (follower, followee) = (K::from_id(edge.follower), K::from_id(edge.followee));
            let record = PairRecord { follower, followee, since: since.millis() };
            record.encode(before, &mut block);
            before = record;
            edges += 1;
            if block.len() >= BLOCK_BYTES {
                write_block(&mut out, u32::from(kind.number()), &block).during("writing", path)?;
                block.clear();
                before = PairRecord::default();
                progress(Progress { stage: "backing up", done: edges, total: Some(total) });
            }
        }
        if !block.is_empty() {
            write_block(&mut out, u32::from(kind.number()), &block).during("writing", path)?;
            block.clear();
        }
    }
    write_block(&mut out, 0, &edges.to_le_bytes()).during("writing", path)?;
    out.flush().during("writing", path)?;
    let file = out.get_ref();
    file.sync_all().during("syncing", path)?;
    let bytes = file.metadata().during("reading", path)?.len();
    Ok(BackupReport { edges, position, bytes })
}

fn header(ids: IdKind, epoch: Epoch, position: Position, floor: u64) -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&(if ids == IdKind::Integer { 1u32 } else { 2 }).to_le_bytes());
    header[16..24].copy_from_slice(&epoch.0.to_le_bytes());
    header[24..32].copy_from_slice(&position.0.to_le_bytes());
    header[32..40].copy_from_slice(&floor.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..40]);
    header[40..].copy_from_slice(&checksum.to_le_bytes());
    header
}

fn block_checksum(kind: u32, bytes: &[u8]) -> u32 {
    let head = [kind.to_le_bytes(), (bytes.len() as u32).to_le_bytes()].concat();
    crc32c::crc32c_append(crc32c::crc32c(&head), bytes)
}

fn write_block(out: &mut impl Write, kind: u32, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&(bytes.len() as u32).to_le_bytes())?;
    out.write_all(&block_checksum(kind, bytes).to_le_bytes())?;
    out.write_all(bytes)
}

/// What the header of a backup says.
struct Header {
    ids: IdKind,
    position: Position,
    floor: Timestamp,
}

/// A backup being read.
struct Reader<'a> {
    input: BufReader<File>,
    path: &'a Path,
    /// The block that was read but belongs to a later kind.
    held: Option<(u32, Vec<u8>)>,
    edges: u64,
    ended: bool,
}

impl Reader<'_> {
    fn damaged(&self) -> Error {
        Error::Corrupt {
            detail: format!(
                "the backup {} is damaged or cut short; nothing was restored",
                self.path.display()
            ),
        }
    }

    fn header(&mut self) -> Result<Header> {
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
        if half(8) != VERSION {
            let detail = format!(
                "{} has backup version {}, this Kinfolk reads {VERSION}",
                self.path.display(),
                half(8)
            );
            return Err(Error::InvalidInput { detail });
        }
        let ids = if half(12) == 1 { IdKind::Integer } else { IdKind::Uuid };
        Ok(Header { ids, position: Position(word(24)), floor: Timestamp::from_millis(word(32)) })
    }

    /// The next block of a kind, or `None` where another kind or the end comes.
    fn block(&mut self, kind: EdgeKind) -> Result<Option<Vec<u8>>> {
        if self.ended {
            return Ok(None);
        }
        let (found, bytes) = match self.held.take() {
            Some(held) => held,
            None => self.read_block()?,
        };
        if found == u32::from(kind.number()) {
            return Ok(Some(bytes));
        }
        self.held = Some((found, bytes));
        Ok(None)
    }

    fn read_block(&mut self) -> Result<(u32, Vec<u8>)> {
        let mut head = [0; 12];
        self.input.read_exact(&mut head).map_err(|_| self.damaged())?;
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|offset| head[at + offset]));
        let (kind, length, checksum) = (half(0), half(4), half(8));
        if length as usize > BLOCK_BYTES * 2 {
            return Err(self.damaged());
        }
        let mut bytes = vec![0; length as usize];
        self.input.read_exact(&mut bytes).map_err(|_| self.damaged())?;
        if block_checksum(kind, &bytes) == checksum { Ok((kind, bytes)) } else { Err(self.damaged()) }
    }

    /// Requires that the end comes now and that nothing was left out.
    fn end(&mut self) -> Result<()> {
        let (kind, bytes) = match self.held.take() {
            Some(held) => held,
            None => self.read_block()?,
        };
        self.ended = true;
        let nothing_after = matches!(self.input.read(&mut [0]), Ok(0));
        if kind == 0 && bytes == self.edges.to_le_bytes() && nothing_after {
            Ok(())
        } else {
            Err(self.damaged())
        }
    }
}

/// The edges of one kind in a backup, in order.
struct KindEdges<'a, 'b, K> {
    reader: &'a mut Reader<'b>,
    kind: EdgeKind,
    block: Block,
    before: PairRecord<K>,
}

impl<K: RawId> Iterator for KindEdges<'_, '_, K> {
    type Item = Result<PairRecord<K>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.block.is_read() {
            match self.reader.block(self.kind) {
                Err(error) => return Some(Err(error)),
                Ok(None) => return None,
                Ok(Some(bytes)) => self.block = Block::new(bytes),
            }
            self.before = PairRecord::default();
        }
        let Some(record) = PairRecord::decode(self.before, &mut self.block) else {
            return Some(Err(self.reader.damaged()));
        };
        self.before = record;
        self.reader.edges += 1;
        Some(Ok(record))
    }
}

/// Reads a backup to its end without restoring it: every checksum must be right.
pub fn inspect(path: &Path) -> Result<BackupReport> {
    let file = File::open(path).during("opening", path)?;
    let bytes = file.metadata().during("reading", path)?.len();
    let input = BufReader::with_capacity(1 << 20, file);
    let mut reader = Reader { input, path, held: None, edges: 0, ended: false };
    let position = reader.header()?.position;
    let count = loop {
        let (kind, records) = reader.read_block()?;
        if kind == 0 {
            break records;
        }
    };
    let count = count.try_into().map_err(|_| reader.damaged())?;
    Ok(BackupReport { edges: u64::from_le_bytes(count), position, bytes })
}

/// Makes a store from a backup in a folder that is missing or empty. The folder becomes a store with the last step.
pub fn restore(
    path: &Path,
    folder: &Path,
    settings: &Settings,
    progress: &dyn Fn(Progress),
) -> Result<BackupReport> {
    let file = File::open(path).during("opening", path)?;
    let bytes = file.metadata().during("reading", path)?.len();
    let input = BufReader::with_capacity(1 << 20, file);
    let mut reader = Reader { input, path, held: None, edges: 0, ended: false };
    let Header { ids, position, floor } = reader.header()?;
    if folder.join("restoring").exists() && !format::exists(folder) {
        // A restore into this folder was stopped half-way.
        empty(folder);
    }
    format::require_vacant(folder)?;
    let _lock = format::lock(folder)?;
    let restored = match ids {
        IdKind::Integer => restore_edges::<u64>(&mut reader, folder, (position, floor), settings, progress),
        IdKind::Uuid => restore_edges::<u128>(&mut reader, folder, (position, floor), settings, progress),
    };
    restored.inspect_err(|_| empty(folder))?;
    Ok(BackupReport { edges: reader.edges, position, bytes })
}

/// Removes what an unsuccessful restore has left, so that it can be tried again.
fn empty(folder: &Path) {
    for part in ["rows", "restoring"] {
        let _ = std::fs::remove_dir_all(folder.join(part));
    }
    let _ = files::remove_file(&folder.join("index.snapshot"));
}

fn restore_edges<K: RawId>(
    reader: &mut Reader<'_>,
    folder: &Path,
    (position, floor): (Position, Timestamp),
    settings: &Settings,
    progress: &dyn Fn(Progress),
) -> Result<()> {
    let rows = Rows::open(&folder.join("rows"), K::KIND, settings.cache_bytes)?;
    let index = Index::new(K::KIND);
    let scratch = folder.join("restoring");
    files::create_folder(&scratch)?;
    for kind in EdgeKind::ALL {
        let target = Target {
            rows: &rows,
            index: &index,
            scratch: &scratch,
            sort_memory: settings.sort_memory,
            position,
            kind,
            trees: [true; 3],
            indexed: true,
        };
        let edges = KindEdges::<K> { reader, kind, block: Block::default(), before: PairRecord::default() };
        load::load(&target, edges, None, progress)?;
    }
    reader.end()?;
    std::fs::remove_dir_all(&scratch).during("removing", &scratch)?;
    let epoch = Epoch(u64::from_le_bytes(format::random()?));
    index::save(&index, folder, epoch, position)?;
    Checkpoint { rows: position, floor }.write(folder)?;
    format::write_identity(folder, Identity { ids: K::KIND, epoch, base: position, has_posts: false })
}
