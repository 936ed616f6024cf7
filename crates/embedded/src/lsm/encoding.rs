//! How times and keys of lists are encoded in keys and values, in every tree alike: big-endian, a time in 48 bits. In keys, the bitwise
//! complement turns the order around: the newest comes first.

use kinfolk_core::graph::ListKey;
use kinfolk_core::{Id, IdKind, Timestamp};

/// The bits of a time.
pub(crate) const TIME_MASK: u64 = (1 << 48) - 1;

pub(crate) fn push_list_key(key: &mut Vec<u8>, at: ListKey) {
    key.extend_from_slice(&(!at.since.millis() & TIME_MASK).to_be_bytes()[2..]);
    complement(at.id).push_to(key);
}

pub(crate) fn complement(id: Id) -> Id {
    match id {
        Id::Integer(value) => Id::Integer(!value),
        Id::Uuid(value) => Id::Uuid(!value),
    }
}

pub(crate) fn read_list_key(ids: IdKind, bytes: &[u8]) -> Option<ListKey> {
    let (since, id) = bytes.split_at_checked(6)?;
    let since = Timestamp::from_millis(!read_time(since)? & TIME_MASK);
    Some(ListKey { since, id: complement(ids.read(id)?) })
}

pub(crate) fn read_time(bytes: &[u8]) -> Option<u64> {
    let bytes: [u8; 6] = bytes.try_into().ok()?;
    let mut word = [0; 8];
    word[2..].copy_from_slice(&bytes);
    Some(u64::from_be_bytes(word))
}

pub(crate) fn since_value(since: Timestamp) -> [u8; 6] {
    let [_, _, value @ ..] = since.millis().to_be_bytes();
    value
}

pub(crate) fn decode_since(value: &[u8]) -> Option<Timestamp> {
    read_time(value).map(Timestamp::from_millis)
}

/// The smallest key after all keys with this prefix. The first byte is a kind, so it never overflows.
pub(crate) fn increment(prefix: &mut [u8]) {
    for byte in prefix.iter_mut().rev() {
        let (next, overflowed) = byte.overflowing_add(1);
        *byte = next;
        if !overflowed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_lists_do_and_decode() {
        for of in [Id::Integer as fn(u64) -> Id, |value| Id::Uuid(u128::from(value) << 64)] {
            let keys: Vec<ListKey> = [(9, 1), (9, 0), (5, 7), (0, u64::MAX >> 1), (0, 3)]
                .map(|(since, id)| ListKey { since: Timestamp::from_millis(since), id: of(id) })
                .to_vec();
            let encoded: Vec<Vec<u8>> = keys
                .iter()
                .map(|&key| {
                    let mut bytes = Vec::new();
                    push_list_key(&mut bytes, key);
                    bytes
                })
                .collect();
            assert!(encoded.is_sorted(), "{encoded:?}");
            for (key, bytes) in keys.iter().zip(&encoded) {
                assert_eq!(read_list_key(key.id.kind(), bytes), Some(*key));
            }
        }
    }
}
