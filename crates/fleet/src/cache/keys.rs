//! The keys of the cache: their names, and the tags that say which of them share a slot.

use kinfolk_core::{EdgeKind, Epoch, Id, Shard};
use xxhash_rust::xxh3::xxh3_64;

use crate::catalog::Topology;

/// A shard has so many tags, so that its sets are spread over nodes.
pub(super) const PARTS: u8 = 8;

/// The keys of a part of a shard, all in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Part {
    pub(super) shard: Shard,
    pub(super) number: u8,
}

impl Part {
    /// The part of a follower.
    pub(super) fn of(topology: &Topology, follower: Id) -> Self {
        let hash = match follower {
            Id::Integer(value) => xxh3_64(&value.to_be_bytes()),
            Id::Uuid(value) => xxh3_64(&value.to_be_bytes()),
        };
        // The highest bits: the lowest decide the shard.
        Self { shard: topology.shard_of(follower), number: (hash >> 61) as u8 }
    }

    /// All parts of a shard.
    pub(super) fn all(shard: Shard) -> impl Iterator<Item = Self> {
        (0..PARTS).map(move |number| Self { shard, number })
    }
}

/// The names of keys in one deployment and epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    identity: i64,
    epoch: Epoch,
}

impl Keys {
    pub(super) fn of(topology: &Topology) -> Self {
        Self { identity: topology.identity, epoch: topology.epoch }
    }

    pub(super) fn tag(&self, part: Part) -> String {
        format!("{:x}.{:x}.{}.{}", self.identity, self.epoch.0, part.shard.0, part.number)
    }
}

pub(super) fn watermark(tag: &str) -> String {
    format!("{{{tag}}}:watermark")
}

pub(super) fn mark(tag: &str, kind: EdgeKind, follower: Id) -> String {
    format!("{{{tag}}}:mark:{}:{follower}", kind.number())
}

pub(super) fn set(tag: &str, kind: EdgeKind, follower: Id) -> String {
    format!("{{{tag}}}:set:{}:{follower}", kind.number())
}

/// A user as the member of a set. Integers stay integers, so that Redis keeps a set of them as one sorted array.
pub(super) fn member(id: Id) -> Vec<u8> {
    match id {
        Id::Integer(value) => value.to_string().into_bytes(),
        Id::Uuid(value) => value.to_be_bytes().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_part_share_its_tag() {
        let keys = Keys { identity: 0x1f, epoch: Epoch(255) };
        let tag = keys.tag(Part { shard: Shard(7), number: 3 });
        let user = Id::Integer(42);
        assert_eq!(watermark(&tag), "{1f.ff.7.3}:watermark");
        assert_eq!(mark(&tag, EdgeKind::Follow, user), "{1f.ff.7.3}:mark:1:42");
        assert_eq!(set(&tag, EdgeKind::Follow, user), "{1f.ff.7.3}:set:1:42");
        assert_eq!((member(user), member(Id::Uuid(1)).len()), (b"42".to_vec(), 16));
    }
}
