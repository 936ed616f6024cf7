//! A change of the log as a message, and back.

use kinfolk_api::Event;
use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Epoch, Sequence, Shard};

use crate::log::LoggedChange;

/// A change in the place of one that was lost, as consumers of the log see it, too.
const IMPORTED: &str = "imported";

/// The message of a change. Content is not in the log of a fleet yet; none of it may ever be in a message.
pub(crate) fn encode(epoch: Epoch, LoggedChange { change, imported_since }: &LoggedChange) -> Event {
    let nothing = Event {
        version: Event::VERSION,
        epoch: epoch.0,
        shard: change.position.shard.0,
        sequence: change.position.sequence.0,
        r#type: IMPORTED.into(),
        at: change.at.into(),
        follower: None,
        followee: None,
        since: None,
        previous: None,
    };
    match change.body {
        ChangeBody::Followed { kind, edge } => Event {
            r#type: kind.name().into(),
            follower: Some(edge.follower.into()),
            followee: Some(edge.followee.into()),
            since: Some(imported_since.unwrap_or(change.at).into()),
            ..nothing
        },
        ChangeBody::Unfollowed { kind, edge, since } => Event {
            r#type: format!("un{}", kind.name()).into(),
            follower: Some(edge.follower.into()),
            followee: Some(edge.followee.into()),
            previous: Some(since.into()),
            ..nothing
        },
        ChangeBody::Imported { .. }
        | ChangeBody::Posted { .. }
        | ChangeBody::PostDeleted { .. }
        | ChangeBody::Comment(_) => nothing,
    }
}

/// The change of a message, unless it is none that this version knows.
pub(super) fn decode(message: &[u8]) -> Option<(Epoch, LoggedChange)> {
    let event: Event = serde_json::from_slice(message).ok()?;
    if event.version != Event::VERSION {
        return None;
    }
    let at = event.at.into();
    let (body, imported_since) = if event.r#type == IMPORTED {
        (ChangeBody::Imported { kind: EdgeKind::Follow, edges: 0 }, None)
    } else {
        let edge = Edge { follower: event.follower?.into(), followee: event.followee?.into() };
        match (event.since, event.previous) {
            (Some(since), _) => {
                let kind = EdgeKind::from_name(&event.r#type)?;
                let since = since.into();
                (ChangeBody::Followed { kind, edge }, Some(since).filter(|since| *since != at))
            }
            (None, Some(previous)) => {
                let kind = EdgeKind::from_name(event.r#type.strip_prefix("un")?)?;
                (ChangeBody::Unfollowed { kind, edge, since: previous.into() }, None)
            }
            (None, None) => return None,
        }
    };
    let position = Sequence(event.sequence).on(Shard(event.shard));
    Some((Epoch(event.epoch), LoggedChange { change: Change { position, at, body }, imported_since }))
}

#[cfg(test)]
mod tests {
    use kinfolk_core::{Id, Timestamp};

    use super::*;

    #[test]
    fn a_change_survives_the_topic() {
        let (kind, edge) = (EdgeKind::Like, Edge { follower: Id::Uuid(1), followee: Id::Uuid(2) });
        let since = Timestamp::from_millis(4);
        for (body, imported_since) in [
            (ChangeBody::Followed { kind, edge }, None),
            (ChangeBody::Followed { kind, edge }, Some(since)),
            (ChangeBody::Unfollowed { kind, edge, since }, None),
            (ChangeBody::Imported { kind: EdgeKind::Follow, edges: 0 }, None),
        ] {
            let position = Sequence(9).on(Shard(3));
            let change = Change { position, at: Timestamp::from_millis(5), body };
            let logged = LoggedChange { change, imported_since };
            let message = serde_json::to_vec(&encode(Epoch(7), &logged)).unwrap();
            assert_eq!(decode(&message), Some((Epoch(7), logged)));
        }
    }

    #[test]
    fn what_is_not_known_is_no_change() {
        let known = r#"{"version":1,"epoch":7,"shard":3,"sequence":9,"type":"follow","at":"1970-01-01T00:00:00.005Z","follower":"1","followee":"2","since":"1970-01-01T00:00:00.005Z","previous":null}"#;
        assert!(decode(known.as_bytes()).is_some());
        for (from, to) in [
            ("\"version\":1", "\"version\":2"),
            ("\"follow\"", "\"adore\""),
            ("\"follower\":\"1\"", "\"follower\":null"),
            ("{", "["),
        ] {
            assert_eq!(decode(known.replacen(from, to, 1).as_bytes()), None, "{to}");
        }
    }
}
