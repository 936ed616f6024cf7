//! Cursors: the signed key after which the next page of one list begins (keyset pagination, never an offset).

use crate::graph::{ListKey, Side, UserSet};
use crate::{EdgeKind, Error, Id, Keyring, Result, Timestamp};

/// The list that a cursor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListName {
    /// The user's followees.
    Following,
    /// The user's followers.
    Followers,
    /// The user's mutual followers.
    Friends,
    /// The user's posts.
    Posts,
    /// The user's home feed.
    Feed,
}

/// The cursors of one user's list. A cursor of one list is refused for any other list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCursor {
    /// The name of the list.
    pub list: ListName,
    /// The kind of edge.
    pub kind: EdgeKind,
    /// The owner of the list.
    pub of: Id,
}

impl ListCursor {
    /// Signed but not part of the text: identifies the list.
    fn context(self) -> Vec<u8> {
        let mut context = b"kinfolk cursor 1 ".to_vec();
        context.push(match self.list {
            ListName::Following => b'g',
            ListName::Followers => b'r',
            ListName::Friends => b'f',
            ListName::Posts => b'p',
            ListName::Feed => b'h',
        });
        context.push(self.kind.number());
        self.of.push_to(&mut context);
        context
    }

    /// The text for a client that continues after `last`: since (8 bytes, big-endian) and id (8 or 16), sealed.
    pub fn encode(self, last: ListKey, keys: &Keyring) -> String {
        let mut message = last.since.millis().to_be_bytes().to_vec();
        last.id.push_to(&mut message);
        keys.seal(&self.context(), &message)
    }

    /// The key in a client's cursor for this list.
    pub fn decode(self, text: &str, keys: &Keyring) -> Result<ListKey> {
        let message = keys.open(&self.context(), text).ok_or(Error::InvalidCursor)?;
        let (since, id) = message.split_first_chunk::<8>().ok_or(Error::InvalidCursor)?;
        Ok(ListKey {
            since: Timestamp::from_millis(u64::from_be_bytes(*since)),
            id: self.of.kind().read(id).ok_or(Error::InvalidCursor)?,
        })
    }
}

/// The cursors of an intersection of sets, bound to these sets in any order.
#[derive(Clone, Copy, Debug)]
pub struct OverlapCursor<'a> {
    /// The kind of edge.
    pub kind: EdgeKind,
    /// The sets; at least one.
    pub sets: &'a [UserSet],
}

impl OverlapCursor<'_> {
    fn context(self) -> Vec<u8> {
        let mut sets: Vec<(u8, Id)> = self.sets.iter().map(|set| (side_byte(set.side), set.of)).collect();
        sets.sort_unstable();
        let mut context = b"kinfolk cursor 1 o".to_vec();
        context.push(self.kind.number());
        for (side, of) in sets {
            context.push(side);
            of.push_to(&mut context);
        }
        context
    }

    /// The text for a client that continues after `last`: its id (8 or 16 bytes, big-endian), sealed.
    pub fn encode(self, last: Id, keys: &Keyring) -> String {
        let mut message = Vec::new();
        last.push_to(&mut message);
        keys.seal(&self.context(), &message)
    }

    /// The id in a client's cursor for this intersection.
    pub fn decode(self, text: &str, keys: &Keyring) -> Result<Id> {
        let message = keys.open(&self.context(), text).ok_or(Error::InvalidCursor)?;
        let kind = self.sets.first().ok_or(Error::InvalidCursor)?.of.kind();
        kind.read(&message).ok_or(Error::InvalidCursor)
    }
}

fn side_byte(side: Side) -> u8 {
    match side {
        Side::Following => b'g',
        Side::Followers => b'r',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SigningKey;

    #[test]
    fn a_cursor_belongs_to_its_list() {
        let keys = Keyring::new(SigningKey::new([7; 32]), []);
        for of in [Id::Integer(5), Id::Uuid(5)] {
            let list = ListCursor { list: ListName::Followers, kind: EdgeKind::Follow, of };
            let last = ListKey { since: Timestamp::from_millis(12), id: of };
            let text = list.encode(last, &keys);
            assert_eq!(list.decode(&text, &keys).unwrap(), last);

            let others = [
                ListCursor { list: ListName::Following, ..list },
                ListCursor { list: ListName::Friends, ..list },
                ListCursor { list: ListName::Posts, ..list },
                ListCursor { list: ListName::Feed, ..list },
                ListCursor { kind: EdgeKind::Block, ..list },
                ListCursor { of: Id::Integer(6), ..list },
                ListCursor { of: Id::Uuid(6), ..list },
            ];
            for other in others {
                assert!(matches!(other.decode(&text, &keys), Err(Error::InvalidCursor)), "{other:?}");
            }
            assert!(list.decode("", &keys).is_err());
        }
    }

    #[test]
    fn a_cursor_of_an_overlap_belongs_to_its_sets_in_any_order() {
        let keys = Keyring::new(SigningKey::new([7; 32]), []);
        let set = |side, of| UserSet { side, of: Id::Integer(of) };
        let (a, b, c) = (set(Side::Following, 1), set(Side::Followers, 2), set(Side::Following, 2));
        let of = |sets: &[UserSet], text: &str| {
            OverlapCursor { kind: EdgeKind::Follow, sets }.decode(text, &keys).ok()
        };
        let text = OverlapCursor { kind: EdgeKind::Follow, sets: &[a, b] }.encode(Id::Integer(9), &keys);
        assert_eq!(of(&[a, b], &text), Some(Id::Integer(9)));
        assert_eq!(of(&[b, a], &text), Some(Id::Integer(9)));
        for others in [&[a][..], &[a, c], &[a, b, c], &[]] {
            assert_eq!(of(others, &text), None, "{others:?}");
        }
        assert!(OverlapCursor { kind: EdgeKind::Block, sets: &[a, b] }.decode(&text, &keys).is_err());
    }
}
