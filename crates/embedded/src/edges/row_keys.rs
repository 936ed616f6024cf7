//! The bytes of rows: how keys and values are laid out. The layout is documented with the trees.

use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Id, IdKind, Timestamp};

use super::memtable;
use super::rows::Tree;
use crate::lsm::{TIME_MASK, complement, decode_since, read_list_key};

/// How long the keys of a tree are.
pub(crate) fn key_len(tree: Tree, ids: IdKind) -> usize {
    let time_len = if tree == Tree::Pairs { 0 } else { 6 };
    1 + 2 * ids.id_len() + time_len
}

/// The key of a row and its length.
pub(crate) fn row_key(tree: Tree, kind: EdgeKind, edge: Edge, since: Timestamp) -> (memtable::Key, usize) {
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

pub(crate) fn decode_row(tree: Tree, ids: IdKind, key: &[u8], value: &[u8]) -> Option<(Edge, Timestamp)> {
    let (owner, rest) = key.get(1..)?.split_at_checked(ids.id_len())?;
    let owner = ids.read(owner)?;
    match tree {
        Tree::Pairs => {
            let followee = ids.read(rest)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lsm::since_value;

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
