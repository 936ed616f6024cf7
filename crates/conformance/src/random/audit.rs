//! Audits what several threads did to one store: do the receipts, the change log and the final state tell one
//! story? Positions are the order; the wall clock is no witness.
//!
//! An operation whose outcome is unknown may be in the log, once and whole, at any place after what its caller had seen when it
//! began; or not at all.

use std::collections::BTreeMap;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::{EdgeAction, EdgeCommand, Receipt};
use kinfolk_core::{EdgeKind, Frontier, GraphStore, Id, Position, Sequence, Shard};

use crate::model::Model;
use crate::random::compare::{Verdict, answer, compare, equal};
use crate::seen::Seen;
use crate::users::by_shard;

/// A request of one follower that was not refused.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub kind: EdgeKind,
    pub commands: Vec<EdgeCommand>,
    pub outcome: Outcome,
}

/// What a caller knows about its request.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Acknowledged(Receipt),
    /// It may or may not have happened, or may happen yet, after what the caller had seen.
    Unknown {
        after: Frontier,
    },
}

/// A request that succeeded, with its receipt.
#[derive(Clone, Copy, Debug)]
struct Success<'a> {
    record: &'a Record,
    receipt: &'a Receipt,
}

impl<'a> Success<'a> {
    fn of(record: &'a Record) -> Option<Self> {
        match &record.outcome {
            Outcome::Acknowledged(receipt) => Some(Self { record, receipt }),
            Outcome::Unknown { .. } => None,
        }
    }

    /// How many events the request made, as its receipt says.
    fn events(self) -> u64 {
        self.receipt.changed.iter().filter(|&&changed| changed).count() as u64
    }

    /// The position whose state the request found: its events follow directly on it.
    fn began(self) -> Position {
        let Position { shard, sequence } = self.receipt.position;
        Sequence(sequence.0.saturating_sub(self.events())).on(shard)
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
    let successes = threads.iter().flatten().filter_map(Success::of);
    let seen = Seen::new(store, successes.map(|one| one.receipt.position).collect::<Frontier>());
    let changes = by_shard(answer("changes", seen.whole_log())?);
    audit_story(&changes, threads)?;
    audit_limit(&changes, following_limit)?;
    compare(store, &Model::replay(changes), users)
}

/// Whether a log, by shard, and what threads know of their requests tell one story.
fn audit_story(changes: &[Change], threads: &[Vec<Record>]) -> Verdict {
    for records in threads {
        audit_order_of_one_thread(records)?;
    }
    let mut records: BTreeMap<Shard, Vec<Success<'_>>> = BTreeMap::new();
    for success in threads.iter().flatten().filter_map(Success::of) {
        records.entry(success.receipt.position.shard).or_default().push(success);
    }
    let mut logs: BTreeMap<Shard, &[Change]> = records.keys().map(|&shard| (shard, &[][..])).collect();
    let of_one_shard = changes.chunk_by(|a, b| a.position.shard == b.position.shard);
    logs.extend(of_one_shard.map(|log| (log[0].position.shard, log)));
    let unknown: Vec<&Record> =
        threads.iter().flatten().filter(|record| Success::of(record).is_none()).collect();
    for (shard, log) in logs {
        audit_positions(shard, log)?;
        let claimed = audit_receipts(shard, log, &records.remove(&shard).unwrap_or_default())?;
        explain(shard, log, &claimed, &unknown)?;
    }
    Ok(())
}

/// A thread that waits for each answer must see its own writes in the order in which it made them, on each shard.
fn audit_order_of_one_thread(records: &[Record]) -> Verdict {
    let mut newest: BTreeMap<Shard, Success<'_>> = BTreeMap::new();
    for after in records.iter().filter_map(Success::of) {
        if let Some(before) = newest.insert(after.receipt.position.shard, after)
            && after.began() < before.receipt.position
        {
            return Err(format!("{after:?} came after {before:?} but is ordered before it"));
        }
    }
    Ok(())
}

fn audit_positions(shard: Shard, changes: &[Change]) -> Verdict {
    for (change, expected) in changes.iter().zip(1..) {
        equal(|| "position in the log".to_owned(), &change.position, &Sequence(expected).on(shard))?;
    }
    match changes.windows(2).find(|pair| pair[1].at < pair[0].at) {
        Some(pair) => Err(format!("time goes back in the log: {pair:?}")),
        None => Ok(()),
    }
}

/// Replays the log of a shard and, at the state that each request found, looks whether its receipt is what it should be
/// and whether its events follow, all of them and together. Returns which events belong to a receipt.
fn audit_receipts(shard: Shard, changes: &[Change], records: &[Success<'_>]) -> Result<Vec<bool>, String> {
    let mut by_beginning: BTreeMap<Sequence, Vec<Success<'_>>> = BTreeMap::new();
    for record in records {
        by_beginning.entry(record.began().sequence).or_default().push(*record);
    }
    let mut claimed = vec![false; changes.len()];
    let mut state = Model::of_shard(shard);
    for index in 0..=changes.len() {
        for record in by_beginning.remove(&state.position().sequence).unwrap_or_default() {
            audit_receipt(&state, record, &changes[index..])?;
            for claimed in &mut claimed[index..][..record.events() as usize] {
                equal(|| format!("whether another made the events of {record:?}"), claimed, &false)?;
                *claimed = true;
            }
        }
        changes.get(index).cloned().into_iter().for_each(|change| state.apply(change));
    }
    match by_beginning.into_values().flatten().next() {
        Some(record) => Err(format!("{record:?} has a position that the log does not reach")),
        None => Ok(claimed),
    }
}

fn audit_receipt(state: &Model, success: Success<'_>, changes: &[Change]) -> Verdict {
    let record = success.record;
    let what = || format!("{record:?}, which found position {}", state.position());
    let expected = effects(state, record);
    equal(|| format!("what changed in {}", what()), &success.receipt.changed.to_vec(), &expected)?;
    equal(|| format!("whether the log has {}", what()), &follows(changes, record, &expected), &true)
}

/// For each command, whether it changes anything at a state.
fn effects(state: &Model, record: &Record) -> Vec<bool> {
    let mut exists = BTreeMap::new();
    let effect = |command: &EdgeCommand| {
        let exists = exists.entry(command.edge).or_insert_with(|| state.contains(record.kind, command.edge));
        let wanted = command.action == EdgeAction::Follow;
        std::mem::replace(exists, wanted) != wanted
    };
    record.commands.iter().map(effect).collect()
}

/// Whether a log goes on with the events of a request.
fn follows(changes: &[Change], record: &Record, effects: &[bool]) -> bool {
    let events = record.commands.iter().zip(effects).filter(|(_, changed)| **changed);
    let mut upcoming = changes.iter();
    events
        .into_iter()
        .all(|(command, _)| upcoming.next().is_some_and(|change| tells_of(change, record.kind, *command)))
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

/// Whether every event that belongs to no receipt was made by a request of unknown outcome, each of which made events at most
/// once, and whole.
fn explain(shard: Shard, changes: &[Change], claimed: &[bool], unknown: &[&Record]) -> Verdict {
    let Some(index) = claimed.iter().position(|claimed| !claimed) else { return Ok(()) };
    let mut state = Model::of_shard(shard);
    changes[..index].iter().cloned().for_each(|change| state.apply(change));
    for (place, record) in unknown.iter().enumerate() {
        let Outcome::Unknown { after } = &record.outcome else { continue };
        let effects = effects(&state, record);
        let count = effects.iter().filter(|&&changed| changed).count();
        let is_early = after.covers(changes[index].position);
        let is_free = || claimed[index..].iter().take(count).all(|claimed| !claimed);
        if count == 0 || is_early || !follows(&changes[index..], record, &effects) || !is_free() {
            continue;
        }
        let mut claimed = claimed.to_vec();
        claimed[index..][..count].fill(true);
        let others = [&unknown[..place], &unknown[place + 1..]].concat();
        if explain(shard, changes, &claimed, &others).is_ok() {
            return Ok(());
        }
    }
    Err(format!("nobody made {:?}, or it was made twice", changes[index]))
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

#[cfg(test)]
mod tests {
    use kinfolk_core::{IdKind, Timestamp};

    use super::*;
    use crate::users::edge;

    const KIND: EdgeKind = EdgeKind::Follow;
    const FOLLOW: EdgeAction = EdgeAction::Follow;
    const UNFOLLOW: EdgeAction = EdgeAction::Unfollow;

    fn at(sequence: u64) -> Position {
        Sequence(sequence).on(Shard::ONLY)
    }

    fn command(action: EdgeAction) -> EdgeCommand {
        EdgeCommand { action, edge: edge(IdKind::Integer, 1, 2) }
    }

    fn acknowledged(action: EdgeAction, position: u64, changed: bool) -> Record {
        let receipt = Receipt { position: at(position), changed: vec![changed].into() };
        Record { kind: KIND, commands: vec![command(action)], outcome: Outcome::Acknowledged(receipt) }
    }

    fn unknown(action: EdgeAction, after: u64) -> Record {
        let outcome = Outcome::Unknown { after: at(after).into() };
        Record { kind: KIND, commands: vec![command(action)], outcome }
    }

    /// A log of changes of one pair.
    fn log(actions: &[EdgeAction]) -> Vec<Change> {
        let (kind, edge, since) = (KIND, edge(IdKind::Integer, 1, 2), Timestamp::MIN);
        let body = |action: &EdgeAction| match action {
            EdgeAction::Follow => ChangeBody::Followed { kind, edge },
            EdgeAction::Unfollow => ChangeBody::Unfollowed { kind, edge, since },
        };
        let change = |(action, position)| Change { position: at(position), at: since, body: body(action) };
        actions.iter().zip(1..).map(change).collect()
    }

    #[test]
    fn an_unknown_outcome_may_have_happened_or_not() {
        audit_story(&log(&[FOLLOW]), &[vec![unknown(FOLLOW, 0)]]).expect("it happened");
        audit_story(&log(&[]), &[vec![unknown(FOLLOW, 0)]]).expect("it did not");
        let later = [vec![unknown(FOLLOW, 0), acknowledged(UNFOLLOW, 0, false)]];
        audit_story(&log(&[FOLLOW]), &later).expect("it happened after its return");
        let between =
            [vec![acknowledged(FOLLOW, 1, true), unknown(UNFOLLOW, 1), acknowledged(FOLLOW, 3, true)]];
        audit_story(&log(&[FOLLOW, UNFOLLOW, FOLLOW]), &between).expect("it happened in between");
    }

    #[test]
    fn an_acknowledged_write_is_not_lost() {
        let lost = [vec![acknowledged(FOLLOW, 1, true)]];
        audit_story(&log(&[]), &lost).expect_err("the log does not reach it");
        let undone = [vec![acknowledged(FOLLOW, 1, true), unknown(FOLLOW, 1)]];
        audit_story(&log(&[FOLLOW, UNFOLLOW]), &undone).expect_err("nobody has undone it");
        let overwritten = [vec![unknown(FOLLOW, 0)], vec![acknowledged(UNFOLLOW, 1, true)]];
        audit_story(&log(&[FOLLOW]), &overwritten).expect_err("the log has another event in its place");
    }

    #[test]
    fn what_was_not_acknowledged_happens_once_at_most() {
        let once = [vec![unknown(FOLLOW, 0), acknowledged(UNFOLLOW, 2, true)]];
        audit_story(&log(&[FOLLOW, UNFOLLOW]), &once).expect("once");
        audit_story(&log(&[FOLLOW, UNFOLLOW, FOLLOW]), &once).expect_err("twice");
        let two = [vec![unknown(FOLLOW, 0), acknowledged(UNFOLLOW, 2, true), unknown(FOLLOW, 2)]];
        audit_story(&log(&[FOLLOW, UNFOLLOW, FOLLOW]), &two).expect("each of two once");
    }

    #[test]
    fn nothing_happens_before_it_began() {
        let records = [vec![acknowledged(UNFOLLOW, 2, true), unknown(FOLLOW, 2)]];
        audit_story(&log(&[FOLLOW, UNFOLLOW]), &records).expect_err("the follow had not begun");
        audit_story(&log(&[FOLLOW, UNFOLLOW]), &[vec![unknown(FOLLOW, 0)], records[0][..1].to_vec()])
            .expect("it had");
    }

    #[test]
    fn a_request_of_unknown_outcome_is_whole() {
        let both = Record { commands: vec![command(FOLLOW), command(UNFOLLOW)], ..unknown(FOLLOW, 0) };
        audit_story(&log(&[FOLLOW, UNFOLLOW]), &[vec![both.clone()]]).expect("whole");
        audit_story(&log(&[FOLLOW]), &[vec![both]]).expect_err("a part of it");
    }
}
