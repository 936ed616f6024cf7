//! The second model store: sharded and lagging, as the fleet is, in memory and without real time.
//!
//! Users live on logical shards, shards on two hosts. Each shard has the truth of its followers and a log of its own. Follower
//! lists and counts are projections on the host of the followee, which events reach late, twice and out of order between
//! sources; checks go through a filter and a cache that lag as well, by up to 2 seconds of the clock. A seed decides all of it: some
//! progress is made at every operation, and as much as it takes when a read has to wait. With a [`LagFault`] the store makes one mistake.
//!
//! It deliberately has no posts, feeds, comments or suggestions.

mod cache;
mod delivery;
mod fault;
mod filter;
mod host;
mod lists;
mod ports;
mod reads;
mod routing;
mod source;
mod state;

use std::num::NonZeroU16;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use kinfolk_core::{Clock, Error, IdKind, Result};

pub use fault::LagFault;

use state::State;

/// How long a read waits for a write that has not come. Real stores wait a second; the model's tests have no time for it.
const WRITE_WAIT_MAX: Duration = Duration::from_millis(20);

/// How a store is cut into shards, and which progress it makes when.
#[derive(Clone, Copy, Debug)]
pub struct Sharding {
    /// The number of logical shards.
    pub shards: NonZeroU16,
    /// Decides what is late, what comes twice, and which shard moves when.
    pub seed: u64,
}

impl Sharding {
    /// So many shards, with a seed.
    ///
    /// # Panics
    /// Without a shard.
    pub fn new(shards: u16, seed: u64) -> Self {
        Self { shards: NonZeroU16::new(shards).expect("a deployment has a shard"), seed }
    }
}

/// A sharded, lagging store in memory. Its calls block for a moment, which only tests may do.
pub struct ShardedStore {
    id_kind: IdKind,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    written: Condvar,
}

impl ShardedStore {
    /// An empty store without a fault.
    pub fn new(id_kind: IdKind, clock: Arc<dyn Clock>, sharding: Sharding) -> Self {
        Self::with(id_kind, clock, State::new(sharding, None))
    }

    /// An empty store that makes one mistake.
    pub fn with_fault(id_kind: IdKind, clock: Arc<dyn Clock>, sharding: Sharding, fault: LagFault) -> Self {
        Self::with(id_kind, clock, State::new(sharding, Some(fault)))
    }

    fn with(id_kind: IdKind, clock: Arc<dyn Clock>, state: State) -> Self {
        Self { id_kind, clock, state: Mutex::new(state), written: Condvar::new() }
    }

    /// The store after a restart of the processes in front of the hosts: they forget the shard map, the marks that they have
    /// seen, and their filters. Hosts, cache and messages on their way stay.
    #[must_use]
    pub fn reopen(self) -> Self {
        self.state().restart_processes();
        self
    }

    /// A restore from a backup: every shard may have lost the newest part of its log, and a new epoch begins.
    pub fn new_epoch(&self) {
        self.state().new_epoch();
        self.written.notify_all();
    }

    /// Trims the oldest changes of some shards.
    pub fn trim(&self) {
        self.state().trim();
    }

    /// Stops all projections, the filter and the cache, until [`ShardedStore::resume_projections`].
    pub fn pause_projections(&self) {
        self.state().paused = true;
    }

    /// Lets projections go on.
    pub fn resume_projections(&self) {
        self.state().paused = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no call panics inside the state")
    }

    /// The state as it is by now: no projection is further behind than it may be.
    fn current(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        state.keep_within_staleness(self.clock.now());
        state
    }

    /// Repeats a read until it need not wait for a write that has not come.
    fn read<T>(&self, mut read: impl FnMut(&mut State) -> Result<T>) -> Result<T> {
        let mut state = self.current();
        state.progress();
        let mut outcome = read(&mut state);
        let is_early = |state: &mut State| {
            if matches!(outcome, Err(Error::NotYetVisible { .. })) {
                outcome = read(state);
            }
            matches!(outcome, Err(Error::NotYetVisible { .. }))
        };
        let waited = self.written.wait_timeout_while(state, WRITE_WAIT_MAX, is_early);
        drop(waited.expect("no call panics inside the state"));
        outcome
    }
}
