//! Faults of the following limit: the ways to check it at the wrong time or against the wrong number.

use std::collections::BTreeSet;
use std::sync::Mutex;

use kinfolk_core::graph::{Edge, EdgeAction, WriteRequest};
use kinfolk_core::{EdgeKind, Id, Result};

use crate::faults::{Fault, Planted, locked_model};
use crate::model::{Model, limit_reached};

impl Planted {
    /// Checks the limit as the fault has it, and switches the right check off where the fault has none.
    pub(in crate::faults) fn distort_limit(
        &self,
        model: &Mutex<Model>,
        request: &mut WriteRequest,
    ) -> Result<()> {
        let before = locked_model(model).clone();
        match self.fault {
            Fault::LimitCheckedBefore => {
                before.clone().write(request, kinfolk_core::Timestamp::MIN)?;
                Self::gap();
            }
            Fault::LimitIgnoresOwnRequest => refuse_if(request, |follower, added| {
                added > 0 && following(&before, request.kind, follower) >= limit(request)
            })?,
            Fault::LimitForgetsFreedPlace => refuse_if(request, |follower, _| {
                let new = new_edges(&before, request, follower);
                new > 0 && following(&before, request.kind, follower) + new > limit(request)
            })?,
            Fault::LimitRefusesRepeat => refuse_if(request, |follower, added| {
                added > 0 && following(&before, request.kind, follower) >= limit(request)
            })?,
            Fault::LimitSharedByKinds => refuse_if(request, |follower, _| {
                let of_all_kinds: u64 =
                    EdgeKind::ALL.into_iter().map(|kind| following(&before, kind, follower)).sum();
                let new = new_edges(&before, request, follower);
                new > 0 && of_all_kinds + new > limit(request)
            })?,
            _ => {}
        }
        request.following_limit = match self.fault {
            Fault::LimitCheckedBefore | Fault::LimitIgnoresOwnRequest => u32::MAX,
            Fault::LimitOffByOne => request.following_limit + 1,
            _ => request.following_limit,
        };
        Ok(())
    }
}

fn limit(request: &WriteRequest) -> u64 {
    u64::from(request.following_limit)
}

fn following(model: &Model, kind: EdgeKind, follower: Id) -> u64 {
    model.counts(kind, follower).following
}

/// How many follows of a request would be new to a follower, each counted once.
fn new_edges(before: &Model, request: &WriteRequest, follower: Id) -> u64 {
    let follows = request.edge_commands().filter(|command| command.action == EdgeAction::Follow);
    let edges: BTreeSet<Edge> = follows.map(|command| command.edge).collect();
    let is_new = |edge: &&Edge| edge.follower == follower && !before.contains(request.kind, **edge);
    edges.iter().filter(is_new).count() as u64
}

/// Refuses a request if the rule says so for a follower and the number of its follow commands.
fn refuse_if(request: &WriteRequest, rule: impl Fn(Id, usize) -> bool) -> Result<()> {
    let follows = request.commands.iter().filter(|command| command.action == EdgeAction::Follow);
    if !request.commands.is_empty() && rule(request.follower, follows.count()) {
        return Err(limit_reached(request.follower, request.following_limit));
    }
    Ok(())
}
