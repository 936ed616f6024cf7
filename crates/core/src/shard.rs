//! The shard of a user: one function for every profile and every process. It never changes.

use std::num::NonZeroU16;

use xxhash_rust::xxh3::xxh3_64;

use crate::{Id, Shard};

impl Shard {
    /// The shard of a user: XXH3 (64 bits, no seed) of the 8 or 16 big-endian bytes of the id, modulo the number of shards.
    /// Rows are stored by this result; a different result would lose them.
    pub fn of(id: Id, shards: NonZeroU16) -> Self {
        let hash = match id {
            Id::Integer(value) => xxh3_64(&value.to_be_bytes()),
            Id::Uuid(value) => xxh3_64(&value.to_be_bytes()),
        };
        Self((hash % u64::from(shards.get())) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards_of(id: Id) -> [u16; 4] {
        [1, 4, 256, 512].map(|count| Shard::of(id, NonZeroU16::new(count).unwrap()).0)
    }

    /// Computed with another implementation of XXH3.
    #[test]
    fn test_vectors() {
        let vectors = [
            (Id::Integer(0), [0, 1, 217, 217]),
            (Id::Integer(1), [0, 3, 243, 499]),
            (Id::Integer(2), [0, 0, 28, 284]),
            (Id::Integer(42), [0, 0, 172, 172]),
            (Id::Integer(0x100000000), [0, 0, 36, 36]),
            (Id::Integer(0x7fffffffffffffff), [0, 1, 145, 401]),
            (Id::Uuid(0), [0, 0, 104, 360]),
            (Id::Uuid(1), [0, 3, 187, 443]),
            (Id::Uuid(0x190a1b2c3d47e5f8a9b0c1d2e3f4a5b), [0, 3, 123, 123]),
            (Id::Uuid(0xffffffffffffffffffffffffffffffff), [0, 3, 19, 275]),
        ];
        for (id, expected) in vectors {
            assert_eq!(shards_of(id), expected, "{id}");
        }
    }

    #[test]
    fn users_spread_evenly() {
        let count = NonZeroU16::new(256).unwrap();
        let mut users = [0_u32; 256];
        for id in 0..256_000 {
            users[usize::from(Shard::of(Id::Integer(id), count).0)] += 1;
        }
        let (least, most) = (users.iter().min().unwrap(), users.iter().max().unwrap());
        assert!(*least > 850 && *most < 1_150, "{least} to {most} of 1,000 expected");
    }
}
