//! What the clients of one concurrent history share, and the rounds that run it: each on a fresh store, some behind connections that
//! get lost.

use std::sync::{Arc, Mutex};

use kinfolk_core::{Deployment, Frontier, Id, IdKind, Position};

use crate::StoreFactory;
use crate::clock::SimulatedClock;
use crate::model::suggestions::locked;
use crate::random::answers::Answers;
use crate::random::compare::Verdict;
use crate::random::unsettled::{TimeoutFault, Unsettled};
use crate::seen::Seen;
use crate::users::user;

/// The store of a round and what its clients have seen of it.
pub(super) struct Shared<S> {
    pub store: S,
    pub clock: Arc<SimulatedClock>,
    pub id_kind: IdKind,
    pub answers: Answers,
    seen: Mutex<Frontier>,
}

impl<S> Shared<S> {
    fn new(make: StoreFactory<'_, S>, round: u64) -> Self {
        let id_kind = if round.is_multiple_of(2) { IdKind::Integer } else { IdKind::Uuid };
        let clock = Arc::new(SimulatedClock::default());
        let store = make(id_kind, Arc::<SimulatedClock>::clone(&clock));
        Self { store, clock, id_kind, answers: Answers::default(), seen: Mutex::default() }
    }

    /// The positions of all acknowledged writes.
    pub fn seen(&self) -> Frontier {
        locked(&self.seen).clone()
    }

    /// A write was acknowledged.
    pub fn saw(&self, position: Position) {
        locked(&self.seen).advance(position);
    }

    /// Reads that show all acknowledged writes.
    pub fn reader(&self) -> Seen<'_, S> {
        Seen::new(&self.store, self.seen())
    }

    pub fn id(&self, number: u64) -> Id {
        user(self.id_kind, number)
    }
}

/// How many rounds of a history, and the seed of all of them.
#[derive(Clone, Copy)]
pub(super) struct Rounds {
    pub what: &'static str,
    pub count: u32,
    pub seed: u64,
}

impl Rounds {
    /// Runs a history on fresh stores. It gets its own seed, and what makes the store settle once all clients are done.
    pub fn run<S: Deployment>(
        self,
        make: StoreFactory<'_, S>,
        history: impl Fn(Shared<S>, u64, &dyn Fn(&S)) -> Verdict,
    ) {
        (0..u64::from(self.count)).for_each(|round| self.run_one(round, make, &history, &|_| ()));
    }

    /// The same behind connections that get lost.
    pub fn run_with_timeouts<S: Deployment>(
        self,
        make: StoreFactory<'_, S>,
        fault: Option<TimeoutFault>,
        history: impl Fn(Shared<Unsettled<S>>, u64, &dyn Fn(&Unsettled<S>)) -> Verdict,
    ) {
        for round in 0..u64::from(self.count) {
            let unsettled = |id_kind, clock| Unsettled::new(make(id_kind, clock), fault, self.seed ^ round);
            self.run_one(round, &unsettled, &history, &Unsettled::settle);
        }
    }

    fn run_one<S>(
        self,
        round: u64,
        make: StoreFactory<'_, S>,
        history: &impl Fn(Shared<S>, u64, &dyn Fn(&S)) -> Verdict,
        settle: &dyn Fn(&S),
    ) {
        let Self { what, seed, .. } = self;
        let shared = Shared::new(make, round);
        let ids = shared.id_kind.name();
        history(shared, seed ^ round, settle)
            .unwrap_or_else(|wrong| panic!("{what} (seed {seed}, round {round}, {ids} ids): {wrong}"));
    }
}
