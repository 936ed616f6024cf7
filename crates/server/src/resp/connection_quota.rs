//! How many connections each caller has, and what memory they hold together, so that no caller takes the connections and the
//! memory of all others. The listener limits the connections of all callers together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use kinfolk_core::{Error, Result};
use parking_lot::Mutex;

use super::memory::Pool;
use crate::access::Identity;

/// The connections of authenticated callers.
#[derive(Debug, Default)]
pub(super) struct ConnectionQuotas {
    used: Mutex<HashMap<Identity, Usage>>,
}

/// What one caller has.
#[derive(Debug)]
struct Usage {
    connections: usize,
    memory: Arc<Pool>,
}

/// What one caller may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quota {
    pub connections_max: usize,
    pub memory_bytes_max: usize,
}

/// One connection of a caller, for as long as this lives.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    quotas: Arc<ConnectionQuotas>,
    identity: Identity,
    /// What the caller's connections hold together.
    pub memory: Arc<Pool>,
}

impl ConnectionQuotas {
    /// One more connection of a caller, unless it has as many as it may.
    pub(crate) fn take(self: &Arc<Self>, identity: &Identity, quota: Quota) -> Result<ConnectionSlot> {
        let max = quota.connections_max;
        let mut taken = self.used.lock();
        let of_caller = taken
            .entry(identity.clone())
            .or_insert_with(|| Usage { connections: 0, memory: Arc::new(Pool::new(quota.memory_bytes_max)) });
        // With one already taken there is no entry to take back if this is refused.
        if of_caller.connections >= max.max(1) {
            let detail = format!("too many connections of this caller; at most {max} may be open");
            return Err(Error::InvalidRequest { detail });
        }
        of_caller.connections += 1;
        let memory = Arc::clone(&of_caller.memory);
        Ok(ConnectionSlot { quotas: Arc::clone(self), identity: identity.clone(), memory })
    }
}

impl ConnectionSlot {
    pub(crate) fn is_of(&self, identity: &Identity) -> bool {
        self.identity == *identity
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        if let Entry::Occupied(mut taken) = self.quotas.used.lock().entry(self.identity.clone()) {
            taken.get_mut().connections -= 1;
            if taken.get().connections == 0 {
                taken.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::Id;

    use super::*;

    #[test]
    fn slots_are_counted_per_caller_and_forgotten_when_empty() {
        let quotas = Arc::new(ConnectionQuotas::default());
        let (one, two) = (Identity::User(Id::Integer(1)), Identity::Service("feed".into()));
        let take = |identity| quotas.take(identity, Quota { connections_max: 2, memory_bytes_max: 1 });
        let first = take(&one).unwrap();
        let second = take(&one).unwrap();
        assert!(Arc::ptr_eq(&first.memory, &second.memory), "one caller has one budget");
        assert!(take(&one).is_err());
        let other = take(&two).unwrap();
        assert!(!Arc::ptr_eq(&first.memory, &other.memory));
        drop(first);
        drop((take(&one).unwrap(), second, other));
        assert!(quotas.used.lock().is_empty());
    }
}
