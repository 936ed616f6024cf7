//! The memory that connections hold while they wait: for the rest of a command, for `EXEC`, for a client to take its
//! replies. It is counted for each caller and for all, and refused beyond a maximum. Buffers of the usual size are not
//! counted, so that ordinary commands touch no counter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kinfolk_core::Error;

use super::settings::RespSettings;

/// A connection that holds at most this many bytes is not counted.
pub(super) const FREE_BYTES: usize = 4 << 10;

/// What a connection holds memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Commands that have arrived, whole or in part.
    Input,
    /// The commands of an open transaction.
    Queue,
    /// Replies that the client has not taken.
    Output,
}

/// How many bytes are held, and how many may be.
#[derive(Debug)]
pub(super) struct Pool {
    held: AtomicUsize,
    max: usize,
}

impl Pool {
    pub(crate) fn new(max: usize) -> Self {
        Self { held: AtomicUsize::new(0), max }
    }

    /// How many bytes are held.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let taken = |held: usize| held.checked_add(bytes).filter(|&held| held <= self.max);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What all connections together may hold, and what each may.
#[derive(Debug)]
pub(super) struct Pools {
    pub all: Pool,
    /// Of all clients that have not authenticated, together.
    pub unauthenticated: Arc<Pool>,
    connection_max: usize,
}

impl Pools {
    pub(crate) fn new(settings: &RespSettings) -> Self {
        Self {
            all: Pool::new(settings.memory_bytes_max),
            unauthenticated: Arc::new(Pool::new(settings.user_memory_bytes_max)),
            connection_max: settings.connection_memory_bytes_max,
        }
    }
}

/// More memory than is allowed: how much may be held, and by which connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OverBudget {
    #[error(
        "this connection would hold more than {max} bytes of unfinished commands, open transactions and unread replies: \
         send less at once and read replies sooner"
    )]
    Connection { max: usize },
    #[error(
        "the connections of this caller would hold more than {max} bytes of unfinished commands, open transactions and \
         unread replies: finish some of them first"
    )]
    Caller { max: usize },
    #[error(
        "all connections together would hold more than {max} bytes of unfinished commands, open transactions and unread \
         replies: try again later"
    )]
    All { max: usize },
}

impl From<OverBudget> for Error {
    fn from(over: OverBudget) -> Self {
        Self::InvalidRequest { detail: over.to_string() }
    }
}

/// What one connection holds, until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    pools: Arc<Pools>,
    /// The caller's pool; none while authentication is off.
    caller: Option<Arc<Pool>>,
    /// By purpose.
    bytes: [usize; 3],
    /// How many of these the pools know of.
    counted: usize,
}

impl Held {
    pub(crate) fn new(pools: Arc<Pools>, caller: Option<Arc<Pool>>) -> Self {
        Self { pools, caller, bytes: [0; 3], counted: 0 }
    }

    /// Sets how many bytes are held for a purpose. If that is refused, nothing changes.
    pub(crate) fn set(&mut self, purpose: Purpose, bytes: usize) -> Result<(), OverBudget> {
        let before = self.bytes[purpose as usize];
        if before == bytes {
            return Ok(());
        }
        self.bytes[purpose as usize] = bytes;
        let counted = self.count();
        if counted.is_err() {
            self.bytes[purpose as usize] = before;
        }
        counted
    }

    /// Nothing is held for a purpose any more.
    pub(crate) fn release(&mut self, purpose: Purpose) {
        self.set(purpose, 0).expect("less than before is never refused");
    }

    /// Another caller holds all of this from now on; refused if it holds too much already.
    pub(crate) fn move_to(&mut self, caller: Option<Arc<Pool>>) -> Result<(), OverBudget> {
        if let Some(pool) = caller.as_ref().filter(|pool| !pool.take(self.counted)) {
            return Err(OverBudget::Caller { max: pool.max });
        }
        if let Some(former) = std::mem::replace(&mut self.caller, caller) {
            former.give_back(self.counted);
        }
        Ok(())
    }

    /// Brings the pools up to date.
    fn count(&mut self) -> Result<(), OverBudget> {
        let held: usize = self.bytes.iter().sum();
        let wanted = if held > FREE_BYTES { held } else { 0 };
        match wanted.checked_sub(self.counted) {
            Some(0) => {}
            Some(more) => self.take(more, wanted)?,
            None => self.give_back(self.counted - wanted),
        }
        self.counted = wanted;
        Ok(())
    }

    fn take(&self, more: usize, wanted: usize) -> Result<(), OverBudget> {
        let Pools { all, connection_max, .. } = &*self.pools;
        if wanted > *connection_max {
            return Err(OverBudget::Connection { max: *connection_max });
        }
        if let Some(caller) = self.caller.as_ref().filter(|caller| !caller.take(more)) {
            return Err(OverBudget::Caller { max: caller.max });
        }
        if !all.take(more) {
            self.caller.iter().for_each(|caller| caller.give_back(more));
            return Err(OverBudget::All { max: all.max });
        }
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        self.caller.iter().for_each(|caller| caller.give_back(bytes));
        self.pools.all.give_back(bytes);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.give_back(self.counted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1 << 10;

    fn pools(all: usize, connection: usize) -> Arc<Pools> {
        let settings = RespSettings {
            memory_bytes_max: all,
            user_memory_bytes_max: 20 * KIB,
            connection_memory_bytes_max: connection,
            ..RespSettings::default()
        };
        Arc::new(Pools::new(&settings))
    }

    #[test]
    fn what_is_small_is_not_counted_and_the_rest_is_given_back() {
        let pools = pools(100 * KIB, 100 * KIB);
        let caller = Arc::new(Pool::new(100 * KIB));
        let mut held = Held::new(Arc::clone(&pools), Some(Arc::clone(&caller)));
        held.set(Purpose::Queue, 3 * KIB).unwrap();
        assert_eq!(pools.all.held(), 0);
        held.set(Purpose::Input, 2 * KIB).unwrap();
        assert_eq!((pools.all.held(), caller.held()), (5 * KIB, 5 * KIB));
        held.set(Purpose::Output, 7 * KIB).unwrap();
        held.release(Purpose::Queue);
        assert_eq!((pools.all.held(), caller.held()), (9 * KIB, 9 * KIB));
        drop(held);
        assert_eq!((pools.all.held(), caller.held()), (0, 0));
    }

    #[test]
    fn each_maximum_refuses_and_leaves_what_was_held() {
        let pools = pools(30 * KIB, 15 * KIB);
        let caller = Arc::new(Pool::new(20 * KIB));
        let new = |caller: &Arc<Pool>| Held::new(Arc::clone(&pools), Some(Arc::clone(caller)));
        let (mut one, mut two, mut other) = (new(&caller), new(&caller), new(&Arc::new(Pool::new(20 * KIB))));
        assert_eq!(one.set(Purpose::Input, 16 * KIB), Err(OverBudget::Connection { max: 15 * KIB }));
        one.set(Purpose::Input, 12 * KIB).unwrap();
        assert_eq!(two.set(Purpose::Queue, 9 * KIB), Err(OverBudget::Caller { max: 20 * KIB }));
        two.set(Purpose::Queue, 8 * KIB).unwrap();
        assert_eq!(other.set(Purpose::Output, 11 * KIB), Err(OverBudget::All { max: 30 * KIB }));
        other.set(Purpose::Output, 10 * KIB).unwrap();
        assert_eq!((pools.all.held(), caller.held()), (30 * KIB, 20 * KIB));
        one.release(Purpose::Input);
        other.set(Purpose::Output, 15 * KIB).unwrap();
        drop((one, two, other));
        assert_eq!((pools.all.held(), caller.held()), (0, 0));
    }

    #[test]
    fn another_caller_takes_over_what_is_held_if_it_may() {
        let pools = pools(100 * KIB, 100 * KIB);
        let (first, second) = (Arc::new(Pool::new(20 * KIB)), Arc::new(Pool::new(20 * KIB)));
        let mut held = Held::new(Arc::clone(&pools), Some(Arc::clone(&first)));
        held.set(Purpose::Input, 12 * KIB).unwrap();
        let mut other = Held::new(Arc::clone(&pools), Some(Arc::clone(&second)));
        other.set(Purpose::Input, 10 * KIB).unwrap();
        assert_eq!(held.move_to(Some(Arc::clone(&second))), Err(OverBudget::Caller { max: 20 * KIB }));
        assert_eq!((first.held(), second.held()), (12 * KIB, 10 * KIB));
        drop(other);
        held.move_to(Some(Arc::clone(&second))).unwrap();
        assert_eq!((first.held(), second.held(), pools.all.held()), (0, 12 * KIB, 12 * KIB));
        held.move_to(None).unwrap();
        assert_eq!((second.held(), pools.all.held()), (0, 12 * KIB));
    }

    #[test]
    fn threads_together_hold_no_more_than_is_allowed() {
        let pools = pools(64 * KIB, 64 * KIB);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut held = Held::new(Arc::clone(&pools), None);
                    for step in 0..2_000 {
                        let _ = held.set(Purpose::Input, (step % 7) * 8 * KIB);
                        assert!(pools.all.held() <= 64 * KIB);
                    }
                });
            }
        });
        assert_eq!(pools.all.held(), 0);
    }
}
