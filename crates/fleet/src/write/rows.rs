//! What a run of events leaves of each edge: rows are written once, however often an edge came and went.

use std::collections::BTreeMap;

use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Id, Position, Sequence, Timestamp};

use super::plan::Before;
use crate::log::{Entry, PlannedEvent};
use crate::postgres::IdValue;

/// An edge after some events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NetEdge {
    pub(crate) kind: EdgeKind,
    pub(crate) edge: Edge,
    /// Since when it exists, if it does.
    pub(crate) since: Option<Timestamp>,
    /// The last event about it.
    pub(crate) sequence: Sequence,
}

/// The last state of each edge that the events are about, by kind and edge.
pub(crate) fn net_edges(events: impl IntoIterator<Item = NetEdge>) -> Vec<NetEdge> {
    let last: BTreeMap<_, _> = events.into_iter().map(|event| ((event.kind, event.edge), event)).collect();
    last.into_values().collect()
}

/// The rows of a batch, a column each.
#[derive(Default)]
pub(crate) struct Rows {
    pub(super) removed: Edges,
    pub(super) added: Edges,
    pub(super) counted: Counted,
    pub(super) log: LogRows,
}

/// Rows of `following`.
#[derive(Default)]
pub(super) struct Edges {
    pub(super) shards: Vec<i16>,
    pub(super) kinds: Vec<i16>,
    pub(super) followers: Vec<IdValue>,
    pub(super) followees: Vec<IdValue>,
    /// Empty for edges that are removed.
    pub(super) since: Vec<i64>,
    pub(super) sequences: Vec<i64>,
}

/// Rows of `users`.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) shards: Vec<i16>,
    pub(super) kinds: Vec<i16>,
    pub(super) ids: Vec<IdValue>,
    pub(super) following: Vec<i64>,
    /// The newest change of the shard.
    pub(super) sequences: Vec<i64>,
}

/// Rows of `log`.
#[derive(Default)]
pub(super) struct LogRows {
    pub(super) shards: Vec<i16>,
    pub(super) sequences: Vec<i64>,
    pub(super) at: Vec<i64>,
    pub(super) kinds: Vec<i16>,
    pub(super) bodies: Vec<Vec<u8>>,
}

impl Rows {
    /// Adds the rows of events that come after the newest change of their shard.
    pub(crate) fn add(&mut self, before: &Before, newest: Position, planned: &[PlannedEvent]) {
        let shard = newest.shard.0 as i16;
        let sequences = || (newest.sequence.0 + 1..).map(Sequence);
        let events = sequences().zip(planned).map(|(sequence, planned)| NetEdge {
            kind: planned.event.kind,
            edge: planned.event.edge,
            since: planned.since(),
            sequence,
        });
        let mut steps: BTreeMap<(EdgeKind, Id), i64> = BTreeMap::new();
        for NetEdge { kind, edge, since, sequence } in net_edges(events) {
            let existed = before.since.contains_key(&(kind, edge));
            *steps.entry((kind, edge.follower)).or_default() +=
                i64::from(since.is_some()) - i64::from(existed);
            let rows = match since {
                Some(_) => &mut self.added,
                None if existed => &mut self.removed,
                // It came and went within the batch.
                None => continue,
            };
            rows.shards.push(shard);
            rows.kinds.push(kind.number().into());
            rows.followers.push(IdValue(edge.follower));
            rows.followees.push(IdValue(edge.followee));
            rows.since.extend(since.map(|since| since.millis() as i64));
            rows.sequences.push(sequence.0 as i64);
        }
        let last = newest.sequence.0 as i64 + planned.len() as i64;
        for ((kind, id), step) in steps {
            let following = before.following.get(&(kind, id)).copied().unwrap_or(0);
            self.counted.shards.push(shard);
            self.counted.kinds.push(kind.number().into());
            self.counted.ids.push(IdValue(id));
            self.counted.following.push(following as i64 + step);
            self.counted.sequences.push(last);
        }
        self.log.add(shard, sequences().zip(planned));
    }
}

impl LogRows {
    fn add<'a>(&mut self, shard: i16, events: impl Iterator<Item = (Sequence, &'a PlannedEvent)>) {
        for (sequence, planned) in events {
            let entry = Entry::of_edge(planned);
            self.shards.push(shard);
            self.sequences.push(sequence.0 as i64);
            self.at.push(entry.at.millis() as i64);
            self.kinds.push(entry.kind);
            self.bodies.push(entry.body);
        }
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::Id;

    use super::*;

    #[test]
    fn the_last_event_of_an_edge_counts() {
        let event = |to, since: Option<u64>, sequence| NetEdge {
            kind: EdgeKind::Follow,
            edge: Edge { follower: Id::Integer(1), followee: Id::Integer(to) },
            since: since.map(Timestamp::from_millis),
            sequence: Sequence(sequence),
        };
        let events = [
            event(9, Some(5), 1),
            event(2, Some(5), 2),
            event(9, None, 3),
            event(2, None, 4),
            event(2, Some(6), 5),
        ];
        assert_eq!(net_edges(events), [event(2, Some(6), 5), event(9, None, 3)]);
    }
}
