//! Audits what several threads did to one store: do the receipts, the change log and the final state tell one
//! story? Positions are the order; the wall clock is no witness.

use std::collections::BTreeMap;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::{EdgeAction, EdgeCommand, Receipt};
use kinfolk_core::{EdgeKind, Frontier, GraphStore, Id, Sequence};

use crate::compare::{Verdict, answer, compare, equal};
use crate::model::Model;
use crate::seen::Seen;
use crate::users::at;

/// A request that succeeded.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub kind: EdgeKind,
    pub commands: Vec<EdgeCommand>,
    pub receipt: Receipt,
}

impl Record {
    /// How many events the request made, as its receipt says.
    fn events(&self) -> u64 {
        self.receipt.changed.iter().filter(|&&changed| changed).count() as u64
    }

    /// The position whose state the request found: its events follow directly on it.
    fn began(&self) -> Sequence {
        Sequence(self.receipt.position.sequence.0.saturating_sub(self.events()))
    }
}

/// Whether the store's story is one: `threads` holds each thread's requests in its own order. They must be all
/// writes since the store was empty, under one limit, and be over.
pub(crate) fn audit<S: GraphStore>(
    store: &S,
    threads: &[Vec<Record>],
    following_limit: u64,
    users: &[Id],
) -> Verdict {
    for records in threads {
        audit_order_of_one_thread(records)?;
    }
    let seen = Seen::new(
        store,
        threads.iter().flatten().map(|record| record.receipt.position).collect::<Frontier>(),
    );
    let changes = answer("changes", seen.whole_log())?;
    audit_positions(&changes)?;
    audit_receipts(&changes, threads.iter().flatten())?;
    audit_limit(&changes, following_limit)?;
    compare(store, &Model::replay(changes), users)
}

/// A thread that waits for each answer must see its own writes in the order in which it made them.
fn audit_order_of_one_thread(records: &[Record]) -> Verdict {
    for pair in records.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        if after.began() < before.receipt.position.sequence {
            return Err(format!("{after:?} came after {before:?} but is ordered before it"));
        }
    }
    Ok(())
}

fn audit_positions(changes: &[Change]) -> Verdict {
    for (change, expected) in changes.iter().zip(1..) {
        equal(|| "position in the log".to_owned(), &change.position, &at(expected))?;
    }
    match changes.windows(2).find(|pair| pair[1].at < pair[0].at) {
        Some(pair) => Err(format!("time goes back in the log: {pair:?}")),
        None => Ok(()),
    }
}

/// Replays the log and, at the state that each request found, looks whether its receipt is what it should be
/// and whether its events follow, all of them and together.
fn audit_receipts<'a>(changes: &[Change], records: impl Iterator<Item = &'a Record>) -> Verdict {
    let mut by_beginning: BTreeMap<Sequence, Vec<&Record>> = BTreeMap::new();
    let mut events = 0;
    for record in records {
        events += record.events();
        by_beginning.entry(record.began()).or_default().push(record);
    }
    equal(|| "events in the log, by the receipts".to_owned(), &(changes.len() as u64), &events)?;

    let mut state = Model::default();
    for index in 0..=changes.len() {
        for record in by_beginning.remove(&state.position().sequence).unwrap_or_default() {
            audit_receipt(&state, record, &changes[index..])?;
        }
        changes.get(index).cloned().into_iter().for_each(|change| state.apply(change));
    }
    match by_beginning.into_values().flatten().next() {
        Some(record) => Err(format!("{record:?} has a position that the log does not reach")),
        None => Ok(()),
    }
}

fn audit_receipt(state: &Model, record: &Record, changes: &[Change]) -> Verdict {
    let mut exists = BTreeMap::new();
    let mut upcoming = changes.iter();
    let what = || format!("{record:?}, which found position {}", state.position());
    for (command, &changed) in record.commands.iter().zip(&record.receipt.changed) {
        let wanted = command.action == EdgeAction::Follow;
        let exists = exists.entry(command.edge).or_insert_with(|| state.contains(record.kind, command.edge));
        equal(|| format!("whether {command:?} changed in {}", what()), &changed, &(*exists != wanted))?;
        *exists = wanted;
        if changed {
            let logged = upcoming.next().is_some_and(|change| tells_of(change, record.kind, *command));
            equal(|| format!("whether the log has {command:?} of {}", what()), &logged, &true)?;
        }
    }
    Ok(())
}

fn tells_of(change: &Change, of_kind: EdgeKind, command: EdgeCommand) -> bool {
    match (&change.body, command.action) {
        (ChangeBody::Followed { kind, edge }, EdgeAction::Follow)
        | (ChangeBody::Unfollowed { kind, edge, .. }, EdgeAction::Unfollow) => {
            (*kind, *edge) == (of_kind, command.edge)
        }
        _ => false,
    }
}

fn audit_limit(changes: &[Change], following_limit: u64) -> Verdict {
    let mut state = Model::default();
    for change in changes {
        state.apply(change.clone());
        if let ChangeBody::Followed { kind, edge } = change.body {
            let following = state.counts(kind, edge.follower).following;
            if following > following_limit {
                return Err(format!("{change:?} makes {following} edges, the limit is {following_limit}"));
            }
        }
    }
    Ok(())
}
