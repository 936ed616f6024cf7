//! Filters in files, so that a process that starts again need not read every edge of its shards.
//!
//! A file may be old, cut off or damaged: then there is no filter, and a new one is made. Numbers are little-endian.
//!
//! ```text
//! "kinfolk filter" and two zero bytes (16) | version (8) | deployment (8) | epoch (8) | shard (8)
//! made, in milliseconds since 1970 (8) | capacity (8) | edges (8) | removed (8) | position (8) | words (8)
//! the bits, in words (8 each) | XXH3-64 of everything before (8)
//! ```

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kinfolk_core::{Epoch, Sequence, Shard};
use xxhash_rust::xxh3::xxh3_64;

use super::filter::{Filter, FilterParts};
use crate::catalog::Topology;
use crate::fleet::Shared;

const MAGIC: &[u8; 16] = b"kinfolk filter\0\0";
const VERSION: u64 = 1;
/// Numbers before the bits.
const NUMBERS: usize = 10;

/// Whose filter it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FilterName {
    identity: i64,
    epoch: Epoch,
    shard: Shard,
}

fn name(topology: &Topology, shard: Shard) -> FilterName {
    FilterName { identity: topology.identity, epoch: topology.epoch, shard }
}

fn path(folder: &Path, topology: &Topology, shard: Shard) -> PathBuf {
    folder.join(format!("filter-{:x}-{}", topology.identity, shard.0))
}

/// The filter of a shard as it was saved, if it was in this epoch.
pub(super) fn load(folder: &Path, topology: &Topology, shard: Shard) -> Option<Filter> {
    tokio::task::block_in_place(|| {
        let bytes = fs::read(path(folder, topology, shard)).ok()?;
        let filter = decode(&bytes, name(topology, shard));
        if filter.is_none() {
            tracing::warn!(
                shard = shard.0,
                "a saved filter is damaged or of another epoch, and is made anew"
            );
        }
        filter
    })
}

/// Saves a filter. Failure means only that the next start has to read the edges.
pub(super) fn save(folder: &Path, topology: &Topology, shard: Shard, filter: &Filter) {
    let write = || write(&path(folder, topology, shard), &encode(filter, name(topology, shard)));
    // Where the caller is no task, nothing has to be moved out of its way.
    let saved = match tokio::runtime::Handle::try_current() {
        Ok(_) => tokio::task::block_in_place(write),
        Err(_) => write(),
    };
    if let Err(error) = saved {
        tracing::warn!(shard = shard.0, %error, folder = %folder.display(), "a filter could not be saved");
    }
}

/// Saves all filters.
pub(super) fn save_all(shared: &Shared, folder: &Path) {
    let topology = shared.topology();
    for shard in topology.shards() {
        if let Some(filter) = shared.filters.get(topology.epoch, shard) {
            save(folder, &topology, shard, &filter);
        }
    }
}

/// Removes the file of a filter that was wrong.
pub(super) fn remove(folder: &Path, topology: &Topology, shard: Shard) {
    // It may never have been saved.
    _ = fs::remove_file(path(folder, topology, shard));
}

/// Whole or not at all. It is not synced: what is lost is made again.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // Processes in containers often have the same number.
    let staged = path.with_extension(format!("{:016x}.new", getrandom::u64().unwrap_or_default()));
    let written = fs::File::create(&staged)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| fs::rename(&staged, path));
    written.inspect_err(|_| _ = fs::remove_file(&staged))
}

fn encode(filter: &Filter, name: FilterName) -> Vec<u8> {
    let FilterParts { position, capacity, edges, removed, age, bits } = filter.parts();
    let made = SystemTime::now().checked_sub(age).unwrap_or(UNIX_EPOCH);
    let made = made.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let numbers: [u64; NUMBERS] = [
        VERSION,
        name.identity as u64,
        name.epoch.0,
        name.shard.0.into(),
        made,
        capacity,
        edges,
        removed,
        position.0,
        bits.len() as u64,
    ];
    let mut bytes = MAGIC.to_vec();
    bytes.extend(numbers.iter().chain(&bits).flat_map(|number| number.to_le_bytes()));
    let checksum = xxh3_64(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8], name: FilterName) -> Option<Filter> {
    let (rest, checksum) = bytes.split_last_chunk::<8>()?;
    let numbers = rest.strip_prefix(MAGIC)?;
    if xxh3_64(rest) != u64::from_le_bytes(*checksum) || numbers.len() % 8 != 0 {
        return None;
    }
    let mut numbers =
        numbers.chunks_exact(8).map(|number| u64::from_le_bytes(number.try_into().expect("8 bytes")));
    let of_file: [u64; 4] = [numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?];
    if of_file != [VERSION, name.identity as u64, name.epoch.0, name.shard.0.into()] {
        return None;
    }
    let made = UNIX_EPOCH + Duration::from_millis(numbers.next()?);
    let age = SystemTime::now().duration_since(made).unwrap_or_default();
    let (capacity, edges, removed) = (numbers.next()?, numbers.next()?, numbers.next()?);
    let (position, words) = (Sequence(numbers.next()?), numbers.next()?);
    let bits: Vec<u64> = numbers.collect();
    (bits.len() as u64 == words && !bits.is_empty())
        .then(|| Filter::of_parts(FilterParts { position, capacity, edges, removed, age, bits }))
}

/// When a filter of some age was made, as far as this process can say.
pub(super) fn made_before(age: Duration) -> Instant {
    Instant::now().checked_sub(age).unwrap_or_else(Instant::now)
}

#[cfg(test)]
mod tests {
    use kinfolk_core::graph::Edge;
    use kinfolk_core::{EdgeKind, Id};

    use super::*;

    const NAME: FilterName = FilterName { identity: -5, epoch: Epoch(9), shard: Shard(3) };

    fn edge(number: u64) -> Edge {
        Edge { follower: Id::Integer(number), followee: Id::Integer(number + 1) }
    }

    fn filter() -> Filter {
        let filter = Filter::new(100, Sequence(17));
        (0..100).for_each(|number| filter.insert(EdgeKind::Follow, edge(number)));
        filter
    }

    #[test]
    fn a_filter_is_what_was_saved() {
        let read = decode(&encode(&filter(), NAME), NAME).unwrap();
        assert_eq!(read.position(), Sequence(17));
        assert!((0..100).all(|number| read.may_have(EdgeKind::Follow, edge(number))));
        let through = (1_000..2_000).filter(|&number| read.may_have(EdgeKind::Follow, edge(number))).count();
        assert!(through < 50, "{through} of 1,000 edges that do not exist are let through");
        assert_eq!(read.parts().bits, filter().parts().bits);
    }

    #[test]
    fn damage_and_other_filters_are_refused() {
        let bytes = encode(&filter(), NAME);
        for other in [
            FilterName { identity: 5, ..NAME },
            FilterName { epoch: Epoch(10), ..NAME },
            FilterName { shard: Shard(4), ..NAME },
        ] {
            assert!(decode(&bytes, other).is_none(), "{other:?}");
        }
        for length in (0..bytes.len()).step_by(7) {
            assert!(decode(&bytes[..length], NAME).is_none(), "{length} bytes");
        }
        for at in (0..bytes.len()).step_by(13) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(decode(&flipped, NAME).is_none(), "byte {at}");
        }
    }

    /// Which bits an edge sets is part of the layout: a library that places them otherwise needs another version.
    #[test]
    fn the_bits_of_edges_stay_where_they_are() {
        let filter = Filter::of_parts(FilterParts { bits: vec![0; 4], ..filter().parts() });
        (0..4).for_each(|number| filter.insert(EdgeKind::Follow, edge(number)));
        let expected: [u64; 4] =
            [36_029_346_913_229_440, 2_310_347_785_662_103_552, 9_071_109_341_696, 6_792_787_315_916_800];
        assert_eq!(filter.parts().bits, expected);
    }

    /// Version 1 stays readable: such files are in folders.
    #[test]
    fn the_layout_stays_as_it_is() {
        let parts = FilterParts {
            position: Sequence(4),
            capacity: 1,
            edges: 2,
            removed: 3,
            age: Duration::ZERO,
            bits: vec![6, 7],
        };
        let bytes = encode(&Filter::of_parts(parts), NAME);
        let numbers: Vec<u64> =
            bytes[16..].chunks(8).map(|number| u64::from_le_bytes(number.try_into().unwrap())).collect();
        assert_eq!(&bytes[..16], b"kinfolk filter\0\0");
        assert_eq!(&numbers[..4], [1, -5_i64 as u64, 9, 3]);
        assert_eq!(&numbers[5..12], [1, 2, 3, 4, 2, 6, 7]);
    }
}
