//! Following sets in a file: saved from the shards, and put into a cache that is empty, so that the shards need not be asked for all of
//! them at once.
//!
//! Each set has the position that it was read at, and is stored only where the watermark has not passed it. Where there is no watermark
//! yet, it begins at the position of the shard from before its first set was read; the feed brings the changes since.
//!
//! ```text
//! "kinfolk sets" and four zero bytes (16) | version (8) | deployment (8) | epoch (8)
//! records: length (4), XXH3-64 (8), then so many bytes:
//!     1 | shard (2) | position (8)                                   what follows was read after this
//!     2 | kind (1) | position (8) | follower | followees             a set
//!     3                                                              the end
//! ```
//!
//! Numbers are big-endian, ids 8 or 16 bytes as the deployment's id kind has them.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinfolk_core::bulk::Progress;
use kinfolk_core::{EdgeKind, Error, Id, IdKind, Result, Sequence, Shard};
use tokio_postgres::types::ToSql;
use xxhash_rust::xxh3::xxh3_64;

use super::feed::BEHIND_MAX;
use super::fills::{FillGroup, FillOutcome, ReadSet, read_sets, store};
use crate::Fleet;
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::log::LogReader;
use crate::postgres::{Failure, IdValue, Query, id_min};

const MAGIC: &[u8; 16] = b"kinfolk sets\0\0\0\0";
const VERSION: u64 = 1;

/// Users whose counts are read at once, and sets that are read or stored at once.
const USERS: i64 = 5_000;
const SETS: usize = 32;

/// The longest record: a set of UUIDs, and its names.
const RECORD_MAX: usize = 1 << 20;

/// How long sets whose node does not answer are sent again: connections are only being opened at first, and a busy node is left out
/// for a moment. The time starts anew when that helps; when it is used up, every set is sent once.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(250);

/// What became of the sets of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warmed {
    /// Sets that are in the cache now.
    pub stored: u64,
    /// Sets that were there already.
    pub present: u64,
    /// Sets that are older than what the cache or the log has.
    pub stale: u64,
    /// Sets whose node did not answer.
    pub failed: u64,
}

impl Fleet {
    /// Writes the following sets of all users to a file. Returns how many.
    pub fn save_sets(&self, out: &mut (dyn Write + Send), progress: &dyn Fn(Progress)) -> Result<u64> {
        let topology = self.shared.topology();
        put(out, MAGIC)?;
        for number in [VERSION, topology.identity as u64, topology.epoch.0] {
            put(out, &number.to_be_bytes())?;
        }
        let (total, mut saved) = (topology.shards().len() as u64, 0);
        for (done, shard) in topology.shards().enumerate() {
            progress(Progress { stage: "shards", done: done as u64, total: Some(total) });
            saved += self.save_shard(out, &topology, shard)?;
        }
        record(out, &[3])?;
        out.flush().map_err(|error| Error::Storage { detail: error.to_string() })?;
        progress(Progress { stage: "shards", done: total, total: Some(total) });
        Ok(saved)
    }

    fn save_shard(
        &self,
        out: &mut (dyn Write + Send),
        topology: &Arc<Topology>,
        shard: Shard,
    ) -> Result<u64> {
        let runtime = self.handle();
        let span = {
            let log = LogReader { shared: &self.shared, topology };
            runtime.block_on(log.spans_on(topology.host_of(shard))).map_err(Failure::into_error)?
        };
        let newest =
            span.iter().find(|(of, _)| *of == shard).map_or(Sequence::START, |(_, span)| span.newest());
        record(out, &[&[1], &shard.0.to_be_bytes()[..], &newest.0.to_be_bytes()].concat())?;
        let (mut after, mut saved) = ((0_i16, IdValue(id_min(topology.id_kind))), 0);
        loop {
            let users = runtime.block_on(users_after(&self.shared, topology, shard, after));
            let users = users.map_err(Failure::into_error)?;
            for group in
                users.chunk_by(|one, other| one.kind == other.kind).flat_map(|users| users.chunks(SETS))
            {
                let followers: Vec<Id> =
                    group.iter().filter(|user| user.following > 0).map(|user| user.id).collect();
                if followers.is_empty() {
                    continue;
                }
                let group = FillGroup { kind: group[0].kind, host: topology.host_of(shard), followers };
                let sets = runtime.block_on(read_sets(&self.shared, topology, &group));
                for set in sets.map_err(Failure::into_error)? {
                    record(out, &encode(group.kind, &set))?;
                    saved += 1;
                }
            }
            let Some(last) = users.last().filter(|_| users.len() as i64 == USERS) else { return Ok(saved) };
            after = (last.kind.number().into(), IdValue(last.id));
        }
    }

    /// Puts the sets of a file into the cache.
    pub fn warm(&self, input: &mut (dyn Read + Send), progress: &dyn Fn(Progress)) -> Result<Warmed> {
        if self.shared.cache.is_none() {
            return Err(Error::InvalidInput { detail: "there is no cache: set redis.nodes".to_owned() });
        }
        let topology = self.shared.topology();
        require_fitting(input, &topology)?;
        let mut warming = Warming {
            fleet: self,
            topology,
            from: None,
            group: Vec::new(),
            warmed: Warmed::default(),
            waited: Duration::ZERO,
        };
        let mut read = 0;
        loop {
            let bytes = read_record(input)?;
            let (&kind, rest) = bytes.split_first().ok_or_else(damaged)?;
            match kind {
                1 => warming.begin(rest)?,
                2 => warming.add(rest)?,
                3 => break,
                _ => return Err(damaged()),
            }
            read += 1;
            if read % 10_000 == 0 {
                progress(Progress { stage: "sets", done: read, total: None });
            }
        }
        warming.flush();
        Ok(warming.warmed)
    }
}

/// A file that is being read.
struct Warming<'a> {
    fleet: &'a Fleet,
    topology: Arc<Topology>,
    /// Where the watermarks of the shard begin; none if its log has been trimmed since.
    from: Option<Sequence>,
    group: Vec<(EdgeKind, ReadSet)>,
    warmed: Warmed,
    /// How long failed sets were sent again without success.
    waited: Duration,
}

impl Warming<'_> {
    fn begin(&mut self, bytes: &[u8]) -> Result<()> {
        self.flush();
        let (shard, position) = bytes.split_at_checked(2).ok_or_else(damaged)?;
        let shard = Shard(u16::from_be_bytes(shard.try_into().map_err(|_| damaged())?));
        let position = Sequence(u64::from_be_bytes(position.try_into().map_err(|_| damaged())?));
        self.topology.assignment(shard).ok_or_else(damaged)?;
        let log = LogReader { shared: &self.fleet.shared, topology: &self.topology };
        let spans = self.fleet.handle().block_on(log.spans_on(self.topology.host_of(shard)));
        let spans = spans.map_err(Failure::into_error)?;
        // One that is too far behind would be given up by the feed.
        let is_kept = spans.iter().any(|(of, span)| {
            let behind = span.newest().0.saturating_sub(position.0);
            *of == shard && span.trimmed() <= position && behind <= BEHIND_MAX
        });
        self.from = is_kept.then_some(position);
        Ok(())
    }

    fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let set = decode(bytes, self.topology.id_kind).ok_or_else(damaged)?;
        match self.from {
            None => self.warmed.stale += 1,
            Some(_) => self.group.push(set),
        }
        if self.group.len() >= SETS {
            self.flush();
        }
        Ok(())
    }

    /// Stores what has gathered.
    fn flush(&mut self) {
        let (Some(from), Some(cache)) = (self.from, &self.fleet.shared.cache) else { return };
        let group = std::mem::take(&mut self.group);
        for sets in group.chunk_by(|one, other| one.0 == other.0) {
            let (kind, mut sets): (EdgeKind, Vec<&ReadSet>) =
                (sets[0].0, sets.iter().map(|(_, set)| set).collect());
            let mut is_again = false;
            loop {
                let began = Instant::now();
                let stored = store(cache, &self.topology, kind, &sets, Some(from));
                let outcomes = self.fleet.handle().block_on(stored);
                let failed = self.count(&outcomes);
                if is_again && failed.len() < sets.len() {
                    self.waited = Duration::ZERO;
                }
                sets.retain(|set| failed.contains(&set.follower));
                if sets.is_empty() || self.waited >= PATIENCE {
                    self.warmed.failed += sets.len() as u64;
                    break;
                }
                std::thread::sleep(PAUSE);
                self.waited += began.elapsed();
                is_again = true;
            }
        }
    }

    /// Counts the sets that need no further try; returns the users of the others.
    fn count(&mut self, outcomes: &[(Id, FillOutcome)]) -> HashSet<Id> {
        let mut failed = HashSet::new();
        for &(follower, outcome) in outcomes {
            match outcome {
                FillOutcome::Stored => self.warmed.stored += 1,
                FillOutcome::Present => self.warmed.present += 1,
                FillOutcome::Stale | FillOutcome::TooLarge => self.warmed.stale += 1,
                FillOutcome::Failed | FillOutcome::Dropped => {
                    failed.insert(follower);
                }
            }
        }
        failed
    }
}

/// A user and how many it follows.
struct UserCount {
    kind: EdgeKind,
    id: Id,
    following: i64,
}

async fn users_after(
    shared: &Shared,
    topology: &Topology,
    shard: Shard,
    after: (i16, IdValue),
) -> std::result::Result<Vec<UserCount>, Failure> {
    let number = shard.0 as i16;
    let parameters: [&(dyn ToSql + Sync); 4] = [&number, &after.0, &after.1, &USERS];
    let host = &topology.hosts[topology.host_of(shard)];
    let rows = host.query_durable(&shared.statements, Query::UserCounts, &parameters).await?;
    let user = |row: &tokio_postgres::Row| {
        let kind = u8::try_from(row.get::<_, i16>(0)).ok().and_then(EdgeKind::from_number)?;
        Some(UserCount { kind, id: row.get::<_, IdValue>(1).0, following: row.get(2) })
    };
    Ok(rows.iter().filter_map(user).collect())
}

fn encode(kind: EdgeKind, set: &ReadSet) -> Vec<u8> {
    let mut bytes = vec![2, kind.number()];
    bytes.extend(set.position.0.to_be_bytes());
    set.follower.push_to(&mut bytes);
    set.members.iter().for_each(|member| member.push_to(&mut bytes));
    bytes
}

fn decode(bytes: &[u8], id_kind: IdKind) -> Option<(EdgeKind, ReadSet)> {
    let (&kind, rest) = bytes.split_first()?;
    let (position, ids) = rest.split_first_chunk::<8>()?;
    let length = id_kind.id_len();
    if ids.is_empty() || ids.len() % length != 0 {
        return None;
    }
    let mut ids = ids.chunks_exact(length).map(|id| id_kind.read(id));
    let (follower, position) = (ids.next()??, Sequence(u64::from_be_bytes(*position)));
    Some((EdgeKind::from_number(kind)?, ReadSet { follower, position, members: ids.collect::<Option<_>>()? }))
}

fn record(out: &mut (dyn Write + Send), bytes: &[u8]) -> Result<()> {
    put(out, &(bytes.len() as u32).to_be_bytes())?;
    put(out, &xxh3_64(bytes).to_be_bytes())?;
    put(out, bytes)
}

fn put(out: &mut (dyn Write + Send), bytes: &[u8]) -> Result<()> {
    out.write_all(bytes).map_err(|error| Error::Storage { detail: error.to_string() })
}

/// Refuses a file of another deployment or epoch.
fn require_fitting(input: &mut (dyn Read + Send), topology: &Topology) -> Result<()> {
    let mut header = [0; 40];
    input.read_exact(&mut header).map_err(|_| damaged())?;
    let (magic, numbers) = header.split_at(16);
    let mut numbers =
        numbers.chunks_exact(8).map(|number| u64::from_be_bytes(number.try_into().expect("8 bytes")));
    if magic != MAGIC || numbers.next() != Some(VERSION) {
        return Err(Error::InvalidInput {
            detail: "the file holds no following sets of this version".to_owned(),
        });
    }
    if numbers.next() != Some(topology.identity as u64) || numbers.next() != Some(topology.epoch.0) {
        let detail =
            "the file is from another fleet, or from before a restore: save the sets again".to_owned();
        return Err(Error::InvalidInput { detail });
    }
    Ok(())
}

fn read_record(input: &mut (dyn Read + Send)) -> Result<Vec<u8>> {
    let mut head = [0; 12];
    input.read_exact(&mut head).map_err(|_| damaged())?;
    let (length, checksum) = head.split_at(4);
    let length = u32::from_be_bytes(length.try_into().map_err(|_| damaged())?) as usize;
    if length > RECORD_MAX {
        return Err(damaged());
    }
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes).map_err(|_| damaged())?;
    if xxh3_64(&bytes).to_be_bytes() != checksum {
        return Err(damaged());
    }
    Ok(bytes)
}

fn damaged() -> Error {
    Error::InvalidInput {
        detail: "the file of following sets is damaged or cut off: save the sets again".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_read_as_it_was_written() {
        for (kind, id) in
            [(IdKind::Integer, Id::Integer as fn(u64) -> Id), (IdKind::Uuid, |id| Id::Uuid(id.into()))]
        {
            let members = vec![id(5), id(6)];
            let set = ReadSet { follower: id(4), position: Sequence(9), members: members.clone() };
            let bytes = encode(EdgeKind::Mute, &set);
            let (read_kind, read) = decode(&bytes[1..], kind).unwrap();
            assert_eq!((read_kind, read.follower, read.position), (EdgeKind::Mute, id(4), Sequence(9)));
            assert_eq!(read.members, members);
            assert!(decode(&bytes[1..bytes.len() - 1], kind).is_none());
        }
    }

    #[test]
    fn damage_is_reported() {
        let mut file = Vec::new();
        record(&mut file, &[2, 3, 4]).unwrap();
        assert_eq!(read_record(&mut &file[..]).unwrap(), [2, 3, 4]);
        for at in 0..file.len() {
            let mut flipped = file.clone();
            flipped[at] ^= 4;
            assert!(read_record(&mut &flipped[..]).is_err(), "byte {at}");
            assert!(read_record(&mut &file[..at]).is_err(), "{at} bytes");
        }
    }
}
