//! The truth of one shard: the edges of its followers and its log, which change together.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::{Edge, EdgeAction, Receipt, WriteRequest};
use kinfolk_core::{EdgeKind, Id, Position, Result, Sequence, Shard, Timestamp};

use super::lists::Lists;
use crate::model::limit_reached;

/// A shard's truth.
#[derive(Clone, Debug)]
pub(super) struct Source {
    shard: Shard,
    pub(super) following: Lists,
    /// The whole log. Projections and layers go on reading what was trimmed, as if it had waited for them.
    log: Vec<Change>,
    /// What the clock showed when each change was acknowledged.
    acknowledged_at: Vec<Timestamp>,
    /// Changes up to here are not shown any more.
    trimmed: Sequence,
    /// No later change is earlier than this.
    floor: Timestamp,
}

impl Source {
    pub(super) fn new(shard: Shard) -> Self {
        Self {
            shard,
            following: Lists::default(),
            log: Vec::new(),
            acknowledged_at: Vec::new(),
            trimmed: Sequence::START,
            floor: Timestamp::MIN,
        }
    }

    /// The newest position.
    pub(super) fn newest(&self) -> Position {
        Sequence(self.log.len() as u64).on(self.shard)
    }

    /// The newest change that was trimmed.
    pub(super) fn trimmed(&self) -> Position {
        self.trimmed.on(self.shard)
    }

    /// How many changes can be trimmed: the last one always stays.
    pub(super) fn trimmable(&self) -> u64 {
        (self.log.len() as u64).saturating_sub(self.trimmed.0 + 1)
    }

    /// Trims so many of the oldest changes that are kept.
    pub(super) fn trim(&mut self, count: u64) {
        self.trimmed = Sequence(self.trimmed.0 + count);
    }

    /// The newest change that was acknowledged before a time.
    pub(super) fn acknowledged_before(&self, time: Timestamp) -> Sequence {
        let older = self.acknowledged_at.iter().rposition(|&at| at < time);
        Sequence(older.map_or(0, |index| index as u64 + 1))
    }

    /// The log after a sequence.
    pub(super) fn log_after(&self, after: Sequence) -> &[Change] {
        self.log.get(after.0 as usize..).unwrap_or_default()
    }

    /// A part of the log, cut to what there is.
    pub(super) fn log_between(&self, range: Range<Sequence>) -> Vec<Change> {
        let count = range.end.0.saturating_sub(range.start.0) as usize;
        let from = Sequence(range.start.0.saturating_sub(1));
        self.log_after(from).iter().take(count).cloned().collect()
    }

    pub(super) fn since(&self, kind: EdgeKind, edge: Edge) -> Option<Timestamp> {
        self.following.since((kind, edge.follower), edge.followee)
    }

    /// Applies a request whole, or refuses it whole.
    pub(super) fn write(&mut self, request: &WriteRequest, now: Timestamp) -> Result<Receipt> {
        let WriteRequest { kind, follower, following_limit, .. } = *request;
        let mut count = self.following.len((kind, follower));
        let mut floor = self.floor;
        let mut edges: BTreeMap<Id, Option<Timestamp>> = BTreeMap::new();
        let mut events = Vec::new();
        let mut changed = Vec::new();
        for command in &request.commands {
            let edge = Edge { follower, followee: command.followee };
            let exists = edges.entry(command.followee).or_insert_with(|| self.since(kind, edge));
            let at = now.max(floor);
            let body = match (command.action, *exists) {
                (EdgeAction::Follow, Some(_)) | (EdgeAction::Unfollow, None) => None,
                (EdgeAction::Follow, None) => {
                    if count >= u64::from(following_limit) {
                        return Err(limit_reached(follower, following_limit));
                    }
                    count += 1;
                    floor = at;
                    *exists = Some(at);
                    Some(ChangeBody::Followed { kind, edge })
                }
                (EdgeAction::Unfollow, Some(since)) => {
                    count -= 1;
                    floor = at.max(since.plus_millis(1));
                    *exists = None;
                    Some(ChangeBody::Unfollowed { kind, edge, since })
                }
            };
            changed.push(body.is_some());
            events.extend(body.map(|body| (at, body)));
        }
        for (at, body) in events {
            self.apply(Change { position: self.newest().next(), at, body }, now);
        }
        Ok(Receipt { position: self.newest(), changed: changed.into() })
    }

    fn apply(&mut self, change: Change, now: Timestamp) {
        self.floor = self.floor.max(change.at);
        match change.body {
            ChangeBody::Followed { kind, edge } => {
                self.following.insert((kind, edge.follower), edge.followee, change.at);
            }
            ChangeBody::Unfollowed { kind, edge, since } => {
                self.following.remove((kind, edge.follower), edge.followee);
                self.floor = self.floor.max(since.plus_millis(1));
            }
            _ => unreachable!("this store has edges only"),
        }
        self.log.push(change);
        self.acknowledged_at.push(now);
    }

    /// The shard as it was when its log was so long.
    pub(super) fn restored(&self, length: u64) -> Self {
        let mut restored = Self::new(self.shard);
        let kept = self.log.iter().zip(&self.acknowledged_at).take(length as usize);
        kept.for_each(|(change, &now)| restored.apply(change.clone(), now));
        restored.trimmed = Sequence(self.trimmed.0.min(length));
        restored
    }
}

/// A follower's set of followees at one position.
pub(super) struct Snapshot {
    pub(super) members: BTreeSet<Id>,
    pub(super) sequence: Sequence,
}

impl Source {
    pub(super) fn snapshot(&self, of: (EdgeKind, Id)) -> Snapshot {
        Snapshot { members: self.following.ids(of).collect(), sequence: self.newest().sequence }
    }
}
