//! The bytes of rows: how keys and values are laid out. The layout is documented with the trees.

use kinfolk_core::graph::{Edge, ListKey};
use kinfolk_core::{EdgeKind, Id, IdKind, Timestamp};

use super::Tree;
use crate::raw;
use crate::recent;

const TIME_MASK: u64 = (1 << 48) - 1;

/// How long the keys of a tree are.
pub fn key_len(tree: Tree, ids: IdKind) -> usize {
    let time_len = if tree == Tree::Pairs { 0 } else { 6 };
    1 + 2 * raw::id_len(ids) + time_len
}

/// The key of a row and its length.
pub fn row_key(tree: Tree, kind: EdgeKind, edge: Edge, since: Timestamp) -> (recent::Key, usize) {
    let mut key = [0; 40];
    key[0] = kind.number();
    let (owner, other) = match tree {
        Tree::Pairs | Tree::Following => (edge.follower, edge.followee),
        Tree::Followers => (edge.followee, edge.follower),
    };
    let mut at = 1;
    let mut push = |bytes: &[u8]| {
        key[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    match owner {
        Id::Integer(value) => push(&value.to_be_bytes()),
        Id::Uuid(value) => push(&value.to_be_bytes()),
    }
    if tree != Tree::Pairs {
        push(&(!since.millis() & TIME_MASK).to_be_bytes()[2..]);
    }
    match if tree == Tree::Pairs { other } else { complement(other) } {
        Id::Integer(value) => push(&value.to_be_bytes()),
        Id::Uuid(value) => push(&value.to_be_bytes()),
    }
    (key, at)
}

pub fn push_list_key(key: &mut Vec<u8>, at: ListKey) {
    key.extend_from_slice(&(!at.since.millis() & TIME_MASK).to_be_bytes()[2..]);
    raw::push_id(key, complement(at.id));
}

pub fn complement(id: Id) -> Id {
    match id {
        Id::Integer(value) => Id::Integer(!value),
        Id::Uuid(value) => Id::Uuid(!value),
    }
}

pub fn read_list_key(ids: IdKind, bytes: &[u8]) -> Option<ListKey> {
    let (since, id) = bytes.split_at_checked(6)?;
    let since = Timestamp::from_millis(!read_time(since)? & TIME_MASK);
    Some(ListKey { since, id: complement(raw::read_id(ids, id)?) })
}

pub fn read_time(bytes: &[u8]) -> Option<u64> {
    let bytes: [u8; 6] = bytes.try_into().ok()?;
    let mut word = [0; 8];
    word[2..].copy_from_slice(&bytes);
    Some(u64::from_be_bytes(word))
}

pub fn since_value(since: Timestamp) -> [u8; 6] {
    let [_, _, value @ ..] = since.millis().to_be_bytes();
    value
}

pub fn decode_since(value: &[u8]) -> Option<Timestamp> {
    read_time(value).map(Timestamp::from_millis)
}

pub fn decode_row(tree: Tree, ids: IdKind, key: &[u8], value: &[u8]) -> Option<(Edge, Timestamp)> {
    let (owner, rest) = key.get(1..)?.split_at_checked(raw::id_len(ids))?;
    let owner = raw::read_id(ids, owner)?;
    match tree {
        Tree::Pairs => {
            let followee = raw::read_id(ids, rest)?;
            Some((Edge { follower: owner, followee }, decode_since(value)?))
        }
        Tree::Following => {
            let at = read_list_key(ids, rest)?;
            Some((Edge { follower: owner, followee: at.id }, at.since))
        }
        Tree::Followers => {
            let at = read_list_key(ids, rest)?;
            Some((Edge { follower: at.id, followee: owner }, at.since))
        }
    }
}

/// The smallest key after all keys with this prefix. The first byte is a kind, so it never overflows.
pub fn increment(prefix: &mut [u8]) {
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

    #[test]
    fn rows_decode_to_the_edge_they_came_from() {
        let edge = Edge { follower: Id::Integer(1), followee: Id::Integer(i64::MAX as u64) };
        let since = Timestamp::MAX;
        for tree in Tree::ALL {
            let (key, len) = row_key(tree, EdgeKind::Share, edge, since);
            assert_eq!(len, key_len(tree, IdKind::Integer));
            let key = &key[..len];
            let value = since_value(since);
            assert_eq!(decode_row(tree, IdKind::Integer, key, &value), Some((edge, since)), "{tree:?}");
            assert_eq!(decode_row(tree, IdKind::Uuid, key, &value), None);
        }
    }

    /// The layout is a promise to every store on disk.
    #[test]
    fn the_layout_is_as_documented() {
        let edge = Edge { follower: Id::Integer(0x0102), followee: Id::Integer(0x0304) };
        let since = Timestamp::from_millis(0x0a0b);
        let (key, len) = row_key(Tree::Pairs, EdgeKind::Follow, edge, since);
        assert_eq!(key[..len], [1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4]);
        let (key, len) = row_key(Tree::Followers, EdgeKind::Follow, edge, since);
        let expected = [
            1, 0, 0, 0, 0, 0, 0, 3, 4, 255, 255, 255, 255, 0xf5, 0xf4, 255, 255, 255, 255, 255, 255, 0xfe,
            0xfd,
        ];
        assert_eq!(key[..len], expected);
    }
}
