//! Planted faults: mistakes of published designs, each switched on by itself in an otherwise right store, so
//! that a test can show that the suite notices it.
//!
//! Writes of edges are distorted here, the rest in the files beside this one. Every function falls through to the [`Model`] for the faults
//! that it does not know, so that a store makes exactly one mistake.

mod comment_reads;
mod comments;
mod fault;
mod feeds;
mod inboxes;
mod limit;
mod overlap;
mod posts;
mod reads;
mod suggest;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand, Receipt, WriteRequest};
use kinfolk_core::{Clock, EdgeKind, Error, Id, Result, Sequence, Timestamp};

pub use fault::Fault;

use crate::model::Model;
use crate::model::posts::Wishes;
use crate::model::suggestions::Kept;
use crate::users::{START, at};

/// A fault, and what a store that makes it keeps besides the truth.
pub(crate) struct Planted {
    fault: Fault,
    aside: Mutex<Aside>,
}

#[derive(Default)]
struct Aside {
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
    restarted: feeds::Restarted,
    /// What is wrong with comments.
    comments: comments::Beside,
}

impl Planted {
    pub(crate) fn new(fault: Fault) -> Self {
        Self { fault, aside: Mutex::default() }
    }

    pub(crate) fn sees_the_future(&self) -> bool {
        self.fault == Fault::VisibleAlways
    }

    pub(crate) fn changes_epoch(&self) -> bool {
        self.fault == Fault::EpochChangesWithWrites
    }

    /// What the fault does to a restart.
    pub(crate) fn reopen(self, model: &mut Model, kept: &mut Kept, wishes: &mut Wishes) -> Self {
        let known = model.changes.len();
        self.reopen_comments(model);
        let mut aside = Aside::default();
        match self.fault {
            Fault::RestartForgetsFloor => model.floor = Timestamp::MIN,
            Fault::RestartLosesNewest => {
                *model = Model::replay(model.changes.drain(..known.saturating_sub(1)));
            }
            Fault::RestartRebuildMissesTail => {
                aside.copy = Model::replay(model.changes[..known.saturating_sub(1)].iter().cloned());
            }
            Fault::RestartTrustsPartialSet => {}
            Fault::RestartForgetsDismissals => {
                model.edges.retain(|(kind, _), _| *kind != EdgeKind::Dismissal);
            }
            Fault::RestartForgetsStored => *kept = Kept::default(),
            Fault::RestartForgetsKeys => wishes.keys.clear(),
            Fault::RestartRepeatsMadeIds => wishes.made = None,
            Fault::RestartForgetsDeletions => model.posts.retain(|_, registered| !registered.deleted),
            _ => aside = self.aside.into_inner().expect("no call panicked"),
        }
        aside.restarted.restart(model);
        Self { aside: Mutex::new(aside), ..Self::new(self.fault) }
    }

    fn aside(&self) -> MutexGuard<'_, Aside> {
        self.aside.lock().expect("no call panics while it holds what is aside")
    }

    /// Gives other calls the time to come in between, which a race needs to be seen.
    fn gap() {
        thread::park_timeout(Duration::from_millis(1));
    }

    pub(crate) fn write(
        &self,
        model: &Mutex<Model>,
        mut request: WriteRequest,
        clock: &dyn Clock,
    ) -> Result<Receipt> {
        if self.fault == Fault::OppositeLocks {
            let locked = self.lock_users(&request)?;
            let result = locked_model(model).write(&request, clock.now());
            locked.iter().for_each(|id| _ = self.aside().locked.remove(id));
            return result;
        }
        self.distort_limit(model, &mut request)?;

        let mut model = locked_model(model);
        let now = self.distort_clock(&mut model, clock.now());
        let known = model.changes.len();
        if self.fault == Fault::VersionFromClock && self.is_stale(&request, now) {
            return Ok(Receipt { position: model.position, changed: vec![false; request.commands.len()] });
        }
        let mut receipt = self.decide(&mut model, &request, now)?;
        self.count_blindly(&model, &request, &receipt);
        self.distort_log(&mut model, known, now);
        self.distort_receipt(&mut model, &request, &mut receipt, now);
        let changes = model.changes[known..].to_vec();
        if self.fault == Fault::FollowerSideOutOfOrder {
            drop(model);
            // Only every other one is late: two that are equally late would stay in order.
            if receipt.position.sequence.0 % 2 == 1 {
                Self::gap();
            }
        }
        changes.into_iter().for_each(|change| self.project(change, clock.now()));
        Ok(receipt)
    }

    /// Locks the users of each edge, the follower first, and gives up where a database would see a deadlock.
    fn lock_users(&self, request: &WriteRequest) -> Result<Vec<Id>> {
        let mut held = Vec::new();
        for id in request.edge_commands().flat_map(|command| [command.edge.follower, command.edge.followee]) {
            if held.contains(&id) {
                continue;
            }
            let locked = (0..20).any(|_| {
                Self::gap();
                self.aside().locked.insert(id)
            });
            if !locked {
                held.iter().for_each(|id| _ = self.aside().locked.remove(id));
                return Err(Error::Storage { detail: "deadlock detected".to_owned() });
            }
            held.push(id);
        }
        Ok(held)
    }

    fn is_stale(&self, request: &WriteRequest, now: Timestamp) -> bool {
        let mut aside = self.aside();
        let keys: Vec<_> = request.edge_commands().map(|command| (request.kind, command.edge)).collect();
        let stale = keys.iter().any(|key| aside.versions.get(key).is_some_and(|&version| now < version));
        if !stale {
            aside.versions.extend(keys.into_iter().map(|key| (key, now)));
        }
        stale
    }

    fn distort_clock(&self, model: &mut Model, now: Timestamp) -> Timestamp {
        match self.fault {
            Fault::SinceGoesBackWithClock => model.floor = Timestamp::MIN,
            Fault::RefollowInSameMillisecond => {
                model.floor = model.changes.last().map_or(Timestamp::MIN, |change| change.at);
            }
            Fault::SinceInSeconds => return Timestamp::from_millis(now.millis() / 1_000 * 1_000),
            _ => {}
        }
        now
    }

    fn decide(&self, model: &mut Model, request: &WriteRequest, now: Timestamp) -> Result<Receipt> {
        match self.fault {
            Fault::RequestAppliedInPart => {
                let mut changed = Vec::new();
                for &command in &request.commands {
                    let one = WriteRequest { commands: vec![command], ..request.clone() };
                    changed.extend(model.write(&one, now)?.changed);
                }
                Ok(Receipt { position: model.position, changed })
            }
            Fault::RefusalTakesPosition => model.write(request, now).inspect_err(|_| {
                model.position = model.position.next();
            }),
            Fault::CommandsOutOfOrder => {
                let commands = request.commands.iter().rev().copied().collect();
                let mut receipt = model.write(&WriteRequest { commands, ..request.clone() }, now)?;
                receipt.changed.reverse();
                Ok(receipt)
            }
            _ => model.write(request, now),
        }
    }

    /// Changes counts by what was asked instead of by what was changed.
    fn count_blindly(&self, model: &Model, request: &WriteRequest, receipt: &Receipt) {
        let mut aside = self.aside();
        for (EdgeCommand { action, edge }, changed) in request.edge_commands().zip(&receipt.changed) {
            let by = match (self.fault, action, changed) {
                (Fault::RepeatAddsToCounts, EdgeAction::Follow, false) => 1,
                (Fault::CountsClampHidesDrift, EdgeAction::Unfollow, false) => -1,
                (Fault::RepeatAppendsRow, EdgeAction::Follow, false) => {
                    aside.repeated.insert((request.kind, edge));
                    continue;
                }
                (Fault::RepeatAppendsRow, EdgeAction::Unfollow, _) => {
                    aside.repeated.remove(&(request.kind, edge));
                    continue;
                }
                _ => continue,
            };
            aside.add_to_counts(model, (request.kind, edge), by);
        }
    }

    fn distort_log(&self, model: &mut Model, known: usize, now: Timestamp) {
        match self.fault {
            Fault::RefollowKeepsSince => keep_first_since(model, known),
            Fault::LogReordersRequest => {
                let bodies: Vec<_> =
                    model.changes[known..].iter().map(|change| change.body.clone()).collect();
                for (change, body) in model.changes[known..].iter_mut().zip(bodies.into_iter().rev()) {
                    change.body = body;
                }
            }
            Fault::LogTimeGoesBackWithClock => {
                let positions = model.changes[known..].iter().map(|change| (change.position.sequence, now));
                self.aside().times.extend(positions);
            }
            _ => {}
        }
    }

    fn distort_receipt(
        &self,
        model: &mut Model,
        request: &WriteRequest,
        receipt: &mut Receipt,
        now: Timestamp,
    ) {
        let nothing_changed = !receipt.changed.contains(&true);
        match self.fault {
            Fault::ReceiptOfStateBefore => receipt.position = at(model.position.sequence.0.saturating_sub(1)),
            Fault::RepeatSaysChanged => receipt.changed.fill(true),
            Fault::RepeatReturnsStart if nothing_changed => receipt.position = START,
            Fault::RepeatEmitsEvent if nothing_changed => {
                for command in request.edge_commands() {
                    let (kind, edge, at) = (request.kind, command.edge, now.max(model.floor));
                    let body = match command.action {
                        EdgeAction::Follow => ChangeBody::Followed { kind, edge },
                        EdgeAction::Unfollow => ChangeBody::Unfollowed { kind, edge, since: at },
                    };
                    model.position = model.position.next();
                    model.changes.push(Change { position: model.position, at, body });
                }
                receipt.position = model.position;
            }
            _ => {}
        }
    }

    /// Brings what is kept aside up to date with a change.
    fn project(&self, mut change: Change, now: Timestamp) {
        let (ChangeBody::Followed { kind, edge } | ChangeBody::Unfollowed { kind, edge, .. }) = change.body
        else {
            return;
        };
        let followed = matches!(change.body, ChangeBody::Followed { .. });
        let mut aside = self.aside();
        match self.fault {
            Fault::FollowerSideForgetsUnfollow if !followed => return,
            Fault::FollowerSideOwnTime => change.at = now,
            Fault::FollowerSideByClock => {
                let version = aside.versions.entry((kind, edge)).or_default();
                if now <= *version {
                    return;
                }
                *version = now;
            }
            Fault::CheckFillsStale => _ = aside.cached.remove(&(kind, edge)),
            Fault::RedeliveryCountsTwice if change.position.sequence.0.is_multiple_of(3) => {
                let by = if followed { 1 } else { -1 };
                aside.drift.entry((kind, edge.follower)).or_default().0 += by;
                aside.drift.entry((kind, edge.followee)).or_default().1 += by;
            }
            _ => {}
        }
        aside.copy.apply(change);
    }
}

impl Aside {
    /// Adds to both counts of an edge, and clamps them at 0.
    fn add_to_counts(&mut self, model: &Model, (kind, edge): (EdgeKind, Edge), by: i64) {
        let following = model.counts(kind, edge.follower).following as i64;
        let followers = model.counts(kind, edge.followee).followers as i64;
        let drift = &mut self.drift.entry((kind, edge.follower)).or_default().0;
        *drift = (*drift + by).max(-following);
        let drift = &mut self.drift.entry((kind, edge.followee)).or_default().1;
        *drift = (*drift + by).max(-followers);
    }
}

/// Gives each re-follow the time of the pair's first follow, as an upsert does that leaves the column alone.
fn keep_first_since(model: &mut Model, known: usize) {
    let firsts: Vec<_> = model.changes[known..]
        .iter()
        .filter(|change| matches!(change.body, ChangeBody::Followed { .. }))
        .filter_map(|change| model.changes.iter().find(|first| first.body == change.body))
        .cloned()
        .collect();
    for first in firsts {
        if let ChangeBody::Followed { kind, edge } = first.body {
            model.edges.entry((kind, edge)).and_modify(|since| *since = first.at);
        }
    }
}

fn locked_model(model: &Mutex<Model>) -> MutexGuard<'_, Model> {
    model.lock().expect("no call panics inside the model")
}
