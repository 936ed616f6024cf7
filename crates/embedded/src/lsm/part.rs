//! Reading a tree in parts, for background work that must come to its end: what can't be read is passed over.

use std::ops::Bound;

use kinfolk_core::Error;
use lsm_tree::{AbstractTree, AnyTree, Guard, SeqNo, Table, UserKey, UserValue};

use super::{POSITION_KEY, tree_error};

/// After so many failures in a row the rest of a file counts as damaged: one whose index can't be read fails for ever.
const FAILURES_MAX: usize = 64;

/// Some rows of a tree.
#[derive(Debug, Default)]
pub(crate) struct Part {
    pub rows: Vec<(UserKey, UserValue)>,
    /// From where to read on; `None` at the end.
    pub next: Option<Vec<u8>>,
    /// Why rows between these and the next ones were passed over, if they were.
    pub unreadable: Option<Error>,
}

/// Where the first row of every tree may be: behind the position.
pub(crate) fn first_key() -> Vec<u8> {
    successor(&POSITION_KEY)
}

/// The key after another.
fn successor(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// Up to `limit` rows from a key on. A block that can't be read ends the part, which then goes on behind it.
pub(crate) fn read_part(tree: &AnyTree, from: &[u8], limit: usize) -> Part {
    let mut part = Part::default();
    let range = (Bound::Included(from), Bound::Unbounded);
    for row in tree.range::<&[u8], _>(range, SeqNo::MAX, None).take(limit) {
        match row.into_inner() {
            Ok(row) => part.rows.push(row),
            Err(error) => {
                part.unreadable = Some(tree_error(error));
                let read = part.rows.last().map_or_else(|| from.to_vec(), |(key, _)| successor(key));
                part.next = behind_damage(tree, &read, limit);
                return part;
            }
        }
    }
    part.next = part.rows.last().filter(|_| part.rows.len() == limit).map(|(key, _)| successor(key));
    part
}

/// Where to go on behind a block that can't be read: a merge of files ends with it, but each file by itself can be read on.
/// `None` if no file has a row behind it, or all can be read by now.
fn behind_damage(tree: &AnyTree, from: &[u8], limit: usize) -> Option<Vec<u8>> {
    let version = tree.current_version();
    // The damage is not far, unless there are very many rows in between that were removed or replaced.
    let mut rows_max = limit + 1;
    loop {
        let seen: Vec<Seen> = version.iter_tables().map(|table| look(table, from, rows_max)).collect();
        let behind = seen.iter().filter_map(|seen| match seen {
            Seen::Damage { next } => Some(next.clone()),
            Seen::Whole | Seen::More => None,
        });
        match behind.min() {
            // Never back, and never the same place again.
            Some(next) => return Some(next.max(successor(from))),
            None if seen.iter().all(|seen| matches!(seen, Seen::Whole)) => return None,
            None => rows_max *= 8,
        }
    }
}

/// What was seen of a file.
enum Seen {
    /// Something can't be read; the first row behind it is here or later.
    Damage { next: Vec<u8> },
    /// Everything can be read.
    Whole,
    /// There is more than was looked at.
    More,
}

fn look(table: &Table, from: &[u8], rows_max: usize) -> Seen {
    let last = table.metadata.key_range.max();
    if last.as_ref() < from {
        return Seen::Whole;
    }
    let mut failures = 0;
    for (number, row) in (1..).zip(table.range((Bound::Included(UserKey::from(from)), Bound::Unbounded))) {
        match row {
            Ok(row) if failures > 0 => return Seen::Damage { next: row.key.user_key.to_vec() },
            Ok(_) if number >= rows_max => return Seen::More,
            Ok(_) => {}
            Err(_) => failures += 1,
        }
        if failures == FAILURES_MAX {
            break;
        }
    }
    if failures > 0 { Seen::Damage { next: successor(last) } } else { Seen::Whole }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use lsm_tree::SequenceNumberCounter;
    use lsm_tree::config::PinningPolicy;

    use super::*;
    use crate::lsm::Shared;

    /// A file whose index can't be read fails again at every step. It is passed over as a whole, and reading goes on behind it.
    #[test]
    fn a_file_without_an_index_is_passed_over() {
        const INDEX_BLOCK: &[u8] = b"LSM\x03\x01";
        const BLOCK_HEADER_LEN: usize = 33;
        const ROWS: u32 = 5_000;
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let [sequence, visible] = [SequenceNumberCounter::default(), SequenceNumberCounter::default()];
            let config = Shared::new(1 << 20, kinfolk_core::Sequence::START, &std::sync::Arc::default())
                .tree(folder.path(), &sequence, &visible);
            // As on the lower levels, to which a merge may move a file as it is: the index is read when it is needed.
            config.index_block_pinning_policy(PinningPolicy::all(false)).open().unwrap()
        };
        let tree = open();
        (1..=ROWS).for_each(|row| {
            let _ = tree.insert(row.to_be_bytes(), b"value", 0);
        });
        tree.flush_active_memtable(0).unwrap();
        drop(tree);
        let file = fs::read_dir(folder.path().join("tables")).unwrap().next().unwrap().unwrap().path();
        let mut bytes = fs::read(&file).unwrap();
        let index = bytes.windows(INDEX_BLOCK.len()).rposition(|window| window == INDEX_BLOCK).unwrap();
        bytes[index + BLOCK_HEADER_LEN] ^= 1;
        fs::write(file, bytes).unwrap();

        let tree = open();
        tree.insert((ROWS + 7).to_be_bytes(), b"value", 1);
        let (sender, parts) = channel();
        std::thread::spawn(move || {
            let first = read_part(&tree, &first_key(), 100);
            let next = first.next.as_ref().map(|next| read_part(&tree, next, 100));
            sender.send((first, next)).unwrap();
        });
        let (first, next) = parts.recv_timeout(Duration::from_secs(60)).expect("reading ends");
        assert!(first.rows.is_empty() && first.unreadable.is_some(), "{first:?}");
        let next = next.expect("there is more behind the file");
        assert_eq!(
            next.rows.iter().map(|(key, _)| key.to_vec()).collect::<Vec<_>>(),
            [(ROWS + 7).to_be_bytes()]
        );
    }
}
