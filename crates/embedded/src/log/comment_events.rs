//! Events of comment threads: what they say, and their bytes within a frame.
//!
//! ```text
//!   6 written    flags u8 | depth u8 | id | parent | author | reply_to (flag 1) | key 16 bytes (flag 2) | body
//!   7 edited     flags u8 | id | parent | author | version u32 | body
//!   8 withdrawn  status and flags u8 | id | parent | author | reason | moderator (flag 4)
//!   9 locked     locked u8 | parent
//! ```
//!
//! Ids of comments are 16 bytes, a parent is its kind u8 and its id, a body or reason is its length u32 and its bytes.
//! Flags of 6 and 7: 1 it replies to another comment, 2 it has an idempotency key, 4 its body was erased: then there are as many zeros.
//! Flags of 8: 4 the moderator is known, which makes the format of the store newer. A moderator is 1u8 and the id of a user, or
//! 2u8, length u32 and the name of a key. Integers are little-endian.

use std::sync::Arc;

use kinfolk_core::comments::{CommentChange, CommentId, CommentStatus, Moderator, Parent};
use kinfolk_core::{Id, KeyHash};

use crate::disk::byte_reader::{ByteReader, push_bytes};

const REPLY: u8 = 1;
const WITH_KEY: u8 = 2;
const ERASED: u8 = 4;
const WITH_MODERATOR: u8 = 4;

/// What comes before a body in an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommentHead {
    pub id: CommentId,
    pub parent: Parent,
    pub author: Id,
}

/// A body in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoggedBody {
    Kept(Arc<str>),
    /// It was erased, and had so many bytes.
    Erased(u32),
}

impl LoggedBody {
    /// What it says; nothing if that was erased.
    pub(crate) fn string(&self) -> Arc<str> {
        match self {
            Self::Kept(body) => Arc::clone(body),
            Self::Erased(_) => Arc::from(""),
        }
    }

    /// The same without what it says.
    fn erased(&self) -> Self {
        match self {
            Self::Kept(body) => Self::Erased(body.len() as u32),
            Self::Erased(length) => Self::Erased(*length),
        }
    }
}

/// What an event says about a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoggedCommentEvent {
    /// A comment was written.
    Written {
        head: CommentHead,
        depth: u8,
        reply_to: Option<CommentId>,
        key: Option<KeyHash>,
        body: LoggedBody,
    },
    /// A comment was edited, and has that version since.
    Edited { head: CommentHead, version: u32, body: LoggedBody },
    /// A comment was deleted, removed or purged.
    Withdrawn { head: CommentHead, status: CommentStatus, reason: Option<Arc<str>>, by: Option<Moderator> },
    /// A thread was locked or unlocked.
    Locked { parent: Parent, locked: bool },
}

impl LoggedCommentEvent {
    /// The type of the event in a frame.
    pub(crate) fn tag(&self) -> u8 {
        match self {
            Self::Written { .. } => 6,
            Self::Edited { .. } => 7,
            Self::Withdrawn { .. } => 8,
            Self::Locked { .. } => 9,
        }
    }

    /// The same event without its body, and as long.
    pub(crate) fn erased(&self) -> Self {
        match self.clone() {
            Self::Written { head, depth, reply_to, key, body } => {
                Self::Written { head, depth, reply_to, key, body: body.erased() }
            }
            Self::Edited { head, version, body } => Self::Edited { head, version, body: body.erased() },
            other => other,
        }
    }

    /// Whether it says which moderator acted.
    pub(crate) fn has_moderator(&self) -> bool {
        matches!(self, Self::Withdrawn { by: Some(_), .. })
    }

    /// The comment and version whose body the event has, if it has one.
    pub(crate) fn version(&self) -> Option<(CommentHead, u32)> {
        match self {
            Self::Written { head, .. } => Some((*head, 1)),
            Self::Edited { head, version, .. } => Some((*head, *version)),
            Self::Withdrawn { .. } | Self::Locked { .. } => None,
        }
    }

    /// The change as consumers read it. They see the body only if that is said to be current.
    pub(crate) fn into_change(self, is_current: bool) -> CommentChange {
        let shown = |body: LoggedBody| is_current.then(|| body.string());
        match self {
            Self::Written { head: CommentHead { id, parent, author }, depth, reply_to, body, .. } => {
                CommentChange::Written { id, parent, author, reply_to, depth, body: shown(body) }
            }
            Self::Edited { head: CommentHead { id, parent, author }, version, body } => {
                CommentChange::Edited { id, parent, author, version, body: shown(body) }
            }
            Self::Withdrawn { head: CommentHead { id, parent, author }, status, by, .. } => {
                CommentChange::Withdrawn { id, parent, author, status, by }
            }
            Self::Locked { parent, locked } => CommentChange::Locked { parent, locked },
        }
    }

    /// Appends the bytes after type, kind and time.
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        let erased = |body: &LoggedBody| if matches!(body, LoggedBody::Erased(_)) { ERASED } else { 0 };
        match self {
            Self::Written { head, depth, reply_to, key, body } => {
                let reply = reply_to.map_or(0, |_| REPLY);
                bytes.extend_from_slice(&[reply | key.map_or(0, |_| WITH_KEY) | erased(body), *depth]);
                push_head(bytes, *head);
                bytes.extend(reply_to.iter().flat_map(|id| id.0.to_be_bytes()));
                bytes.extend(key.iter().flatten());
                push_body(bytes, body);
            }
            Self::Edited { head, version, body } => {
                bytes.push(erased(body));
                push_head(bytes, *head);
                bytes.extend_from_slice(&version.to_le_bytes());
                push_body(bytes, body);
            }
            Self::Withdrawn { head, status, reason, by } => {
                bytes.push(*status as u8 | by.as_ref().map_or(0, |_| WITH_MODERATOR));
                push_head(bytes, *head);
                push_bytes(bytes, reason.as_deref().unwrap_or_default().as_bytes());
                by.iter().for_each(|by| push_moderator(bytes, by));
            }
            Self::Locked { parent, locked } => {
                bytes.push(u8::from(*locked));
                parent.push_to(bytes);
            }
        }
    }

    /// Reads an event of a type from these bytes; returns what is behind it.
    pub(crate) fn decode(tag: u8, reader: &mut ByteReader<'_>) -> Option<Self> {
        Some(match tag {
            6 => {
                let [flags, depth] = reader.take()?;
                (flags & !(REPLY | WITH_KEY | ERASED) == 0).then_some(())?;
                let head = read_head(reader)?;
                let reply_to = if flags & REPLY != 0 { Some(reader.comment_id()?) } else { None };
                let key = if flags & WITH_KEY != 0 { Some(reader.take()?) } else { None };
                Self::Written { head, depth, reply_to, key, body: read_body(reader, flags)? }
            }
            7 => {
                let [flags] = reader.take()?;
                (flags & !ERASED == 0).then_some(())?;
                let (head, version) = (read_head(reader)?, u32::from_le_bytes(reader.take()?));
                Self::Edited { head, version, body: read_body(reader, flags)? }
            }
            8 => {
                let [flags] = reader.take()?;
                let status = status_from(flags & !WITH_MODERATOR);
                let status = status.filter(|&status| status != CommentStatus::Active)?;
                let (head, reason) = (read_head(reader)?, reader.string()?);
                let by = if flags & WITH_MODERATOR != 0 { Some(reader.moderator()?) } else { None };
                Self::Withdrawn { head, status, reason: (!reason.is_empty()).then(|| reason.into()), by }
            }
            9 => {
                let [locked] = reader.take()?;
                (locked <= 1).then_some(())?;
                Self::Locked { parent: reader.parent()?, locked: locked == 1 }
            }
            _ => return None,
        })
    }
}

/// The status of that number.
pub(crate) fn status_from(number: u8) -> Option<CommentStatus> {
    CommentStatus::ALL.into_iter().find(|&status| status as u8 == number)
}

fn push_head(bytes: &mut Vec<u8>, CommentHead { id, parent, author }: CommentHead) {
    bytes.extend_from_slice(&id.0.to_be_bytes());
    parent.push_to(bytes);
    author.push_to(bytes);
}

/// Appends who removed or purged a comment.
pub(crate) fn push_moderator(bytes: &mut Vec<u8>, moderator: &Moderator) {
    match moderator {
        Moderator::User(id) => {
            bytes.push(1);
            id.push_to(bytes);
        }
        Moderator::Service(key) => {
            bytes.push(2);
            push_bytes(bytes, key.as_bytes());
        }
    }
}

fn push_body(bytes: &mut Vec<u8>, body: &LoggedBody) {
    match body {
        LoggedBody::Kept(body) => push_bytes(bytes, body.as_bytes()),
        LoggedBody::Erased(length) => push_bytes(bytes, &vec![0; *length as usize]),
    }
}

fn read_head(reader: &mut ByteReader<'_>) -> Option<CommentHead> {
    Some(CommentHead { id: reader.comment_id()?, parent: reader.parent()?, author: reader.id()? })
}

fn read_body(reader: &mut ByteReader<'_>, flags: u8) -> Option<LoggedBody> {
    if flags & ERASED == 0 {
        return Some(LoggedBody::Kept(reader.string()?.into()));
    }
    let zeros = reader.length_and_bytes()?;
    zeros.iter().all(|&byte| byte == 0).then_some(LoggedBody::Erased(zeros.len() as u32))
}

#[cfg(test)]
mod tests {
    use kinfolk_core::comments::ParentKind;

    use kinfolk_core::IdKind;

    use super::*;

    /// The event, and the bytes after it.
    fn decode(tag: u8, ids: IdKind, bytes: &[u8]) -> Option<(LoggedCommentEvent, &[u8])> {
        let mut reader = ByteReader { ids, bytes };
        LoggedCommentEvent::decode(tag, &mut reader).map(|event| (event, reader.bytes))
    }

    fn events(of: impl Fn(u64) -> Id) -> Vec<LoggedCommentEvent> {
        let parent = Parent { kind: ParentKind::Item, id: of(2) };
        let head = CommentHead { id: CommentId(7 << 100), parent, author: of(3) };
        let body = || LoggedBody::Kept("ä\n".into());
        let (reply_to, key, depth) = (Some(CommentId(5)), Some([9; 16]), 50);
        let written = LoggedCommentEvent::Written { head, depth, reply_to, key, body: body() };
        let withdrawn = |status, reason: Option<&str>, by| LoggedCommentEvent::Withdrawn {
            head,
            status,
            reason: reason.map(Into::into),
            by,
        };
        vec![
            written.erased(),
            written,
            LoggedCommentEvent::Written { head, depth: 0, reply_to: None, key: None, body: body() },
            LoggedCommentEvent::Edited { head, version: 70_000, body: body() },
            LoggedCommentEvent::Edited { head, version: 2, body: LoggedBody::Erased(3) },
            withdrawn(CommentStatus::Removed, Some("spam"), None),
            withdrawn(CommentStatus::Purged, None, None),
            withdrawn(CommentStatus::Removed, Some("spam"), Some(Moderator::User(of(4)))),
            withdrawn(CommentStatus::Purged, None, Some(Moderator::Service("feed-service".into()))),
            LoggedCommentEvent::Locked { parent, locked: true },
            LoggedCommentEvent::Locked { parent, locked: false },
        ]
    }

    fn encoded(event: &LoggedCommentEvent) -> Vec<u8> {
        let mut bytes = Vec::new();
        event.encode(&mut bytes);
        bytes
    }

    #[test]
    fn events_round_trip_for_both_id_kinds() {
        for (ids, events) in [
            (IdKind::Integer, events(Id::Integer)),
            (IdKind::Uuid, events(|value| Id::Uuid(u128::from(value) << 90))),
        ] {
            for event in events {
                let mut bytes = encoded(&event);
                for cut in 0..bytes.len() {
                    assert_eq!(decode(event.tag(), ids, &bytes[..cut]), None, "{event:?}");
                }
                bytes.push(77);
                assert_eq!(decode(event.tag(), ids, &bytes), Some((event, &[77][..])));
            }
        }
    }

    /// A frame must keep its length when a body is erased from it.
    #[test]
    fn erasing_changes_no_length_and_leaves_nothing() {
        for event in events(Id::Integer) {
            let (before, after) = (encoded(&event), encoded(&event.erased()));
            assert_eq!(before.len(), after.len());
            assert!(event.version().is_none() || !after.windows(2).any(|pair| pair == "ä".as_bytes()));
            assert_eq!(event.erased().erased(), event.erased());
        }
    }

    /// The layout is a promise to every log on disk.
    #[test]
    fn comments_are_laid_out_as_documented() {
        let parent = Parent { kind: ParentKind::Post, id: Id::Integer(2) };
        let at = CommentHead { id: CommentId(1), parent, author: Id::Integer(3) };
        let body = LoggedBody::Kept("hi".into());
        let (reply_to, key) = (Some(CommentId(4)), Some([9; 16]));
        let event = LoggedCommentEvent::Written { head: at, depth: 6, reply_to, key, body };
        let number = |value: u8, length: usize| [vec![0; length - 1], vec![value]].concat();
        let head = [number(1, 16), vec![1], number(2, 8), number(3, 8)].concat();
        let rest = [number(4, 16), vec![9; 16], vec![2, 0, 0, 0], b"hi".to_vec()].concat();
        assert_eq!(encoded(&event), [vec![3, 6], head.clone(), rest].concat());

        let status = CommentStatus::Removed;
        let withdrawn =
            |by| LoggedCommentEvent::Withdrawn { head: at, status, reason: Some("no".into()), by };
        let reason = [head, vec![2, 0, 0, 0], b"no".to_vec()].concat();
        // As an older Kinfolk wrote it, which recorded nobody.
        assert_eq!(encoded(&withdrawn(None)), [vec![2], reason.clone()].concat());
        let user = [vec![6], reason.clone(), vec![1], number(8, 8)].concat();
        assert_eq!(encoded(&withdrawn(Some(Moderator::User(Id::Integer(8))))), user);
        let key = [vec![6], reason, vec![2, 3, 0, 0, 0], b"key".to_vec()].concat();
        assert_eq!(encoded(&withdrawn(Some(Moderator::Service("key".into())))), key);
    }
}
