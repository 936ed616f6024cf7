//! How many connections each caller has, so that no caller takes the places of all others. How many there may be over
//! all is the listener's business.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use kinfolk_core::{Error, Result};
use parking_lot::Mutex;

use crate::access::Identity;

/// The connections of callers who are known.
#[derive(Debug, Default)]
pub(super) struct Seats {
    taken: Mutex<HashMap<Identity, usize>>,
}

/// One connection of a caller, for as long as this lives.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    identity: Identity,
}

impl Seats {
    /// One more connection of a caller, unless it has `max` already.
    pub fn take(self: &Arc<Self>, identity: &Identity, max: usize) -> Result<Seat> {
        let mut taken = self.taken.lock();
        let count = taken.entry(identity.clone()).or_default();
        // With one already taken there is no entry to take back if this is refused.
        if *count >= max.max(1) {
            let detail = format!("too many connections of this caller; at most {max} may be open");
            return Err(Error::InvalidRequest { detail });
        }
        *count += 1;
        Ok(Seat { seats: Arc::clone(self), identity: identity.clone() })
    }
}

impl Seat {
    pub fn is_of(&self, identity: &Identity) -> bool {
        self.identity == *identity
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Entry::Occupied(mut taken) = self.seats.taken.lock().entry(self.identity.clone()) {
            *taken.get_mut() -= 1;
            if *taken.get() == 0 {
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
    fn seats_are_counted_per_caller_and_forgotten_when_empty() {
        let seats = Arc::new(Seats::default());
        let (one, two) = (Identity::User(Id::Integer(1)), Identity::Service("feed".into()));
        let first = seats.take(&one, 2).unwrap();
        let second = seats.take(&one, 2).unwrap();
        assert!(seats.take(&one, 2).is_err());
        let other = seats.take(&two, 2).unwrap();
        drop(first);
        drop((seats.take(&one, 2).unwrap(), second, other));
        assert!(seats.taken.lock().is_empty());
    }
}
