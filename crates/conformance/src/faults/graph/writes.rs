//! Faults of writing edges: what is decided, what the log and the receipt say, and what projections make of it.

use std::sync::Mutex;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand, Receipt, WriteRequest};
use kinfolk_core::{Clock, EdgeKind, Error, Id, Position, Result, Sequence, Timestamp};

use crate::faults::{Fault, FaultState, Planted, locked_model};
use crate::model::Model;
use crate::users::START;

impl Planted {
    pub(crate) fn write(
        &self,
        model: &Mutex<Model>,
        mut request: WriteRequest,
        clock: &dyn Clock,
    ) -> Result<Receipt> {
        if self.fault == Fault::OppositeLocks {
            let locked = self.lock_users(&request)?;
            let result = locked_model(model).write(&request, clock.now());
            locked.iter().for_each(|id| _ = self.state().locked.remove(id));
            return result;
        }
        self.distort_limit(model, &mut request)?;

        let mut model = locked_model(model);
        let now = self.distort_clock(&mut model, clock.now());
        let known = model.changes.len();
        if self.fault == Fault::VersionFromClock && self.is_stale(&request, now) {
            return Ok(Receipt {
                position: model.position,
                changed: vec![false; request.commands.len()].into(),
            });
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
                self.state().locked.insert(id)
            });
            if !locked {
                held.iter().for_each(|id| _ = self.state().locked.remove(id));
                return Err(Error::Storage { detail: "deadlock detected".to_owned() });
            }
            held.push(id);
        }
        Ok(held)
    }

    fn is_stale(&self, request: &WriteRequest, now: Timestamp) -> bool {
        let mut state = self.state();
        let keys: Vec<_> = request.edge_commands().map(|command| (request.kind, command.edge)).collect();
        let stale = keys.iter().any(|key| state.versions.get(key).is_some_and(|&version| now < version));
        if !stale {
            state.versions.extend(keys.into_iter().map(|key| (key, now)));
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
                    let one = WriteRequest { commands: [command].into(), ..request.clone() };
                    changed.extend(model.write(&one, now)?.changed);
                }
                Ok(Receipt { position: model.position, changed: changed.into() })
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
        let mut state = self.state();
        for (EdgeCommand { action, edge }, changed) in request.edge_commands().zip(&receipt.changed) {
            let by = match (self.fault, action, changed) {
                (Fault::RepeatAddsToCounts, EdgeAction::Follow, false) => 1,
                (Fault::CountsClampHidesDrift, EdgeAction::Unfollow, false) => -1,
                (Fault::RepeatAppendsRow, EdgeAction::Follow, false) => {
                    state.repeated.insert((request.kind, edge));
                    continue;
                }
                (Fault::RepeatAppendsRow, EdgeAction::Unfollow, _) => {
                    state.repeated.remove(&(request.kind, edge));
                    continue;
                }
                _ => continue,
            };
            state.add_to_counts(model, (request.kind, edge), by);
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
                self.state().times.extend(positions);
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
            Fault::ReceiptOfStateBefore => {
                let Position { shard, sequence } = model.position;
                receipt.position = Sequence(sequence.0.saturating_sub(1)).on(shard);
            }
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

    /// Applies a change to the state of the fault.
    fn project(&self, mut change: Change, now: Timestamp) {
        let (ChangeBody::Followed { kind, edge } | ChangeBody::Unfollowed { kind, edge, .. }) = change.body
        else {
            return;
        };
        let followed = matches!(change.body, ChangeBody::Followed { .. });
        let mut state = self.state();
        match self.fault {
            Fault::FollowerSideForgetsUnfollow if !followed => return,
            Fault::FollowerSideOwnTime => change.at = now,
            Fault::FollowerSideByClock => {
                let version = state.versions.entry((kind, edge)).or_default();
                if now <= *version {
                    return;
                }
                *version = now;
            }
            Fault::CheckFillsStale => _ = state.cached.remove(&(kind, edge)),
            Fault::RedeliveryCountsTwice if change.position.sequence.0.is_multiple_of(3) => {
                let by = if followed { 1 } else { -1 };
                state.drift.entry((kind, edge.follower)).or_default().0 += by;
                state.drift.entry((kind, edge.followee)).or_default().1 += by;
            }
            _ => {}
        }
        state.copy.apply(change);
    }
}

impl FaultState {
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
