//! The bytes of comments: keys and values of the rows. Which rows there are is documented with the tree.

use kinfolk_core::comments::{Comment, CommentId, CommentStatus, CommentThreadState, CommentVersion, Parent};
use kinfolk_core::{Id, IdKind, Sequence, Timestamp};

use crate::disk::byte_reader::ByteReader;
use crate::log::{push_moderator, status_from};
use crate::lsm::{decode_since, since_value};

pub(crate) const RECORD: u8 = 1;
pub(crate) const PARENT: u8 = 2;
pub(crate) const REPLY: u8 = 3;
pub(crate) const BY_AUTHOR: u8 = 4;
pub(crate) const OLDER_BODY: u8 = 5;
pub(crate) const KEY: u8 = 6;
pub(crate) const STATE: u8 = 7;
pub(crate) const REPLY_COUNT: u8 = 8;
pub(crate) const UNERASED: u8 = 9;

const STATUS: u8 = 3;
const WITH_REPLY_TO: u8 = 4;
const WITH_EDITED_AT: u8 = 8;
const WITH_REASON: u8 = 16;
const WITH_BODY: u8 = 32;
const WITH_MODERATOR: u8 = 64;

/// What the row of a comment says: the comment, but for the count of its replies, which has a row of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Its count of replies is 0.
    pub comment: Comment,
    /// Where its body is in the log.
    pub position: Sequence,
}

impl Record {
    /// The newest body, as a version.
    pub(crate) fn newest_version(&self) -> Option<StoredVersion> {
        let Comment { version, created_at, edited_at, .. } = self.comment;
        let (at, body) = (edited_at.unwrap_or(created_at), self.comment.body.clone()?);
        Some(StoredVersion { position: self.position, version: CommentVersion { version, at, body } })
    }

    /// The bytes of the row's value.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Self { comment, position } = self;
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let flags = comment.status as u8
            | flag(comment.reply_to.is_some(), WITH_REPLY_TO)
            | flag(comment.edited_at.is_some(), WITH_EDITED_AT)
            | flag(comment.reason.is_some(), WITH_REASON)
            | flag(comment.removed_by.is_some(), WITH_MODERATOR)
            | flag(comment.body.is_some(), WITH_BODY);
        let mut value = vec![flags, comment.depth];
        comment.author.push_to(&mut value);
        value.extend_from_slice(&since_value(comment.created_at));
        value.extend_from_slice(&comment.version.to_be_bytes());
        value.extend_from_slice(&position.0.to_be_bytes());
        value.extend(comment.reply_to.iter().flat_map(|id| id.0.to_be_bytes()));
        value.extend(comment.edited_at.iter().flat_map(|&at| since_value(at)));
        if let Some(reason) = &comment.reason {
            value.extend_from_slice(&(reason.len() as u32).to_be_bytes());
            value.extend_from_slice(reason.as_bytes());
        }
        comment.removed_by.iter().for_each(|by| push_moderator(&mut value, by));
        value.extend_from_slice(comment.body.as_deref().unwrap_or_default().as_bytes());
        value
    }

    /// Reads a row's value.
    pub(crate) fn decode(parent: Parent, id: CommentId, value: &[u8]) -> Option<Self> {
        let mut reader = ByteReader { ids: parent.id.kind(), bytes: value };
        let [flags, depth] = reader.take()?;
        let (author, created_at) = (reader.id()?, decode_since(&reader.take::<6>()?)?);
        let version = u32::from_be_bytes(reader.take()?);
        let position = Sequence(u64::from_be_bytes(reader.take()?));
        let reply_to = if flags & WITH_REPLY_TO != 0 { Some(reader.comment_id()?) } else { None };
        let edited_at =
            if flags & WITH_EDITED_AT != 0 { Some(decode_since(&reader.take::<6>()?)?) } else { None };
        let reason = if flags & WITH_REASON != 0 {
            let length = u32::from_be_bytes(reader.take()?);
            Some(std::str::from_utf8(reader.slice(length as usize)?).ok()?.into())
        } else {
            None
        };
        let removed_by = if flags & WITH_MODERATOR != 0 { Some(reader.moderator()?) } else { None };
        let body = std::str::from_utf8(reader.bytes).ok()?;
        (flags & WITH_BODY != 0 || body.is_empty()).then_some(())?;
        let comment = Comment {
            id,
            parent,
            author,
            reply_to,
            depth,
            created_at,
            version,
            edited_at,
            status: status_from(flags & STATUS)?,
            body: (flags & WITH_BODY != 0).then(|| body.into()),
            reason,
            removed_by,
            reply_count: 0,
        };
        Some(Self { comment, position })
    }
}

/// The status and version of a record, without reading all of it.
pub(crate) fn read_version(ids: IdKind, value: &[u8]) -> Option<(CommentStatus, u32)> {
    let mut reader = ByteReader { ids, bytes: value };
    let [flags, _] = reader.take()?;
    reader.id()?;
    reader.take::<6>()?;
    Some((status_from(flags & STATUS)?, u32::from_be_bytes(reader.take()?)))
}

/// A body that a comment has or had, and where it is in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredVersion {
    pub position: Sequence,
    pub version: CommentVersion,
}

impl StoredVersion {
    /// The bytes of the row's value.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut value = self.position.0.to_be_bytes().to_vec();
        value.extend_from_slice(&since_value(self.version.at));
        value.extend_from_slice(self.version.body.as_bytes());
        value
    }

    /// Reads a row.
    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Option<(CommentId, Self)> {
        let mut key = ByteReader { ids: IdKind::Uuid, bytes: key.get(1..)? };
        let (id, version) = (key.comment_id()?, u32::from_be_bytes(key.take()?));
        let mut reader = ByteReader { ids: IdKind::Uuid, bytes: value };
        let position = Sequence(u64::from_be_bytes(reader.take()?));
        let at = decode_since(&reader.take::<6>()?)?;
        let body = std::str::from_utf8(reader.bytes).ok()?.into();
        Some((id, Self { position, version: CommentVersion { version, at, body } }))
    }
}

/// The first byte of a key and what belongs to it.
fn key(tag: u8, parts: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut key = Vec::with_capacity(50);
    key.push(tag);
    parts(&mut key);
    key
}

fn push_comment(key: &mut Vec<u8>, id: CommentId) {
    key.extend_from_slice(&id.0.to_be_bytes());
}

/// All comments of a thread begin with this.
pub(crate) fn thread_prefix(parent: Parent) -> Vec<u8> {
    key(RECORD, |key| parent.push_to(key))
}

pub(crate) fn record_key(parent: Parent, id: CommentId) -> Vec<u8> {
    let mut key = thread_prefix(parent);
    push_comment(&mut key, id);
    key
}

/// What a row of a thread says of where it is.
pub(crate) fn read_record_key(ids: IdKind, key: &[u8]) -> Option<(Parent, CommentId)> {
    let mut reader = ByteReader { ids, bytes: key.get(1..)? };
    Some((reader.parent()?, reader.comment_id()?))
}

pub(crate) fn parent_key(id: CommentId) -> Vec<u8> {
    key(PARENT, |key| push_comment(key, id))
}

pub(crate) fn parent_value(parent: Parent) -> Vec<u8> {
    let mut value = Vec::new();
    parent.push_to(&mut value);
    value
}

pub(crate) fn read_parent(ids: IdKind, value: &[u8]) -> Option<Parent> {
    ByteReader { ids, bytes: value }.parent()
}

/// All direct replies to a comment, or all comments at the top, begin with this.
pub(crate) fn branch_prefix(parent: Parent, reply_to: Option<CommentId>) -> Vec<u8> {
    key(REPLY, |key| {
        parent.push_to(key);
        push_comment(key, reply_to.unwrap_or(CommentId(0)));
    })
}

pub(crate) fn reply_key(parent: Parent, reply_to: Option<CommentId>, id: CommentId) -> Vec<u8> {
    let mut key = branch_prefix(parent, reply_to);
    push_comment(&mut key, id);
    key
}

pub(crate) fn read_reply_key(ids: IdKind, key: &[u8]) -> Option<(Parent, Option<CommentId>, CommentId)> {
    let mut reader = ByteReader { ids, bytes: key.get(1..)? };
    let (parent, reply_to, id) = (reader.parent()?, reader.comment_id()?, reader.comment_id()?);
    Some((parent, (reply_to != CommentId(0)).then_some(reply_to), id))
}

pub(crate) fn author_prefix(author: Id) -> Vec<u8> {
    key(BY_AUTHOR, |key| author.push_to(key))
}

pub(crate) fn author_key(author: Id, id: CommentId) -> Vec<u8> {
    let mut key = author_prefix(author);
    push_comment(&mut key, CommentId(!id.0));
    key
}

pub(crate) fn read_author_key(ids: IdKind, key: &[u8]) -> Option<(Id, CommentId)> {
    let mut reader = ByteReader { ids, bytes: key.get(1..)? };
    let (author, id) = (reader.id()?, reader.comment_id()?);
    Some((author, CommentId(!id.0)))
}

pub(crate) fn versions_prefix(id: CommentId) -> Vec<u8> {
    key(OLDER_BODY, |key| push_comment(key, id))
}

pub(crate) fn version_key(id: CommentId, version: u32) -> Vec<u8> {
    let mut key = versions_prefix(id);
    key.extend_from_slice(&version.to_be_bytes());
    key
}

pub(crate) fn state_key(parent: Parent) -> Vec<u8> {
    key(STATE, |key| parent.push_to(key))
}

pub(crate) fn state_value(state: CommentThreadState) -> Vec<u8> {
    let mut value = state.count.to_be_bytes().to_vec();
    value.push(u8::from(state.locked));
    value
}

pub(crate) fn read_state(value: &[u8]) -> Option<CommentThreadState> {
    let mut reader = ByteReader { ids: IdKind::Uuid, bytes: value };
    let count = u64::from_be_bytes(reader.take()?);
    let [locked] = reader.take()?;
    Some(CommentThreadState { count, locked: locked != 0 })
}

pub(crate) fn reply_count_key(id: CommentId) -> Vec<u8> {
    key(REPLY_COUNT, |key| push_comment(key, id))
}

/// The comment that a key with nothing but a comment's id behind its tag is about.
pub(crate) fn read_tagged(key: &[u8]) -> Option<CommentId> {
    let mut reader = ByteReader { ids: IdKind::Uuid, bytes: key.get(1..)? };
    reader.comment_id().filter(|_| reader.bytes.is_empty())
}

pub(crate) fn read_count(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_be_bytes)
}

pub(crate) fn unerased_key(id: CommentId) -> Vec<u8> {
    key(UNERASED, |key| push_comment(key, id))
}

/// When a comment was purged, and where its bodies are in the log.
pub(crate) fn unerased_value(at: Timestamp, positions: &[Sequence]) -> Vec<u8> {
    let mut value = since_value(at).to_vec();
    value.extend(positions.iter().flat_map(|position| position.0.to_be_bytes()));
    value
}

pub(crate) fn read_unerased(value: &[u8]) -> Option<(Timestamp, Vec<Sequence>)> {
    let (at, positions) = value.split_first_chunk::<6>()?;
    let (positions, rest) = positions.as_chunks::<8>();
    rest.is_empty().then_some(())?;
    let position = |&bytes: &[u8; 8]| Sequence(u64::from_be_bytes(bytes));
    Some((decode_since(at)?, positions.iter().map(position).collect()))
}

#[cfg(test)]
mod tests {
    use kinfolk_core::comments::{Moderator, ParentKind};

    use super::*;

    fn removed() -> Comment {
        Comment {
            id: CommentId(1),
            parent: Parent::post(Id::Integer(2)),
            author: Id::Integer(3),
            reply_to: None,
            depth: 7,
            created_at: Timestamp::from_millis(5),
            version: 2,
            edited_at: None,
            status: CommentStatus::Removed,
            body: None,
            reason: Some("no".into()),
            removed_by: None,
            reply_count: 0,
        }
    }

    #[test]
    fn records_round_trip() {
        let comment = Comment {
            reply_to: Some(CommentId(9)),
            edited_at: Some(Timestamp::MAX),
            removed_by: Some(Moderator::User(Id::Integer(8))),
            reason: Some("spam, ä".into()),
            body: Some("what\nit says".into()),
            ..removed()
        };
        let plain =
            Comment { reply_to: None, edited_at: None, reason: None, removed_by: None, ..comment.clone() };
        let service = Some(Moderator::Service("feed-service".into()));
        let purged =
            Comment { status: CommentStatus::Purged, body: None, removed_by: service, ..comment.clone() };
        let empty = Comment { body: Some("".into()), ..plain.clone() };
        let decode = |value: &[u8]| Record::decode(removed().parent, removed().id, value);
        for comment in [comment, plain, purged.clone(), empty] {
            let record = Record { comment, position: Sequence(77) };
            let value = record.encode();
            let version = Some((record.comment.status, record.comment.version));
            assert_eq!(read_version(IdKind::Integer, &value), version);
            assert_eq!(decode(&value), Some(record));
        }
        assert_eq!(decode(&[]), None);
        let whole = Record { comment: purged, position: Sequence(77) }.encode();
        for cut in 0..whole.len() {
            assert_eq!(decode(&whole[..cut]), None, "cut at {cut}");
        }
    }

    /// A promise to every store on disk: also to those that were written before moderators were recorded.
    #[test]
    fn records_are_laid_out_as_documented() {
        let record = |removed_by, body: Option<&str>| Record {
            comment: Comment { removed_by, body: body.map(Into::into), ..removed() },
            position: Sequence(77),
        };
        let number = |value: u8, length: usize| [vec![0; length - 1], vec![value]].concat();
        let head =
            [number(3, 8), number(5, 6), number(2, 4), number(77, 8), number(2, 4), b"no".to_vec()].concat();
        for (record, value) in [
            (record(None, Some("hi")), [vec![2 + 16 + 32, 7], head.clone(), b"hi".to_vec()]),
            (
                record(Some(Moderator::User(Id::Integer(8))), Some("hi")),
                [vec![2 + 16 + 32 + 64, 7], head.clone(), [vec![1], number(8, 8), b"hi".to_vec()].concat()],
            ),
            (
                record(Some(Moderator::Service("key".into())), None),
                [vec![2 + 16 + 64, 7], head, [vec![2, 3, 0, 0, 0], b"key".to_vec()].concat()],
            ),
        ] {
            assert_eq!(record.encode(), value.concat());
            let Comment { parent, id, .. } = record.comment;
            assert_eq!(Record::decode(parent, id, &value.concat()), Some(record));
        }
    }

    /// The layout is a promise to every store on disk.
    #[test]
    fn keys_are_laid_out_as_documented() {
        let parent = Parent { kind: ParentKind::Item, id: Id::Integer(0x0102) };
        let number = |value: u8, length: usize| [vec![0; length - 1], vec![value]].concat();
        let parent_bytes = [vec![2], vec![0, 0, 0, 0, 0, 0, 1, 2]].concat();
        let id = CommentId(5);
        assert_eq!(record_key(parent, id), [vec![1], parent_bytes.clone(), number(5, 16)].concat());
        let reply = [vec![3], parent_bytes.clone(), vec![0; 16], number(5, 16)].concat();
        assert_eq!(reply_key(parent, None, id), reply);
        assert_eq!(read_reply_key(IdKind::Integer, &reply), Some((parent, None, id)));
        let by_author = [vec![4], number(3, 8), vec![255; 15], vec![250]].concat();
        assert_eq!(author_key(Id::Integer(3), id), by_author);
        assert_eq!(read_author_key(IdKind::Integer, &by_author), Some((Id::Integer(3), id)));
        assert_eq!(version_key(id, 258), [vec![5], number(5, 16), vec![0, 0, 1, 2]].concat());
        assert_eq!(
            state_value(CommentThreadState { count: 1, locked: true }),
            [number(1, 8), vec![1]].concat()
        );
        let unerased = unerased_value(Timestamp::from_millis(1), &[Sequence(2)]);
        assert_eq!(unerased, [number(1, 6), number(2, 8)].concat());
        assert_eq!(read_unerased(&unerased), Some((Timestamp::from_millis(1), vec![Sequence(2)])));
    }
}
