//! One user's inbox: the newest posts that were pushed to it, as packed keys, and from where on it is complete.
//!
//! A key is the time (48 bits) and the id of a post, big-endian, so that bytes sort as posts do: 14 bytes with integer ids, 22
//! with UUIDs. Keys ascend: the newest is the last.

use kinfolk_core::IdKind;
use kinfolk_core::feeds::PostKey;

use crate::lsm::{decode_since, since_value};

const TIME_LEN: usize = 6;

/// A packed key.
pub(crate) type Key = Vec<u8>;

/// How long a packed key is.
pub(crate) fn key_len(ids: IdKind) -> usize {
    TIME_LEN + ids.id_len()
}

/// Packs a key.
pub(crate) fn pack(key: PostKey) -> Key {
    let mut bytes = Vec::with_capacity(22);
    bytes.extend_from_slice(&since_value(key.since));
    key.id.push_to(&mut bytes);
    bytes
}

/// What a packed key says; `None` if it is none.
pub(crate) fn unpack(ids: IdKind, bytes: &[u8]) -> Option<PostKey> {
    let (time, id) = bytes.split_at_checked(TIME_LEN)?;
    Some(PostKey { since: decode_since(time)?, id: ids.read(id)? })
}

/// An inbox.
///
/// Invariant: of all followees, every live post that is delivered by push, and that is at least as new as
/// `complete_from`, is in it, or is still to be delivered. Other keys may be in it too; readers look at posts anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inbox {
    /// Packed keys, one after another, ascending.
    keys: Vec<u8>,
    /// It is complete from this key on; without it, from the beginning of time.
    complete_from: Option<Key>,
    /// It is being filled for the first time, by the holder of this ticket, and complete from nowhere on.
    filling: Option<u64>,
    /// When its user has last read, in milliseconds.
    pub seen_at: u64,
}

/// What an inbox can hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    /// How long a key is.
    pub key_len: usize,
    /// How many keys are kept.
    pub entries: usize,
}

impl Inbox {
    /// An inbox that takes what is pushed from now on, and waits for what was posted before.
    pub(crate) fn filling(seen_at: u64, ticket: u64) -> Self {
        Self { keys: Vec::new(), complete_from: None, filling: Some(ticket), seen_at }
    }

    /// An inbox as it was stored.
    pub(crate) fn stored(keys: Vec<u8>, complete_from: Option<Key>, seen_at: u64) -> Self {
        Self { keys, complete_from, filling: None, seen_at }
    }

    /// Whether it still waits for what was posted before.
    pub(crate) fn is_filling(&self) -> bool {
        self.filling.is_some()
    }

    /// Starts a new fill: an earlier one may have missed something.
    pub(crate) fn hand_over(&mut self, ticket: u64) {
        self.filling = Some(ticket);
    }

    /// The keys, ascending.
    pub(crate) fn keys(&self) -> &[u8] {
        &self.keys
    }

    /// From where on it is complete.
    pub(crate) fn complete_from(&self) -> Option<&[u8]> {
        self.complete_from.as_deref()
    }

    /// Whether a key is in it.
    pub(crate) fn has(&self, key: &[u8], key_len: usize) -> bool {
        self.find(key, key_len).is_ok()
    }

    /// Whether its keys ascend, each once, from where it is complete on, and are not too many.
    pub(crate) fn is_in_order(&self, Capacity { key_len, entries }: Capacity) -> bool {
        let (keys, rest) = (self.keys.chunks_exact(key_len), self.keys.len() % key_len);
        let reached =
            self.complete_from.as_deref().is_none_or(|from| self.keys.is_empty() || &self.keys[..] >= from);
        rest == 0 && keys.len() <= entries && reached && keys.is_sorted_by(|one, next| one < next)
    }

    /// How many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.keys.capacity()
    }

    /// Puts a key in, unless it is there or older than the inbox reaches; returns whether it did.
    pub(crate) fn insert(&mut self, key: &[u8], capacity: Capacity) -> bool {
        if self.complete_from.as_deref().is_some_and(|from| key < from) {
            return false;
        }
        let Err(at) = self.find(key, capacity.key_len) else { return false };
        // Never more room than a full inbox needs.
        let room = (capacity.entries + 1) * capacity.key_len;
        if self.keys.len() == self.keys.capacity() {
            let more = self.keys.len().max(4 * capacity.key_len);
            self.keys.reserve_exact(more.min(room.saturating_sub(self.keys.len())));
        }
        self.keys.splice(at..at, key.iter().copied());
        self.trim(capacity);
        true
    }

    /// Takes a key out; returns whether it was there.
    pub(crate) fn remove(&mut self, key: &[u8], key_len: usize) -> bool {
        let Ok(at) = self.find(key, key_len) else { return false };
        self.keys.drain(at..at + key_len);
        true
    }

    /// Adds what an author has posted. Where it is not all, `from` is the key from which it is.
    pub(crate) fn bring_in(&mut self, newest: &[Key], from: Option<&[u8]>, capacity: Capacity) {
        if let Some(from) = from {
            self.forget_before(from, capacity.key_len);
        }
        for key in newest {
            self.insert(key, capacity);
        }
    }

    /// Ends the filling with the newest posts of all followees, if it is the ticket's turn.
    pub(crate) fn fill(&mut self, ticket: u64, newest: &[Key], from: Option<&[u8]>, capacity: Capacity) {
        if self.filling == Some(ticket) {
            self.filling = None;
            self.bring_in(newest, from, capacity);
        }
    }

    /// Is complete only from a key on from now on.
    fn forget_before(&mut self, key: &[u8], key_len: usize) {
        if self.complete_from.as_deref().is_none_or(|from| from < key) {
            self.complete_from = Some(key.to_vec());
            let (Ok(end) | Err(end)) = self.find(key, key_len);
            self.keys.drain(..end);
        }
    }

    /// Drops the oldest keys that are too many.
    pub(crate) fn trim(&mut self, capacity: Capacity) {
        let Capacity { key_len, entries } = capacity;
        // What is pushed while it is filled is bounded too: what is dropped then is older than all that is kept.
        if self.keys.len() > entries * key_len {
            let excess = self.keys.len() - entries * key_len;
            let oldest_kept = self.keys[excess..excess + key_len].to_vec();
            self.forget_before(&oldest_kept, key_len);
        }
    }

    /// Where a key is, or would be, in bytes.
    fn find(&self, key: &[u8], key_len: usize) -> Result<usize, usize> {
        // Mostly it is newer than all.
        if self.keys.len() < key_len || &self.keys[self.keys.len() - key_len..] < key {
            return Err(self.keys.len());
        }
        let (mut low, mut high) = (0, self.keys.len() / key_len);
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.keys[middle * key_len..(middle + 1) * key_len].cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(middle * key_len),
            }
        }
        Err(low * key_len)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kinfolk_core::{Id, Timestamp};
    use proptest::prelude::*;

    use super::*;

    const CAPACITY: Capacity = Capacity { key_len: 14, entries: 5 };

    fn key(time: u64) -> Key {
        pack(PostKey { since: Timestamp::from_millis(time), id: Id::Integer(time * 7 % 5) })
    }

    fn times(inbox: &Inbox) -> Vec<u64> {
        let unpacked = inbox.keys().chunks(14).map(|key| unpack(IdKind::Integer, key).unwrap());
        unpacked.map(|key| key.since.millis()).collect()
    }

    #[test]
    fn keys_sort_as_posts_do() {
        let post = |time, id| PostKey { since: Timestamp::from_millis(time), id };
        for id in [Id::Integer, |id| Id::Uuid(u128::from(id) << 70)] {
            let (old, new, newest) = (post(1, id(9)), post(2, id(3)), post(2, id(4)));
            assert!(pack(old) < pack(new) && pack(new) < pack(newest));
            assert!(newest < new && new < old, "lists run from new to old");
            assert_eq!(unpack(old.id.kind(), &pack(old)), Some(old));
        }
        assert_eq!(key(3).len(), key_len(IdKind::Integer));
    }

    #[test]
    fn it_is_complete_from_where_it_was_trimmed() {
        let mut inbox = Inbox::filling(0, 1);
        inbox.fill(1, &[key(30), key(20), key(10)], None, CAPACITY);
        assert_eq!(inbox.complete_from(), None);
        for time in [40, 50, 15] {
            assert!(inbox.insert(&key(time), CAPACITY));
        }
        assert_eq!(times(&inbox), [15, 20, 30, 40, 50]);
        assert_eq!(inbox.complete_from(), Some(&*key(15)));
        assert!(!inbox.insert(&key(12), CAPACITY), "below its reach");
        assert!(!inbox.insert(&key(40), CAPACITY), "there already");
        assert!(inbox.remove(&key(40), 14) && !inbox.remove(&key(40), 14));
    }

    #[test]
    fn disorder_is_seen() {
        let stored = |times: &[u64], from: Option<u64>| {
            let keys = times.iter().flat_map(|&time| key(time)).collect();
            Inbox::stored(keys, from.map(key), 0).is_in_order(CAPACITY)
        };
        assert!(
            stored(&[], None)
                && stored(&[], Some(3))
                && stored(&[3, 4], Some(3))
                && stored(&[1, 2, 3, 4, 5], None)
        );
        assert!(!stored(&[4, 3], None) && !stored(&[3, 3], None) && !stored(&[3, 4], Some(4)));
        assert!(!stored(&[1, 2, 3, 4, 5, 6], None), "too many");
        assert!(!Inbox::stored(vec![0; 15], None, 0).is_in_order(CAPACITY));
    }

    #[test]
    fn bringing_in_raises_where_it_is_complete_from() {
        let mut inbox = Inbox::filling(0, 1);
        inbox.fill(1, &[key(50), key(10)], None, CAPACITY);
        inbox.bring_in(&[key(40), key(30)], Some(&key(30)), CAPACITY);
        assert_eq!((times(&inbox), inbox.complete_from()), (vec![30, 40, 50], Some(&*key(30))));
        inbox.bring_in(&[key(45), key(20)], Some(&key(20)), CAPACITY);
        assert_eq!(times(&inbox), [30, 40, 45, 50]);
        assert_eq!(inbox.complete_from(), Some(&*key(30)), "it never reaches further back");
    }

    proptest! {
        /// Above where it is complete from, it has exactly what was put in and not taken out.
        #[test]
        fn it_has_all_above_its_reach(steps in proptest::collection::vec((0u64..60, any::<bool>()), 0..120)) {
            let mut inbox = Inbox::filling(0, 1);
            inbox.fill(1, &[], None, CAPACITY);
            let mut model = BTreeSet::new();
            for (time, is_put) in steps {
                if is_put {
                    inbox.insert(&key(time), CAPACITY);
                    model.insert(key(time));
                } else {
                    inbox.remove(&key(time), 14);
                    model.remove(&key(time));
                }
                let from = inbox.complete_from().unwrap_or_default().to_vec();
                let expected: Vec<u8> = model.range(from..).flatten().copied().collect();
                prop_assert_eq!(inbox.keys(), expected);
                prop_assert!(inbox.keys().len() <= 5 * 14);
            }
        }
    }
}
