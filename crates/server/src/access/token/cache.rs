//! Tokens that were verified not long ago: checking a signature takes far longer than serving a request.
//! Whether a token still stands is not decided here; every use checks that.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::quality::RandomState;
use kinfolk_core::{Id, Timestamp};
use parking_lot::Mutex;

use super::super::caller::Standing;
use super::super::scope::Scopes;

const SHARDS: usize = 8;

/// What a token has proved.
#[derive(Clone)]
pub(super) struct Verified {
    pub user: Id,
    pub scopes: Scopes,
    pub expires_at: Timestamp,
    /// Of the key that has signed it.
    pub standing: Arc<Standing>,
}

type Generation = HashMap<[u8; 32], Verified, RandomState>;

/// A bounded cache by the hash of the whole token. Each shard has a young and an old generation; once the young one
/// is full it becomes the old one, and what was not used since is evicted.
pub(super) struct TokenCache {
    shards: [Mutex<Shard>; SHARDS],
    generation_entries_max: usize,
}

#[derive(Default)]
struct Shard {
    young: Generation,
    old: Generation,
}

impl TokenCache {
    /// At most about `entries` tokens.
    pub(crate) fn new(entries: usize) -> Self {
        Self { shards: Default::default(), generation_entries_max: entries.div_ceil(SHARDS * 2) }
    }

    pub(crate) fn get(&self, digest: &blake3::Hash) -> Option<Verified> {
        let mut shard = self.shard(digest).lock();
        if let Some(verified) = shard.young.get(digest.as_bytes()) {
            return Some(verified.clone());
        }
        let verified = shard.old.remove(digest.as_bytes())?;
        shard.insert(*digest.as_bytes(), verified.clone(), self.generation_entries_max);
        Some(verified)
    }

    pub(crate) fn insert(&self, digest: blake3::Hash, verified: Verified) {
        self.shard(&digest).lock().insert(*digest.as_bytes(), verified, self.generation_entries_max);
    }

    fn shard(&self, digest: &blake3::Hash) -> &Mutex<Shard> {
        &self.shards[usize::from(digest.as_bytes()[0]) % SHARDS]
    }
}

impl Shard {
    fn insert(&mut self, digest: [u8; 32], verified: Verified, entries_max: usize) {
        if self.young.len() >= entries_max {
            self.old = std::mem::take(&mut self.young);
        }
        if entries_max > 0 {
            self.young.insert(digest, verified);
        }
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::SystemClock;

    use super::*;

    fn verified(user: u64) -> Verified {
        let standing = Arc::new(Standing::new(Arc::new(SystemClock), Scopes::all(), None));
        Verified { user: Id::Integer(user), scopes: Scopes::all(), expires_at: Timestamp::MAX, standing }
    }

    fn digest(user: u64) -> blake3::Hash {
        blake3::hash(&user.to_le_bytes())
    }

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let cache = TokenCache::new(160);
        for user in 0..10_000 {
            cache.insert(digest(user), verified(user));
            assert_eq!(cache.get(&digest(0)).unwrap().user, Id::Integer(0));
        }
        let entries = |shard: &Mutex<Shard>| {
            let shard = shard.lock();
            shard.young.len() + shard.old.len()
        };
        let kept: usize = cache.shards.iter().map(entries).sum();
        assert!((80..=160).contains(&kept), "{kept}");
        assert!(cache.get(&digest(1)).is_none());
        assert_eq!(cache.get(&digest(9_999)).unwrap().user, Id::Integer(9_999));
    }

    #[test]
    fn a_cache_of_nothing_keeps_nothing() {
        let cache = TokenCache::new(0);
        cache.insert(digest(1), verified(1));
        assert!(cache.get(&digest(1)).is_none());
    }
}
