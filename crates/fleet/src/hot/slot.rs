//! The place of one question: its kept answer, and the read that is under way, which everybody shares.

use std::sync::Arc;

use kinfolk_core::{Error, Frontier, Result};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::Question;
use super::kept::{Kept, Needed};
use crate::fleet::Shared;
use crate::read::Reader;

/// What became of a read.
pub(super) type Outcome<A> = Result<Arc<Kept<A>>>;

/// A read that is under way; none until it has ended.
type Flight<A> = watch::Receiver<Option<Outcome<A>>>;

/// The place of one question.
pub(super) struct Slot<A>(Mutex<State<A>>);

struct State<A> {
    kept: Option<Arc<Kept<A>>>,
    flight: Option<Flight<A>>,
}

impl<A> Default for Slot<A> {
    fn default() -> Self {
        Self(Mutex::new(State { kept: None, flight: None }))
    }
}

/// A read that a caller waits for.
pub(super) struct Boarded<A> {
    flight: Flight<A>,
    /// Whether it has begun for this caller.
    pub(super) is_own: bool,
}

impl<A: Clone + Send + Sync + 'static> Slot<A> {
    /// The kept answer, if it was read lately and shows what is needed.
    pub(super) fn kept(&self, needed: Needed<'_>) -> Option<Arc<Kept<A>>> {
        let state = self.0.lock();
        state.kept.as_ref().filter(|kept| kept.is_usable() && kept.shows(needed)).map(Arc::clone)
    }

    /// The read that is under way, or a new one. It goes on whatever becomes of its callers.
    pub(super) fn board<Q: Question<Answer = A>>(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        runtime: &Handle,
        question: Q,
    ) -> Boarded<A> {
        let mut state = self.0.lock();
        // One that has panicked has no sender any more.
        if let Some(flight) = state.flight.as_ref().filter(|flight| flight.has_changed().is_ok()) {
            return Boarded { flight: flight.clone(), is_own: false };
        }
        let (sender, flight) = watch::channel(None);
        state.flight = Some(flight.clone());
        let (slot, shared) = (Arc::clone(self), Arc::clone(shared));
        runtime.spawn(async move {
            let read = move |reader| Kept::read(question, reader);
            let outcome = Reader::run(shared, Frontier::default(), read).await.map(Arc::new);
            slot.land(&sender.subscribe(), &outcome);
            sender.send_replace(Some(outcome));
        });
        Boarded { flight, is_own: true }
    }

    /// Keeps the outcome of a read, unless something newer was put there meanwhile.
    fn land(&self, flight: &Flight<A>, outcome: &Outcome<A>) {
        let mut state = self.0.lock();
        if state.flight.as_ref().is_some_and(|current| current.same_channel(flight)) {
            let before = state.kept.take();
            *state = State { kept: outcome.as_ref().ok().map(Arc::clone).or(before), flight: None };
        }
    }

    /// Keeps what a caller was shown that has waited for it: later callers are shown no less. Which of two reads at the same time has
    /// shown more is not known: then nothing is kept.
    pub(super) fn put(&self, shown: Arc<Kept<A>>) {
        let mut state = self.0.lock();
        let is_overtaken = state.kept.as_ref().is_some_and(|kept| shown.is_older_than(kept));
        *state = State { kept: Some(shown).filter(|_| !is_overtaken), flight: None };
    }
}

impl<A> Boarded<A> {
    /// What becomes of it.
    pub(super) async fn outcome(mut self) -> Outcome<A> {
        let landed = self.flight.wait_for(Option::is_some).await;
        let outcome = landed.ok().and_then(|landed| (*landed).clone());
        outcome.unwrap_or(Err(Error::Closed))
    }
}
