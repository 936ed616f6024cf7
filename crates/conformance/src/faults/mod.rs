//! Planted faults: mistakes of published designs, each switched on by itself in an otherwise right store, so
//! that a test can show that the suite notices it.
//!
//! What a fault keeps and what it does to a restart is here, the rest in a folder for each port, whose `declared.rs` names the
//! tests that must catch each fault. Every function falls through to the [`Model`] for the faults
//! that it does not know, so that a store makes exactly one mistake.

mod comments;
mod fault;
mod feeds;
mod graph;
mod suggestions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Id, Sequence, Timestamp};

pub use fault::Fault;
pub(crate) use fault::declare_faults;

use crate::model::Model;
use crate::model::posts::RequestState;
use crate::model::suggestions::Kept;

/// A fault, and what a store that makes it keeps besides the truth.
pub(crate) struct Planted {
    fault: Fault,
    state: Mutex<FaultState>,
}

#[derive(Default)]
struct FaultState {
    /// The follower side, or a cache, as the fault has it.
    copy: Model,
    /// By the clock: when an edge was last written.
    versions: BTreeMap<(EdgeKind, Edge), Timestamp>,
    /// What the clock showed at each position.
    times: BTreeMap<Sequence, Timestamp>,
    /// How far counts are off: (following, followers).
    drift: BTreeMap<(EdgeKind, Id), (i64, i64)>,
    /// Edges with a second row.
    repeated: BTreeSet<(EdgeKind, Edge)>,
    /// Answers to checks.
    cached: BTreeMap<(EdgeKind, Edge), bool>,
    /// Users that a write is busy with.
    locked: BTreeSet<Id>,
    /// Whose inbox was forgotten.
    forgotten: BTreeSet<Id>,
    /// What a restart did to inboxes.
    restarted: feeds::pages::Restarted,
    /// What is wrong with comments.
    comments: comments::writing::CommentFaultState,
}

impl Planted {
    pub(crate) fn new(fault: Fault) -> Self {
        Self { fault, state: Mutex::default() }
    }

    pub(crate) fn makes(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    pub(crate) fn sees_the_future(&self) -> bool {
        self.fault == Fault::VisibleAlways
    }

    pub(crate) fn changes_epoch(&self) -> bool {
        self.fault == Fault::EpochChangesWithWrites
    }

    /// What the fault does to a restart.
    pub(crate) fn reopen(self, model: &mut Model, kept: &mut Kept, request_state: &mut RequestState) -> Self {
        let known = model.changes.len();
        self.reopen_comments(model);
        let mut state = FaultState::default();
        match self.fault {
            Fault::RestartForgetsFloor => model.floor = Timestamp::MIN,
            Fault::RestartLosesNewest => {
                *model = Model::replay(model.changes.drain(..known.saturating_sub(1)));
            }
            Fault::RestartRebuildMissesTail => {
                state.copy = Model::replay(model.changes[..known.saturating_sub(1)].iter().cloned());
            }
            Fault::RestartTrustsPartialSet => {}
            Fault::RestartForgetsDismissals => {
                model.edges.retain(|(kind, _), _| *kind != EdgeKind::Dismissal);
            }
            Fault::RestartForgetsStored => *kept = Kept::default(),
            Fault::RestartForgetsKeys => request_state.keys.clear(),
            Fault::RestartRepeatsGeneratedIds => request_state.generated = None,
            Fault::RestartForgetsDeletions => model.posts.retain(|_, registered| !registered.deleted),
            _ => state = self.state.into_inner().expect("no call panicked"),
        }
        state.restarted.restart(model);
        Self { state: Mutex::new(state), ..Self::new(self.fault) }
    }

    fn state(&self) -> MutexGuard<'_, FaultState> {
        self.state.lock().expect("no call panics while it holds the state")
    }

    /// Gives other calls the time to come in between, which a race needs to be seen.
    fn gap() {
        thread::park_timeout(Duration::from_millis(1));
    }
}

fn locked_model(model: &Mutex<Model>) -> MutexGuard<'_, Model> {
    model.lock().expect("no call panics inside the model")
}
