//! The bytes of posts: keys and values of the rows. Which rows there are is documented with the tree.

use std::sync::Arc;

use kinfolk_core::feeds::{Delivery, Post, PostKey, PostState};
use kinfolk_core::{Id, IdKind, Timestamp};

use crate::lsm::{decode_since, push_list_key, read_list_key, since_value};

pub(crate) const RECORD: u8 = 1;
pub(crate) const BY_AUTHOR: u8 = 2;
pub(crate) const KEY: u8 = 3;
pub(crate) const PULLED_AUTHOR: u8 = 4;
/// The key of the row with the newest id that the store made.
pub(crate) const NEWEST_GENERATED_KEY: [u8; 1] = [5];

const PULLED: u8 = 1;
const WITH_PAYLOAD: u8 = 2;
const DELETED: u8 = 4;

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// There is a post.
    Present(Post, Delivery),
    /// There was one.
    Deleted { author: Id, created_at: Timestamp },
}

impl Record {
    /// The bytes of the row's value.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (flags, author, created_at, payload) = match self {
            Self::Present(post, delivery) => {
                let payload = if post.payload.is_some() { WITH_PAYLOAD } else { 0 };
                let bytes = post.payload.as_deref().unwrap_or_default();
                (delivery_flag(*delivery) | payload, post.author, post.created_at, bytes)
            }
            Self::Deleted { author, created_at } => (DELETED, *author, *created_at, ""),
        };
        let mut value = Vec::with_capacity(1 + 16 + 6 + payload.len());
        value.push(flags);
        author.push_to(&mut value);
        value.extend_from_slice(&since_value(created_at));
        value.extend_from_slice(payload.as_bytes());
        value
    }

    /// Reads the value of the row of `id`.
    pub(crate) fn decode(id: Id, value: &[u8]) -> Option<Self> {
        let (&flags, rest) = value.split_first()?;
        let (author, rest) = rest.split_at_checked(id.kind().id_len())?;
        let (created_at, payload) = rest.split_at_checked(6)?;
        let author = id.kind().read(author)?;
        let created_at = decode_since(created_at)?;
        if flags == DELETED {
            return payload.is_empty().then_some(Self::Deleted { author, created_at });
        }
        let delivery = read_delivery(flags & !WITH_PAYLOAD)?;
        let payload = match flags & WITH_PAYLOAD != 0 {
            true => Some(Arc::from(std::str::from_utf8(payload).ok()?)),
            false => payload.is_empty().then_some(None)?,
        };
        Some(Self::Present(Post { id, author, created_at, payload }, delivery))
    }

    /// What is known of the id.
    pub(crate) fn into_state(self) -> PostState {
        match self {
            Self::Present(post, delivery) => PostState::Present(post, delivery),
            Self::Deleted { author, .. } => PostState::Deleted { author },
        }
    }
}

/// Whether a record says that there is a post, without reading all of it.
pub(crate) fn read_presence(value: &[u8]) -> Option<bool> {
    value.first().map(|flags| flags & DELETED == 0)
}

pub(crate) fn delivery_flag(delivery: Delivery) -> u8 {
    match delivery {
        Delivery::Push => 0,
        Delivery::Pull => PULLED,
    }
}

fn read_delivery(flags: u8) -> Option<Delivery> {
    match flags {
        0 => Some(Delivery::Push),
        PULLED => Some(Delivery::Pull),
        _ => None,
    }
}

fn tagged(tag: u8, id: Id) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + 16 + 6 + 16);
    key.push(tag);
    id.push_to(&mut key);
    key
}

/// The key of a post's record.
pub(crate) fn record_key(id: Id) -> Vec<u8> {
    tagged(RECORD, id)
}

/// What the keys of an author's posts begin with.
pub(crate) fn author_prefix(author: Id) -> Vec<u8> {
    tagged(BY_AUTHOR, author)
}

/// The key of a post in its author's list.
pub(crate) fn author_key(author: Id, at: PostKey) -> Vec<u8> {
    let mut key = author_prefix(author);
    push_list_key(&mut key, at);
    key
}

/// The key of an author who has had a post pulled.
pub(crate) fn pulled_key(author: Id) -> Vec<u8> {
    tagged(PULLED_AUTHOR, author)
}

/// The id after the tag, where there is nothing else.
pub(crate) fn read_tagged(ids: IdKind, key: &[u8]) -> Option<Id> {
    ids.read(key.get(1..)?)
}

/// The author and the key of a row by author, and how the post is delivered.
pub(crate) fn read_author_row(ids: IdKind, key: &[u8], value: &[u8]) -> Option<(Id, PostKey, Delivery)> {
    let (author, at) = key.get(1..)?.split_at_checked(ids.id_len())?;
    let [flags] = value else { return None };
    Some((ids.read(author)?, read_list_key(ids, at)?, read_delivery(*flags)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(of: impl Fn(u64) -> Id) -> Vec<Record> {
        let post = |payload: Option<&str>| Post {
            id: of(7),
            author: of(9),
            created_at: Timestamp::MAX,
            payload: payload.map(Arc::from),
        };
        vec![
            Record::Present(post(None), Delivery::Push),
            Record::Present(post(Some("{}")), Delivery::Pull),
            Record::Present(post(Some("")), Delivery::Push),
            Record::Deleted { author: of(9), created_at: Timestamp::from_millis(3) },
        ]
    }

    #[test]
    fn rows_decode_to_what_they_came_from() {
        for of in [Id::Integer as fn(u64) -> Id, |value| Id::Uuid(u128::from(value) << 64)] {
            let ids = of(0).kind();
            for record in records(of) {
                let value = record.encode();
                assert_eq!(read_presence(&value), Some(matches!(record, Record::Present(..))));
                assert_eq!(Record::decode(of(7), &value), Some(record));
                assert_eq!(Record::decode(of(7), &value[..ids.id_len()]), None);
            }
            let at = PostKey { since: Timestamp::from_millis(5), id: of(7) };
            let key = author_key(of(9), at);
            let row = read_author_row(ids, &key, &[delivery_flag(Delivery::Pull)]);
            assert_eq!(row, Some((of(9), at, Delivery::Pull)));
            assert_eq!(read_tagged(ids, &pulled_key(of(9))), Some(of(9)));
        }
    }

    /// The layout is a promise to every store on disk.
    #[test]
    fn the_layout_is_as_documented() {
        let (id, author) = (Id::Integer(0x0102), Id::Integer(0x0304));
        let at = PostKey { since: Timestamp::from_millis(0x0a0b), id };
        assert_eq!(record_key(id), [1, 0, 0, 0, 0, 0, 0, 1, 2]);
        let not_id = [255, 255, 255, 255, 255, 255, 0xfe, 0xfd];
        let expected =
            [&[2, 0, 0, 0, 0, 0, 0, 3, 4][..], &[255, 255, 255, 255, 0xf5, 0xf4], &not_id].concat();
        assert_eq!(author_key(author, at), expected);
        let post = Post { id, author, created_at: at.since, payload: Some(Arc::from("{}")) };
        let value = Record::Present(post, Delivery::Pull).encode();
        assert_eq!(value, [&[3, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0x0a, 0x0b][..], b"{}"].concat());
        let gone = Record::Deleted { author, created_at: at.since }.encode();
        assert_eq!(gone, [4, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0x0a, 0x0b]);
    }
}
