//! A store in front of which connections are lost: some writes time out after they were applied, without being applied, or
//! before they are applied, and some operations are refused for a while.

mod content;
mod graph;

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use kinfolk_core::changes::ChangeLog;
use kinfolk_core::{Error, Position, Result};

use crate::random::Random;
use crate::threads::block_on;
use crate::users::START;

/// One write in so many times out.
const TIMEOUTS: u64 = 5;

/// One operation in so many is refused.
const REFUSALS: u64 = 8;

/// A mistake about writes that time out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutFault {
    /// A write that was lost is acknowledged: of edges, posts and comments.
    AcknowledgesLost,
    /// A write whose reply was lost is tried again later without a look whether it was applied.
    AppliesTwice,
}

impl TimeoutFault {
    /// All of them. Each is caught by the concurrent histories of edges, feeds and comments.
    pub const ALL: [Self; 2] = [Self::AcknowledgesLost, Self::AppliesTwice];
}

/// A store whose writes may time out, and whose operations may be refused, until it is settled.
pub(crate) struct Unsettled<S> {
    store: S,
    fault: Option<TimeoutFault>,
    pending: Mutex<Pending<S>>,
}

/// A write that has timed out and may still be applied. Nobody hears of its result.
type Late<S> = Box<dyn FnOnce(&S) + Send>;

struct Pending<S> {
    random: Random,
    late: Vec<Late<S>>,
    is_settled: bool,
}

/// What becomes of a write.
enum Fate {
    Answered,
    Refused,
    Lost,
    ReplyLost,
    Late,
}

impl<S> Pending<S> {
    fn is_refused(&mut self) -> bool {
        !self.is_settled && self.random.below(REFUSALS) == 0
    }

    fn fate(&mut self) -> Fate {
        if self.is_refused() {
            return Fate::Refused;
        }
        if self.is_settled || self.random.below(TIMEOUTS) > 0 {
            return Fate::Answered;
        }
        match self.random.below(3) {
            0 => Fate::Lost,
            1 => Fate::ReplyLost,
            _ => Fate::Late,
        }
    }
}

impl<S> Unsettled<S> {
    /// Puts lost connections in front of a store, as a seed has them.
    pub(crate) fn new(store: S, fault: Option<TimeoutFault>, seed: u64) -> Self {
        let pending = Pending { random: Random::new(seed), late: Vec::new(), is_settled: false };
        Self { store, fault, pending: Mutex::new(pending) }
    }

    /// From now on every operation is answered. What has not been applied by now never is.
    pub(crate) fn settle(&self) {
        let mut pending = self.pending();
        pending.is_settled = true;
        pending.late.clear();
    }

    fn pending(&self) -> MutexGuard<'_, Pending<S>> {
        self.pending.lock().expect("nothing panics in between")
    }

    /// The store, for a read that is not refused.
    fn readable(&self) -> Result<&S> {
        self.apply_late();
        if self.pending().is_refused() { Err(unavailable()) } else { Ok(&self.store) }
    }

    /// Sends a write to the store. `pretend` acknowledges one that never got there, where that is the fault.
    fn send<T>(
        &self,
        apply: impl Fn(&S) -> Result<T> + Send + 'static,
        pretend: impl FnOnce(&S) -> Result<T>,
    ) -> Result<T> {
        self.apply_late();
        let fate = self.pending().fate();
        match fate {
            Fate::Answered => apply(&self.store),
            Fate::Refused => Err(unavailable()),
            Fate::Lost if self.fault == Some(TimeoutFault::AcknowledgesLost) => pretend(&self.store),
            Fate::Lost => Err(Error::TimedOut),
            Fate::ReplyLost => {
                // A refusal arrives: to lose it as well would be no other fate than to be lost.
                apply(&self.store)?;
                if self.fault == Some(TimeoutFault::AppliesTwice) {
                    self.apply_later(apply);
                }
                Err(Error::TimedOut)
            }
            Fate::Late => {
                self.apply_later(apply);
                Err(Error::TimedOut)
            }
        }
    }

    fn apply_later<T>(&self, apply: impl Fn(&S) -> Result<T> + Send + 'static) {
        self.pending().late.push(Box::new(move |store| drop(apply(store))));
    }

    /// Applies a write that timed out before, now and then.
    fn apply_late(&self) {
        let late = {
            let Pending { random, late, .. } = &mut *self.pending();
            let place = random.below(late.len().max(1) as u64 * 3) as usize;
            (place < late.len()).then(|| late.swap_remove(place))
        };
        late.into_iter().for_each(|apply| apply(&self.store));
    }
}

fn unavailable() -> Error {
    Error::Unavailable { what: "a host".into(), retry_after: Duration::from_secs(1) }
}

/// A position that is in the log, or before it.
fn some_position<S: ChangeLog>(store: &S) -> Result<Position> {
    Ok(block_on(store.span())?.newest.iter().next().unwrap_or(START))
}
