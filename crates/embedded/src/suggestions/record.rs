//! What is stored for a user, as bytes.
//!
//! ```text
//! version u8 = 1 | computed at u48 | number of users in `via`, each once: their ids
//! then for each suggestion, the best first:
//!     id | mutual count | score in steps of 2^-32 | neighbours on both sides | how many in `via` | their places in the list above
//! ```
//!
//! Ids and the time are big-endian; all other numbers have seven bits a byte, the lowest first. The Jaccard share is the mutual
//! count divided by the neighbours. The tree that holds records checks them for damage.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use kinfolk_core::suggestions::{Score, StoredSuggestions, Suggestion};
use kinfolk_core::{Id, IdKind, Timestamp, varint};

use crate::disk::byte_reader::ByteReader;
use crate::lsm::{decode_since, since_value};

const VERSION: u8 = 1;

/// The bytes of what is stored for a user.
pub(crate) fn encode(computed_at: Timestamp, items: &[Suggestion]) -> Vec<u8> {
    let mut places: HashMap<Id, u64, RandomState> =
        HashMap::with_capacity_and_hasher(64, RandomState::default());
    let mut between = Vec::with_capacity(64);
    for &id in items.iter().flat_map(|item| &item.via) {
        places.entry(id).or_insert_with(|| {
            between.push(id);
            between.len() as u64 - 1
        });
    }
    let mut bytes = Vec::with_capacity(64 + items.len() * 32);
    bytes.push(VERSION);
    bytes.extend_from_slice(&since_value(computed_at));
    varint::push(&mut bytes, between.len() as u64);
    between.iter().for_each(|&id| id.push_to(&mut bytes));
    for item in items {
        item.id.push_to(&mut bytes);
        varint::push(&mut bytes, u64::from(item.mutual_count));
        varint::push(&mut bytes, item.score.0);
        varint::push(&mut bytes, (f64::from(item.mutual_count) / item.jaccard + 0.5) as u64);
        varint::push(&mut bytes, item.via.len() as u64);
        item.via.iter().for_each(|id| varint::push(&mut bytes, places[id]));
    }
    bytes
}

/// What the bytes say; `None` if this is not a record.
pub(crate) fn decode(ids: IdKind, bytes: &[u8]) -> Option<StoredSuggestions> {
    let mut input = ByteReader { ids, bytes };
    (input.take()? == [VERSION]).then_some(())?;
    let computed_at = decode_since(&input.take::<6>()?)?;
    let between = (0..varint::read(&mut input.bytes)?).map(|_| input.id()).collect::<Option<Vec<Id>>>()?;
    let mut items = Vec::new();
    while !input.bytes.is_empty() {
        let id = input.id()?;
        let mutual_count = u32::try_from(varint::read(&mut input.bytes)?).ok()?;
        let score = Score(varint::read(&mut input.bytes)?);
        let jaccard = f64::from(mutual_count) / varint::read(&mut input.bytes)?.max(1) as f64;
        let place = |place: u64| between.get(usize::try_from(place).ok()?).copied();
        let via = (0..varint::read(&mut input.bytes)?)
            .map(|_| place(varint::read(&mut input.bytes)?))
            .collect::<Option<Vec<Id>>>()?;
        items.push(Suggestion { id, mutual_count, score, jaccard, via });
    }
    Some(StoredSuggestions { computed_at, items })
}

#[cfg(test)]
mod tests {
    use kinfolk_core::suggestions::{jaccard, weight};

    use super::*;

    fn items(id: impl Fn(u64) -> Id) -> Vec<Suggestion> {
        let item = |number: u64| Suggestion {
            id: id(number),
            mutual_count: number as u32 * 300,
            score: Score(weight(7).0 * number),
            jaccard: jaccard(number * 300, 10_000, 200_000_000),
            via: (0..number.min(3)).map(|other| id(other * 1_000 + 5)).collect(),
        };
        vec![item(4), item(3), item(1), Suggestion { jaccard: 1.0, ..item(2) }]
    }

    #[test]
    fn round_trip_for_both_id_kinds() {
        let at = Timestamp::from_millis(1_790_000_000_123);
        for (ids, items) in [
            (IdKind::Integer, items(|id| Id::Integer(u64::MAX / 2 - id))),
            (IdKind::Uuid, items(|id| Id::Uuid(u128::MAX - u128::from(id)))),
        ] {
            let bytes = encode(at, &items);
            assert_eq!(decode(ids, &bytes), Some(StoredSuggestions { computed_at: at, items }));
            for cut in 0..bytes.len() {
                // Cut between two suggestions it is a shorter record; anywhere else it is none. Never a panic.
                let shorter = decode(ids, &bytes[..cut]);
                assert!(shorter.is_none_or(|shorter| shorter.items.len() < 4));
            }
        }
        assert_eq!(decode(IdKind::Integer, &[2]), None);
    }
}
