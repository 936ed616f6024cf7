//! An entry of the change log as it is stored: a type and a body.
//!
//! | type | what happened | body, in bytes |
//! |---|---|---|
//! | 1 | an edge was made | kind (1), follower, followee |
//! | 2 | an edge was removed | kind (1), follower, followee, since (8) |
//! | 3 | an edge was made that is older than its entry | kind (1), follower, followee, since (8) |
//! | 4 | a change was lost, and verification has filled its place | |
//!
//! Ids are 8 or 16 bytes, as the deployment's id kind has them; numbers are big-endian. The `since` of an edge of type 1 is the
//! entry's `at`. Imports write type 3; consumers of the log see it as any other new edge.

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::{Edge, EdgeEvent};
use kinfolk_core::{EdgeKind, Error, Id, IdKind, Position, Result, Timestamp};

const FOLLOWED: i16 = 1;
const UNFOLLOWED: i16 = 2;
const IMPORTED: i16 = 3;
const LOST: i16 = 4;

/// A planned event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedEvent {
    pub(crate) event: EdgeEvent,
    /// Since when a new edge exists, where that is not the time of its event.
    pub(crate) imported_since: Option<Timestamp>,
}

impl PlannedEvent {
    /// Since when the edge exists after the event, if it does.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.event.removed_since.is_none().then(|| self.imported_since.unwrap_or(self.event.at))
    }
}

impl From<EdgeEvent> for PlannedEvent {
    fn from(event: EdgeEvent) -> Self {
        Self { event, imported_since: None }
    }
}

/// A change as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedChange {
    /// What consumers see of it.
    pub change: Change,
    /// Since when an imported edge exists. Any other edge exists from the time of its change on.
    pub imported_since: Option<Timestamp>,
}

/// An entry, without its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) at: Timestamp,
    pub(crate) kind: i16,
    pub(crate) body: Vec<u8>,
}

impl Entry {
    /// The entry of a planned event.
    pub(crate) fn of_edge(planned: &PlannedEvent) -> Self {
        let event = &planned.event;
        let mut body = vec![event.kind.number()];
        event.edge.follower.push_to(&mut body);
        event.edge.followee.push_to(&mut body);
        let (kind, since) = match (event.removed_since, planned.imported_since) {
            (Some(since), _) => (UNFOLLOWED, Some(since)),
            (None, Some(since)) => (IMPORTED, Some(since)),
            (None, None) => (FOLLOWED, None),
        };
        body.extend(since.iter().flat_map(|since| since.millis().to_be_bytes()));
        Self { at: event.at, kind, body }
    }

    /// The entry in the place of a change that was lost. Its time is that of the entry before it.
    pub(crate) fn lost() -> Self {
        Self { at: Timestamp::MIN, kind: LOST, body: Vec::new() }
    }

    /// What the entry says.
    pub(crate) fn decode(&self, position: Position, id_kind: IdKind) -> Result<LoggedChange> {
        let (body, imported_since) = self
            .read_body(id_kind)
            .ok_or_else(|| Error::Corrupt { detail: format!("entry {position} of the log can't be read") })?;
        Ok(LoggedChange { change: Change { position, at: self.at, body }, imported_since })
    }

    fn read_body(&self, id_kind: IdKind) -> Option<(ChangeBody, Option<Timestamp>)> {
        if self.kind == LOST {
            // Whatever it was: consumers are told to read the graph afresh, as after an import.
            return Some((ChangeBody::Imported { kind: EdgeKind::Follow, edges: 0 }, None));
        }
        let (&kind, mut rest) = self.body.split_first()?;
        let kind = EdgeKind::from_number(kind)?;
        let edge = Edge { follower: take_id(&mut rest, id_kind)?, followee: take_id(&mut rest, id_kind)? };
        if self.kind == FOLLOWED && rest.is_empty() {
            return Some((ChangeBody::Followed { kind, edge }, None));
        }
        let since = Timestamp::from_millis(u64::from_be_bytes(rest.try_into().ok()?));
        match self.kind {
            UNFOLLOWED => Some((ChangeBody::Unfollowed { kind, edge, since }, None)),
            IMPORTED => Some((ChangeBody::Followed { kind, edge }, Some(since))),
            _ => None,
        }
    }
}

/// The earliest time that a change after this one may have: a follow after an unfollow is later than the edge that went.
pub(crate) fn floor_after(change: &Change) -> Timestamp {
    match change.body {
        ChangeBody::Unfollowed { since, .. } => change.at.max(since.plus_millis(1)),
        _ => change.at,
    }
}

fn take_id(body: &mut &[u8], id_kind: IdKind) -> Option<Id> {
    let (id, rest) = body.split_at_checked(id_kind.id_len())?;
    *body = rest;
    id_kind.read(id)
}

#[cfg(test)]
mod tests {
    use kinfolk_core::{Sequence, Shard};

    use super::*;

    fn event(id: fn(u8) -> Id, removed_since: Option<u64>) -> PlannedEvent {
        PlannedEvent::from(EdgeEvent {
            kind: EdgeKind::Block,
            edge: Edge { follower: id(1), followee: id(2) },
            at: Timestamp::from_millis(9),
            removed_since: removed_since.map(Timestamp::from_millis),
        })
    }

    /// Entries stay readable: these bytes are on disks.
    #[test]
    fn bytes_stay_as_they_are() {
        let followed = Entry::of_edge(&event(|id| Id::Integer(id.into()), None));
        assert_eq!(
            (followed.kind, &followed.body[..]),
            (1, &[2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2][..])
        );
        let unfollowed = Entry::of_edge(&event(|id| Id::Uuid(id.into()), Some(7)));
        let mut expected = vec![2];
        for last in [1, 2] {
            expected.extend([[0; 15].as_slice(), &[last]].concat());
        }
        expected.extend([0, 0, 0, 0, 0, 0, 0, 7]);
        assert_eq!((unfollowed.kind, &unfollowed.body), (2, &expected));
        let since = Some(Timestamp::from_millis(7));
        let imported = PlannedEvent { imported_since: since, ..event(|id| Id::Uuid(id.into()), None) };
        let imported = Entry::of_edge(&imported);
        assert_eq!((imported.kind, imported.body), (3, expected));
    }

    #[test]
    fn an_entry_says_what_was_planned() {
        let position = Sequence(3).on(Shard(1));
        for (removed_since, imported_since) in [(None, None), (Some(7), None), (None, Some(5))] {
            let imported_since = imported_since.map(Timestamp::from_millis);
            let planned = PlannedEvent { imported_since, ..event(|id| Id::Uuid(id.into()), removed_since) };
            let logged = Entry::of_edge(&planned).decode(position, IdKind::Uuid).unwrap();
            let EdgeEvent { kind, edge, at, removed_since } = planned.event;
            let body = match removed_since {
                None => ChangeBody::Followed { kind, edge },
                Some(since) => ChangeBody::Unfollowed { kind, edge, since },
            };
            assert_eq!(logged, LoggedChange { change: Change { position, at, body }, imported_since });
        }
    }

    #[test]
    fn damage_is_reported() {
        let entry = Entry::of_edge(&event(|id| Id::Integer(id.into()), Some(7)));
        for length in 0..entry.body.len() {
            let cut = Entry { body: entry.body[..length].to_vec(), ..entry.clone() };
            assert!(cut.decode(Sequence(1).on(Shard(0)), IdKind::Integer).is_err(), "{length} bytes");
        }
        let unknown = Entry { kind: 99, ..entry };
        assert!(unknown.decode(Sequence(1).on(Shard(0)), IdKind::Integer).is_err());
    }
}
