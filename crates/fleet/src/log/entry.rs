//! An entry of the change log as it is stored: a type and a body.
//!
//! | type | what happened | body, in bytes |
//! |---|---|---|
//! | 1 | an edge was made | kind (1), follower, followee |
//! | 2 | an edge was removed | kind (1), follower, followee, since (8) |
//!
//! Ids are 8 or 16 bytes, as the deployment's id kind has them; numbers are big-endian. An edge's `since` is the entry's `at`.

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::{Edge, EdgeEvent};
use kinfolk_core::{EdgeKind, Error, Id, IdKind, Position, Result, Timestamp};

const FOLLOWED: i16 = 1;
const UNFOLLOWED: i16 = 2;

/// An entry, without its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) at: Timestamp,
    pub(crate) kind: i16,
    pub(crate) body: Vec<u8>,
}

impl Entry {
    /// The entry of a planned event.
    pub(crate) fn of_edge(event: &EdgeEvent) -> Self {
        let mut body = vec![event.kind.number()];
        push_id(&mut body, event.edge.follower);
        push_id(&mut body, event.edge.followee);
        let kind = match event.removed_since {
            None => FOLLOWED,
            Some(since) => {
                body.extend_from_slice(&since.millis().to_be_bytes());
                UNFOLLOWED
            }
        };
        Self { at: event.at, kind, body }
    }

    /// What the entry says.
    pub(crate) fn decode(&self, position: Position, id_kind: IdKind) -> Result<Change> {
        let body = self.read_body(id_kind);
        let body = body
            .ok_or_else(|| Error::Corrupt { detail: format!("entry {position} of the log can't be read") })?;
        Ok(Change { position, at: self.at, body })
    }

    fn read_body(&self, id_kind: IdKind) -> Option<ChangeBody> {
        let (&kind, mut rest) = self.body.split_first()?;
        let kind = EdgeKind::from_number(kind)?;
        let edge = Edge { follower: read_id(&mut rest, id_kind)?, followee: read_id(&mut rest, id_kind)? };
        match self.kind {
            FOLLOWED if rest.is_empty() => Some(ChangeBody::Followed { kind, edge }),
            UNFOLLOWED => {
                let since = Timestamp::from_millis(u64::from_be_bytes(rest.try_into().ok()?));
                Some(ChangeBody::Unfollowed { kind, edge, since })
            }
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

fn push_id(body: &mut Vec<u8>, id: Id) {
    match id {
        Id::Integer(value) => body.extend_from_slice(&value.to_be_bytes()),
        Id::Uuid(value) => body.extend_from_slice(&value.to_be_bytes()),
    }
}

fn read_id(body: &mut &[u8], id_kind: IdKind) -> Option<Id> {
    match id_kind {
        IdKind::Integer => {
            let (&bytes, rest) = body.split_first_chunk()?;
            *body = rest;
            Some(Id::Integer(u64::from_be_bytes(bytes)))
        }
        IdKind::Uuid => {
            let (&bytes, rest) = body.split_first_chunk()?;
            *body = rest;
            Some(Id::Uuid(u128::from_be_bytes(bytes)))
        }
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::{Sequence, Shard};

    use super::*;

    fn event(id: fn(u8) -> Id, removed_since: Option<u64>) -> EdgeEvent {
        EdgeEvent {
            kind: EdgeKind::Block,
            edge: Edge { follower: id(1), followee: id(2) },
            at: Timestamp::from_millis(9),
            removed_since: removed_since.map(Timestamp::from_millis),
        }
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
        assert_eq!((unfollowed.kind, unfollowed.body), (2, expected));
    }

    #[test]
    fn an_entry_says_what_was_planned() {
        let position = Sequence(3).on(Shard(1));
        for removed_since in [None, Some(7)] {
            let event = event(|id| Id::Uuid(id.into()), removed_since);
            let change = Entry::of_edge(&event).decode(position, IdKind::Uuid).unwrap();
            let (kind, edge) = (event.kind, event.edge);
            let expected = match event.removed_since {
                None => ChangeBody::Followed { kind, edge },
                Some(since) => ChangeBody::Unfollowed { kind, edge, since },
            };
            assert_eq!(change, Change { position, at: event.at, body: expected });
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
