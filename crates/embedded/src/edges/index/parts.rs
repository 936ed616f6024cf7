//! The users of one kind in a snapshot, in parts that are read side by side.
//!
//! ```text
//! a user: id, big-endian | number u32 | length u32 | followees u32…
//! ```
//!
//! A part has the users of a few shards of the index, in the order of their places, so that reading them fills one place after the
//! other. The last part has those that no other part has: they came while the others were written, and lists may name them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use parking_lot::RwLock;

use super::graph::{KindGraph, SHARDS, set_count_of};
use super::old_snapshot::unknown_number;
use super::snapshot::invalid;
use super::table::{Table, User};
use crate::disk::checksummed::ChecksumWriter;
use crate::disk::id_encoding::IdEncoding;
use crate::runtime::signal;

/// How many threads read parts. Each counts followers in a table of four bytes a user.
const LOADERS_MAX: usize = 8;
/// How many parts there are.
pub(super) const PARTS: usize = 33;
/// How many shards are in each but the last.
const SHARDS_IN_A_PART: usize = SHARDS / (PARTS - 1);
/// How much is read at a time.
const READ_BYTES: usize = 1 << 20;

/// What a start must know of a kind to read it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SavedKind {
    /// The seed that users had their places by.
    pub seed: u64,
    /// How many numbers were given out.
    pub users: u32,
    /// The size of each part.
    pub parts: Vec<PartSize>,
}

/// How large a part is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartSize {
    pub bytes: u64,
    pub users: u32,
}

impl SavedKind {
    /// How many bytes it takes on disk.
    pub(super) const LEN: usize = 8 + 4 + PARTS * 12;

    /// `seed u64 | users u32`, and for each part `bytes u64 | users u32`.
    pub(super) fn push_to(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.seed.to_le_bytes());
        bytes.extend_from_slice(&self.users.to_le_bytes());
        for PartSize { bytes: len, users } in &self.parts {
            bytes.extend_from_slice(&len.to_le_bytes());
            bytes.extend_from_slice(&users.to_le_bytes());
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (seed, rest) = bytes.split_first_chunk()?;
        let (users, rest) = rest.split_first_chunk()?;
        let size = |part: &[u8]| {
            let (bytes, rest) = part.split_first_chunk()?;
            let users = rest.first_chunk()?;
            Some(PartSize { bytes: u64::from_le_bytes(*bytes), users: u32::from_le_bytes(*users) })
        };
        let parts = rest.chunks_exact(12).map(size).collect::<Option<Vec<_>>>()?;
        Some(Self { seed: u64::from_le_bytes(*seed), users: u32::from_le_bytes(*users), parts })
    }

    /// Whether its parts have room for its users: what is damaged must not take more memory than what is sound.
    pub(super) fn is_plausible(&self) -> bool {
        /// No user takes fewer bytes.
        const USER_LEN_MIN: u64 = 16;
        let fits = |users: u32, bytes: u64| u64::from(users) * USER_LEN_MIN <= bytes;
        fits(self.users, self.bytes()) && self.parts.iter().all(|part| fits(part.users, part.bytes))
    }

    /// How many bytes all parts have.
    pub(super) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).fold(0, u64::saturating_add)
    }
}

impl<K: IdEncoding> KindGraph<K> {
    /// Part by part. The numbers come last: a list that was written before never names one that is not counted.
    pub(super) fn save_parts(&self, out: &mut ChecksumWriter) -> io::Result<SavedKind> {
        let mut saved = SavedKind { seed: self.seed, ..SavedKind::default() };
        let mut seen = Seen::default();
        let mut bytes = Vec::new();
        for shards in self.shards.chunks(SHARDS_IN_A_PART) {
            let mut size = PartSize::default();
            for shard in shards {
                size.users += copy_users(&shard.0, &mut bytes, &mut seen);
                size.bytes += bytes.len() as u64;
                out.bytes(&bytes)?;
            }
            saved.parts.push(size);
        }
        // Copied, so that the writer does not wait for the disk.
        let ids = self.copied_ids();
        bytes.clear();
        let mut size = PartSize::default();
        for (number, &id) in (0..).zip(&ids).filter(|&(number, _)| !seen.has(number)) {
            push_user(id, number, &[], &mut bytes);
            size.users += 1;
        }
        size.bytes = bytes.len() as u64;
        out.bytes(&bytes)?;
        saved.parts.push(size);
        saved.users = ids.len() as u32;
        Ok(saved)
    }

    /// Reads all parts; returns the checksum of each.
    pub(super) fn load_parts(&mut self, saved: &SavedKind, source: &PartSource<'_>) -> io::Result<Vec<u32>> {
        self.set_seed(saved.seed);
        let threads =
            if saved.bytes() == 0 { 1 } else { thread::available_parallelism()?.get().min(LOADERS_MAX) };
        let next = AtomicUsize::new(0);
        let work = || self.load_some(saved, source, &next);
        let loaded = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = others.into_iter().map(|other| other.join().unwrap_or_else(|_| Err(died())));
            std::iter::once(own).chain(others).collect::<io::Result<Vec<_>>>()
        })?;
        let mut checksums = vec![0; PARTS];
        let mut followers = Vec::new();
        for one in loaded {
            one.checksums.into_iter().for_each(|(part, checksum)| checksums[part] = checksum);
            *self.edges.get_mut() += one.edges;
            if followers.is_empty() {
                followers = one.followers;
            } else {
                followers.iter_mut().zip(one.followers).for_each(|(sum, count)| *sum += count);
            }
        }
        let ids = self.ids.get_mut();
        ids.resize(saved.users as usize, K::default());
        let (mut users, mut sets) = (0, 0);
        for shard in &mut self.shards {
            for user in shard.0.get_mut().users_mut() {
                user.followers = followers[user.number as usize];
                ids[user.number as usize] = user.id;
                users += 1;
                sets += set_count_of(user);
            }
        }
        *self.sets.get_mut() = sets;
        if users != saved.users {
            return Err(invalid("it lacks a user"));
        }
        Ok(checksums)
    }

    /// Reads one part after the other that nobody else reads.
    fn load_some(
        &self,
        saved: &SavedKind,
        source: &PartSource<'_>,
        next: &AtomicUsize,
    ) -> io::Result<Loaded> {
        let mut loaded = Loaded::new(saved.users);
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            let Some(size) = saved.parts.get(part) else { return Ok(loaded) };
            let start = source.start + saved.parts[..part].iter().map(|before| before.bytes).sum::<u64>();
            let mut reader = PartReader::new(source.file, start, size.bytes);
            let shards = part * SHARDS_IN_A_PART..((part + 1) * SHARDS_IN_A_PART).min(SHARDS);
            let places = places_for(size.users as usize / SHARDS_IN_A_PART);
            self.shards[shards].iter().for_each(|shard| shard.0.write().reserve(places, self.slot_hash()));
            for _ in 0..size.users {
                let user = loaded.read_user::<K>(&mut reader)?;
                self.locate(user.id).0.write().insert(user, self.slot_hash());
            }
            if !reader.is_at_end() {
                return Err(invalid("a part is too long"));
            }
            loaded.checksums.push((part, reader.checksum));
        }
    }
}

/// Where the parts of a kind are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartSource<'a> {
    pub file: &'a File,
    pub start: u64,
}

/// What one thread has loaded, besides users.
struct Loaded {
    /// How often each number is in a list.
    followers: Vec<u32>,
    edges: u64,
    /// The checksums of parts.
    checksums: Vec<(usize, u32)>,
}

impl Loaded {
    fn new(users: u32) -> Self {
        Self { followers: vec![0; users as usize], edges: 0, checksums: Vec::new() }
    }

    fn read_user<K: IdEncoding>(&mut self, reader: &mut PartReader<'_>) -> io::Result<User<K>> {
        let id = K::from_bytes(reader.take(K::LEN)?).ok_or_else(|| invalid("an id is too short"))?;
        let number = reader.number()?;
        let length = reader.number()? as usize;
        let following: Box<[u32]> = reader.take(length * 4)?.chunks_exact(4).map(to_number).collect();
        if number as usize >= self.followers.len() {
            return Err(unknown_number());
        }
        for &followee in &following {
            *self.followers.get_mut(followee as usize).ok_or_else(unknown_number)? += 1;
        }
        self.edges += length as u64;
        Ok(User { id, number, followers: 0, following })
    }
}

fn to_number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Reads and checksums a part.
struct PartReader<'a> {
    file: &'a File,
    /// What is not read yet.
    at: u64,
    left: u64,
    buffer: Vec<u8>,
    /// How much of the buffer was taken.
    taken: usize,
    checksum: u32,
}

impl<'a> PartReader<'a> {
    fn new(file: &'a File, at: u64, left: u64) -> Self {
        Self { file, at, left, buffer: Vec::new(), taken: 0, checksum: 0 }
    }

    /// The next bytes, so many of them.
    fn take(&mut self, count: usize) -> io::Result<&[u8]> {
        if self.buffer.len() - self.taken < count {
            self.fill(count)?;
        }
        let from = self.taken;
        self.taken += count;
        Ok(&self.buffer[from..self.taken])
    }

    fn number(&mut self) -> io::Result<u32> {
        self.take(4).map(to_number)
    }

    /// Reads on, until the buffer has so many bytes that were not taken.
    fn fill(&mut self, count: usize) -> io::Result<()> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let kept = self.buffer.len();
        let more = (READ_BYTES.max(count - kept) as u64).min(self.left);
        if ((kept as u64) + more) < count as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.buffer.resize(kept + more as usize, 0);
        self.file.read_exact_at(&mut self.buffer[kept..], self.at)?;
        self.checksum = crc32c::crc32c_append(self.checksum, &self.buffer[kept..]);
        self.at += more;
        self.left -= more;
        Ok(())
    }

    fn is_at_end(&self) -> bool {
        self.left == 0 && self.taken == self.buffer.len()
    }
}

/// How many places a shard needs that has about so many users, a few more than most.
fn places_for(users: usize) -> usize {
    users + 5 * users.isqrt() + 8
}

fn died() -> io::Error {
    io::Error::other("the reading thread has died")
}

/// Which numbers were written.
#[derive(Default)]
struct Seen(Vec<u64>);

impl Seen {
    fn add(&mut self, number: u32) {
        let word = number as usize / 64;
        if word >= self.0.len() {
            self.0.resize((word + 1).max(self.0.len() * 2), 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    fn has(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
    }
}

fn push_user<K: IdEncoding>(id: K, number: u32, following: &[u32], bytes: &mut Vec<u8>) {
    id.push_to(bytes);
    bytes.extend_from_slice(&number.to_le_bytes());
    bytes.extend_from_slice(&(following.len() as u32).to_le_bytes());
    bytes.extend(following.iter().flat_map(|number| number.to_le_bytes()));
}

/// Copies the users of a shard as they are written to a snapshot; returns how many. In turns of about a tenth of a millisecond, with
/// pauses: a writer, and readers behind it, may wait for the lock, and neither the disk nor a low priority may make them wait long.
fn copy_users<K: IdEncoding>(shard: &RwLock<Table<K>>, bytes: &mut Vec<u8>, seen: &mut Seen) -> u32 {
    const SLOTS_IN_A_TURN: usize = 1 << 10;
    const BYTES_IN_A_TURN: usize = 256 << 10;
    bytes.clear();
    let mut users = 0;
    let (mut at, mut slots) = (0, shard.read().slots().len());
    while at < slots {
        signal::pause_between_locks();
        let table = shard.read();
        if table.slots().len() != slots {
            // It has grown, and users have moved.
            bytes.clear();
            (users, at, slots) = (0, 0, table.slots().len());
        }
        let full = bytes.len() + BYTES_IN_A_TURN;
        let end = slots.min(at + SLOTS_IN_A_TURN);
        while at < end && bytes.len() < full {
            if let Some(user) = &table.slots()[at] {
                push_user(user.id, user.number, &user.following, bytes);
                seen.add(user.number);
                users += 1;
            }
            at += 1;
        }
    }
    users
}
