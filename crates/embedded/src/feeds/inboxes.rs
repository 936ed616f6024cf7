//! All inboxes in memory, in shards. Only those have one who have read their feed not too long ago.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use foldhash::fast::RandomState;
use kinfolk_core::Id;
use parking_lot::{Mutex, MutexGuard};

use super::inbox::{Capacity, Inbox, Key};
use crate::stats::Stats;

const SHARDS: usize = 256;
/// What an inbox takes beside its own bytes: its place in a map, and what the allocator adds. Roughly.
const OVERHEAD_BYTES: usize = 96;

/// The inboxes.
pub(crate) struct Inboxes {
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    pub capacity: Capacity,
    count: AtomicUsize,
    bytes: AtomicUsize,
    entries: AtomicU64,
    tickets: AtomicU64,
}

type Shard = HashMap<Id, Inbox, RandomState>;

impl Inboxes {
    /// None yet.
    pub(crate) fn new(capacity: Capacity) -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let hasher = RandomState::default();
        let (count, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (entries, tickets) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { shards, hasher, capacity, count, bytes, entries, tickets }
    }

    fn shard(&self, of: Id) -> MutexGuard<'_, Shard> {
        // Other bits than the map itself uses.
        self.shards[(self.hasher.hash_one(of) >> 24) as usize % SHARDS].lock()
    }

    /// Adds how many there are, what they take, and how many entries were delivered.
    pub(crate) fn stats(&self, stats: Stats) -> Stats {
        Stats {
            fan_out_entries: self.entries.load(Ordering::Relaxed),
            inboxes: self.count.load(Ordering::Relaxed) as u64,
            inbox_bytes: self.bytes.load(Ordering::Relaxed) as u64,
            ..stats
        }
    }

    /// Whether there are none at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Whether a user has one.
    pub(crate) fn has(&self, of: Id) -> bool {
        !self.is_empty() && self.shard(of).contains_key(&of)
    }

    /// Makes an inbox for a user who has none, which takes what is pushed from now on. Returns a ticket to fill it with; of several who
    /// do it at once the last one counts, who has looked last.
    pub(crate) fn begin(&self, of: Id, now: u64) -> u64 {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let mut shard = self.shard(of);
        match shard.get_mut(&of) {
            None => self.add(&mut shard, of, Inbox::filling(now, ticket)),
            Some(inbox) if inbox.is_filling() => inbox.hand_over(ticket),
            Some(_) => {}
        }
        ticket
    }

    /// Puts an inbox in that was stored.
    pub(crate) fn restore(&self, of: Id, mut inbox: Inbox) {
        inbox.trim(self.capacity);
        let mut shard = self.shard(of);
        self.add(&mut shard, of, inbox);
    }

    fn add(&self, shard: &mut Shard, of: Id, inbox: Inbox) {
        self.bytes.fetch_add(inbox.bytes() + OVERHEAD_BYTES, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::SeqCst);
        shard.insert(of, inbox);
    }

    /// Changes a user's inbox, if there is one.
    fn change<T>(&self, of: Id, change: impl FnOnce(&mut Inbox, Capacity) -> T) -> Option<T> {
        let mut shard = self.shard(of);
        let inbox = shard.get_mut(&of)?;
        let before = inbox.bytes();
        let result = change(inbox, self.capacity);
        let after = inbox.bytes();
        if after != before {
            self.bytes.fetch_add(after, Ordering::Relaxed);
            self.bytes.fetch_sub(before, Ordering::Relaxed);
        }
        Some(result)
    }

    /// Puts a key into a user's inbox, if there is one.
    pub(crate) fn push(&self, of: Id, key: &[u8]) {
        if self.change(of, |inbox, capacity| inbox.insert(key, capacity)) == Some(true) {
            self.entries.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes keys out of a user's inbox. One that is left with little but could have more is dropped: the next page fills it.
    pub(crate) fn remove(&self, of: Id, keys: &[Key]) {
        let removed = self.change(of, |inbox, capacity| {
            for key in keys {
                inbox.remove(key, capacity.key_len);
            }
            let full = capacity.entries * capacity.key_len;
            inbox.complete_from().is_some() && inbox.keys().len() < full / 2
        });
        if removed == Some(true) {
            self.forget(of);
        }
    }

    /// Drops a user's inbox, if there is one: the next page fills it again.
    pub(crate) fn forget(&self, of: Id) {
        if let Some(inbox) = self.shard(of).remove(&of) {
            self.dropped(&inbox);
        }
    }

    fn dropped(&self, inbox: &Inbox) {
        self.bytes.fetch_sub(inbox.bytes() + OVERHEAD_BYTES, Ordering::Relaxed);
        self.count.fetch_sub(1, Ordering::SeqCst);
    }

    /// Adds what an author has posted to a user's inbox. Where it is not all, `from` is the key from which it is.
    pub(crate) fn bring_in(&self, of: Id, newest: &[Key], from: Option<&[u8]>) {
        self.change(of, |inbox, capacity| inbox.bring_in(newest, from, capacity));
    }

    /// Ends the filling of an inbox, unless it was dropped, or somebody else has begun to fill it meanwhile.
    pub(crate) fn fill(&self, of: Id, ticket: u64, newest: &[Key], from: Option<&[u8]>) {
        self.change(of, |inbox, capacity| inbox.fill(ticket, newest, from, capacity));
    }

    /// A copy of a user's inbox, which notes that the user was here; `None` where there is none that is filled.
    pub(crate) fn read(&self, of: Id, now: u64) -> Option<Inbox> {
        let mut shard = self.shard(of);
        let inbox = shard.get_mut(&of).filter(|inbox| !inbox.is_filling())?;
        inbox.seen_at = inbox.seen_at.max(now);
        Some(inbox.clone())
    }

    /// A copy of a user's inbox, for one who is not the user.
    pub(crate) fn look(&self, of: Id) -> Option<Inbox> {
        self.read(of, 0)
    }

    /// Drops all: they are filled again when their users come.
    pub(crate) fn clear(&self) {
        self.keep(|_| false);
    }

    /// Drops those that are not to be kept, also those that are being filled.
    pub(crate) fn keep(&self, mut is_kept: impl FnMut(&Inbox) -> bool) {
        for shard in &self.shards {
            shard.lock().retain(|_, inbox| {
                let kept = is_kept(inbox);
                if !kept {
                    self.dropped(inbox);
                }
                kept
            });
        }
    }

    /// Drops those whose users have not been seen since a time, and then the longest unseen until the rest fits.
    pub(crate) fn tidy(&self, seen_since: u64, bytes_max: usize) {
        self.keep(|inbox| inbox.seen_at >= seen_since);
        let bytes = self.bytes.load(Ordering::Relaxed);
        if bytes <= bytes_max {
            return;
        }
        let mut seen: Vec<(u64, usize)> = Vec::new();
        let note = |_: Id, inbox: &Inbox| seen.push((inbox.seen_at, inbox.bytes() + OVERHEAD_BYTES));
        let Ok(()) = self.visit(note, || Ok::<(), std::convert::Infallible>(()));
        seen.sort_unstable();
        // Some more than needed, so that it is not needed again at once.
        let mut excess = bytes - bytes_max / 10 * 9;
        let last = seen.iter().find(|(_, bytes)| {
            excess = excess.saturating_sub(*bytes);
            excess == 0
        });
        let unseen_until = last.map_or(u64::MAX, |&(seen_at, _)| seen_at);
        self.keep(|inbox| inbox.seen_at > unseen_until);
    }

    /// Shows every inbox that is filled, one shard at a time, and says when it is through with one. The locks of the shards are what
    /// the writer may wait for: nothing that takes long may be done but between two shards.
    pub(crate) fn visit<E>(
        &self,
        mut visitor: impl FnMut(Id, &Inbox),
        mut between: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        for shard in &self.shards {
            let shard = shard.lock();
            shard.iter().filter(|(_, inbox)| !inbox.is_filling()).for_each(|(&of, inbox)| visitor(of, inbox));
            drop(shard);
            between()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inboxes() -> Inboxes {
        Inboxes::new(Capacity { key_len: 1, entries: 3 })
    }

    #[test]
    fn only_those_who_have_one_get_something() {
        let inboxes = inboxes();
        let (a, b) = (Id::Integer(1), Id::Integer(2));
        inboxes.push(a, b"x");
        let earlier = inboxes.begin(b, 5);
        let ticket = inboxes.begin(b, 5);
        assert!(inboxes.read(b, 5).is_none(), "it is not filled");
        inboxes.push(b, b"c");
        inboxes.fill(b, earlier, &[b"a".to_vec()], None);
        assert!(inboxes.read(b, 5).is_none(), "somebody else fills it");
        inboxes.fill(b, ticket, &[b"d".to_vec(), b"b".to_vec()], None);
        inboxes.fill(b, ticket, &[b"a".to_vec()], None);
        assert_eq!(inboxes.read(b, 5).unwrap().keys(), b"bcd");
        inboxes.remove(b, &[b"c".to_vec()]);
        assert_eq!((inboxes.has(a), inboxes.has(b)), (false, true));
        assert_eq!(inboxes.stats(Stats::default()).inboxes, 1);
        inboxes.clear();
        assert_eq!(inboxes.stats(Stats::default()).inbox_bytes, 0);
        inboxes.fill(b, ticket, &[], None);
        assert!(!inboxes.has(b), "what was dropped while it was filled stays dropped");
    }

    #[test]
    fn the_longest_unseen_are_dropped_first() {
        let inboxes = inboxes();
        for user in 0..100 {
            let ticket = inboxes.begin(Id::Integer(user), user);
            inboxes.fill(Id::Integer(user), ticket, &[], None);
        }
        inboxes.tidy(10, usize::MAX);
        assert_eq!(inboxes.stats(Stats::default()).inboxes, 90);
        let bytes = inboxes.stats(Stats::default()).inbox_bytes as usize;
        inboxes.tidy(0, bytes / 2);
        let Stats { inboxes: count, inbox_bytes: bytes_after, .. } = inboxes.stats(Stats::default());
        let bytes_after = bytes_after as usize;
        assert!(count < 46 && count > 35 && bytes_after <= bytes / 2, "{count}");
        assert!(inboxes.has(Id::Integer(99)) && !inboxes.has(Id::Integer(11)));
    }
}
