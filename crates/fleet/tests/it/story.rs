//! What writers were told, and whether the log explains it: nothing that was acknowledged is lost, and nothing is invented.

use std::collections::{BTreeMap, BTreeSet};

use kinfolk_conformance::block_on;
use kinfolk_core::graph::{Edge, EdgeAction, EdgeStore, FollowerCommand, WriteRequest};
use kinfolk_core::{EdgeKind, Error, Position};
use kinfolk_fleet::Fleet;

use crate::audits::{about, whole_log};
use crate::processes::Acknowledged;

const KIND: EdgeKind = EdgeKind::Follow;

/// What a writer knows in the end.
#[derive(Default)]
pub struct Story {
    /// Changes that were acknowledged.
    pub acknowledged: Vec<(Position, EdgeAction, Edge)>,
    /// Requests that were acknowledged and found nothing to change.
    pub unchanged: Vec<(Position, EdgeAction, Edge)>,
    /// Requests whose outcome is unknown.
    pub unknown: Vec<(EdgeAction, Edge)>,
    pub refused: u64,
}

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Acknowledged(Position),
    /// It may have happened.
    Unknown,
    /// It has not happened.
    Refused,
}

impl Story {
    pub fn append(&mut self, mut other: Self) {
        self.acknowledged.append(&mut other.acknowledged);
        self.unchanged.append(&mut other.unchanged);
        self.unknown.append(&mut other.unknown);
        self.refused += other.refused;
    }

    pub fn write(&mut self, store: &Fleet, action: EdgeAction, edge: Edge) -> Outcome {
        let commands = vec![FollowerCommand { action, followee: edge.followee }];
        let request = WriteRequest {
            kind: KIND,
            follower: edge.follower,
            commands: commands.into(),
            following_limit: 1_000,
        };
        match block_on(store.write_one(request)) {
            Ok(receipt) => {
                let told = if receipt.changed[0] { &mut self.acknowledged } else { &mut self.unchanged };
                told.push((receipt.position, action, edge));
                Outcome::Acknowledged(receipt.position)
            }
            Err(Error::TimedOut) => {
                self.unknown.push((action, edge));
                Outcome::Unknown
            }
            Err(Error::Unavailable { .. } | Error::Overloaded { .. }) => {
                self.refused += 1;
                Outcome::Refused
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// What every log must have.
    pub fn changes(&self) -> Acknowledged {
        Acknowledged { changes: self.acknowledged.clone(), ..Acknowledged::default() }
    }

    /// Whether one order of the changes, that of the log, explains what was answered: for every pair by itself.
    pub fn check(&self, store: &Fleet) {
        let log = whole_log(store);
        let positions: BTreeSet<_> =
            self.acknowledged.iter().map(|(position, ..)| (position.shard, position.sequence)).collect();
        assert_eq!(positions.len(), self.acknowledged.len(), "a position was acknowledged twice");
        let mut unexplained: BTreeMap<(bool, Edge), i64> = BTreeMap::new();
        let key = |action: EdgeAction, edge: Edge| (action == EdgeAction::Follow, edge);
        for change in log.values() {
            let (action, edge) = about(change);
            *unexplained.entry(key(action, edge)).or_default() += 1;
        }
        for &(_, action, edge) in &self.acknowledged {
            *unexplained.entry(key(action, edge)).or_default() -= 1;
        }
        for &(action, edge) in &self.unknown {
            let left = unexplained.entry(key(action, edge)).or_default();
            *left -= i64::from(*left > 0);
        }
        unexplained.retain(|_, count| *count != 0);
        assert!(unexplained.is_empty(), "changes that nobody asked for, or that are lost: {unexplained:?}");
        for &(position, action, edge) in &self.unchanged {
            let of_pair = log.range(..=(position.shard, position.sequence)).rev();
            let last = of_pair.map(|(_, change)| about(change)).find(|(_, changed)| *changed == edge);
            let existed = last.is_some_and(|(last, _)| last == EdgeAction::Follow);
            assert_eq!(existed, action == EdgeAction::Follow, "{action:?} {edge:?} at {position}");
        }
    }
}
