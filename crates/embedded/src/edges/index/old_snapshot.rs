//! Snapshots of versions 1 and 2, which earlier releases wrote. They are only read.
//!
//! ```text
//! head, as in later versions
//! for each kind: its lists: number u32 | length u32 | followees u32… , ended by 0xffffffff,
//!                then its ids, big-endian, by number
//! for each kind: where its lists start u64 | where its ids start u64 | where they end u64
//! crc32c u32 of all before
//! ```
//!
//! Version 1 has the first six kinds, version 2 seven: a kind that a snapshot does not have had no edges then.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::mpsc::{SyncSender, sync_channel};

use super::graph::{KindGraph, SHARDS, set_count_of};
use super::snapshot::invalid;
use super::table::User;
use super::{Index, KindIndex};
use crate::disk::id_encoding::IdEncoding;

/// How many kinds a snapshot of each version has.
pub(super) const KINDS_OF_VERSION: [(u32, usize); 2] = [(1, 6), (2, 7)];
const BUFFER_BYTES: usize = 1 << 20;

/// Reads and checksums the lists of a kind. Its ids stand behind them in the file but are needed first.
pub(crate) struct ListSource<'a> {
    lists: &'a mut BufReader<File>,
    ids: Vec<u8>,
    checksum: u32,
    scratch: Vec<u8>,
}

impl ListSource<'_> {
    /// One number.
    fn number(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.lists.read_exact(&mut bytes)?;
        self.checksum = crc32c::crc32c_append(self.checksum, &bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    /// A list of numbers, which its length precedes.
    fn numbers(&mut self) -> io::Result<Vec<u32>> {
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

/// Reads the lists of so many kinds into an index.
pub(super) fn read(file: File, head: &[u8], kinds: usize, index: &mut Index) -> io::Result<()> {
    let length = file.metadata()?.len();
    let mut input = BufReader::with_capacity(BUFFER_BYTES, file);
    let offsets_len = kinds * 24;
    let offsets_at = length.checked_sub(offsets_len as u64 + 4).ok_or_else(|| invalid("too short"))?;
    input.seek(SeekFrom::Start(offsets_at))?;
    let mut tail = vec![0; offsets_len + 4];
    input.read_exact(&mut tail)?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| tail[at + byte]));

    let mut checksum = crc32c::crc32c(head);
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
    Ok(())
}

/// Reads one kind; returns the checksum that now covers it too.
fn read_kind(
    input: &mut BufReader<File>,
    graph: &mut dyn KindIndex,
    (lists, ids, end): (u64, u64, u64),
    checksum: u32,
) -> io::Result<u32> {
    input.seek(SeekFrom::Start(ids))?;
    let mut id_bytes = Vec::new();
    input.by_ref().take(end - ids).read_to_end(&mut id_bytes)?;
    input.seek(SeekFrom::Start(lists))?;
    let mut source = ListSource { lists: input, ids: id_bytes, checksum, scratch: Vec::new() };
    graph.load_lists(&mut source)?;
    let checksum = crc32c::crc32c_append(source.checksum, &source.ids);
    if input.stream_position()? == ids { Ok(checksum) } else { Err(io::ErrorKind::InvalidData.into()) }
}

impl<K: IdEncoding> KindGraph<K> {
    pub(super) fn load_lists_from(&mut self, input: &mut ListSource<'_>) -> io::Result<()> {
        let ids: Vec<K> = input.ids.chunks_exact(K::LEN).filter_map(K::from_bytes).collect();
        self.load_users(&ids);
        let mut followers = vec![0u32; ids.len()];
        let mut edges = 0;
        std::thread::scope(|scope| {
            // One thread reads, checks and decodes; the other puts the lists where they belong.
            let (send, lists) = sync_channel(LISTS_AHEAD);
            let reader = scope.spawn(move || read_lists(input, &send));
            for (number, following) in lists.into_iter().flatten() {
                let id = *ids.get(number as usize).ok_or_else(unknown_number)?;
                for &target in &following {
                    *followers.get_mut(target as usize).ok_or_else(unknown_number)? += 1;
                }
                edges += following.len() as u64;
                self.with_user(id, |user| user.following = following.into_boxed_slice());
            }
            reader.join().unwrap_or_else(|_| Err(io::Error::other("the reading thread has died")))
        })?;
        let mut sets = 0;
        for shard in &self.shards {
            for user in shard.0.write().users_mut() {
                user.followers = followers[user.number as usize];
                sets += set_count_of(user);
            }
        }
        *self.sets.get_mut() = sets;
        *self.ids.get_mut() = ids;
        *self.edges.get_mut() = edges;
        Ok(())
    }

    /// Gives the users of a snapshot their places, on two threads: each takes every other shard.
    fn load_users(&self, ids: &[K]) {
        let shard_of = |id: K| self.shard_and_hash(id).0;
        let load_half = |half: usize| {
            let mut shard_sizes = vec![0; SHARDS];
            ids.iter().for_each(|&id| shard_sizes[shard_of(id)] += 1);
            for (shard, users) in self.shards.iter().zip(shard_sizes).skip(half).step_by(2) {
                shard.0.write().reserve(users, self.slot_hash());
            }
            for (number, &id) in (0..).zip(ids) {
                if shard_of(id) % 2 == half {
                    let user = User { id, number, followers: 0, following: Box::default() };
                    self.locate(id).0.write().insert(user, self.slot_hash());
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| load_half(0));
            load_half(1);
        });
    }
}

/// How many groups of lists may wait between the thread that reads them and the one that takes them.
const LISTS_AHEAD: usize = 4;
/// How many lists are handed over at a time.
const LISTS_IN_A_GROUP: usize = 1_024;

/// A user's number and the numbers of its followees.
type NumberedList = (u32, Vec<u32>);

fn read_lists(input: &mut ListSource<'_>, lists: &SyncSender<Vec<NumberedList>>) -> io::Result<()> {
    let mut group = Vec::with_capacity(LISTS_IN_A_GROUP);
    loop {
        let number = input.number()?;
        if number != u32::MAX {
            group.push((number, input.numbers()?));
        }
        if number == u32::MAX || group.len() == LISTS_IN_A_GROUP {
            // Nobody takes them any more where one of them was wrong: that is reported there.
            if lists.send(std::mem::replace(&mut group, Vec::with_capacity(LISTS_IN_A_GROUP))).is_err()
                || number == u32::MAX
            {
                return Ok(());
            }
        }
    }
}

pub(super) fn unknown_number() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a list names a user that is not in the snapshot")
}
