//! Cursors: the signed place in one list where the next page begins. Keyset, never an offset.

use crate::graph::ListKey;
use crate::{EdgeKind, Error, Id, IdKind, Keyring, Result, Timestamp};

/// The list that a cursor belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListName {
    /// Whom the user follows.
    Following,
    /// Who follows the user.
    Followers,
    /// Who follows the user and is followed back.
    Friends,
}

/// A place in one user's list, bound to it: it is refused for any other list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCursor {
    /// Which list.
    pub list: ListName,
    /// Which kind of edge.
    pub kind: EdgeKind,
    /// Whose list.
    pub of: Id,
}

impl ListCursor {
    /// What is signed but not carried: the name of the list.
    fn context(self) -> Vec<u8> {
        let mut context = b"kinfolk cursor 1 ".to_vec();
        context.push(match self.list {
            ListName::Following => b'g',
            ListName::Followers => b'r',
            ListName::Friends => b'f',
        });
        context.push(self.kind.number());
        push_id(&mut context, self.of);
        context
    }

    /// The text for a client that continues after `last`: since (8 bytes, big-endian) and id (8 or 16), sealed.
    pub fn encode(self, last: ListKey, keys: &Keyring) -> String {
        let mut message = last.since.millis().to_be_bytes().to_vec();
        push_id(&mut message, last.id);
        keys.seal(&self.context(), &message)
    }

    /// The place that a client's text names in this list.
    pub fn decode(self, text: &str, keys: &Keyring) -> Result<ListKey> {
        let message = keys.open(&self.context(), text).ok_or(Error::InvalidCursor)?;
        let (since, id) = message.split_first_chunk::<8>().ok_or(Error::InvalidCursor)?;
        Ok(ListKey {
            since: Timestamp::from_millis(u64::from_be_bytes(*since)),
            id: read_id(self.of.kind(), id).ok_or(Error::InvalidCursor)?,
        })
    }
}

fn push_id(bytes: &mut Vec<u8>, id: Id) {
    match id {
        Id::Integer(value) => bytes.extend_from_slice(&value.to_be_bytes()),
        Id::Uuid(value) => bytes.extend_from_slice(&value.to_be_bytes()),
    }
}

fn read_id(kind: IdKind, bytes: &[u8]) -> Option<Id> {
    match kind {
        IdKind::Integer => bytes.try_into().ok().map(|bytes| Id::Integer(u64::from_be_bytes(bytes))),
        IdKind::Uuid => bytes.try_into().ok().map(|bytes| Id::Uuid(u128::from_be_bytes(bytes))),
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
}
