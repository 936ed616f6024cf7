//! Cursors of comments: the signed key after which the next page begins, bound to one list.

use super::{CommentId, CommentOrder, Parent};
use crate::{Error, Id, Keyring, Result};

/// The list that a cursor belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CommentList {
    /// A comment thread, in an order.
    Thread(Parent, CommentOrder),
    /// The branches of a comment thread.
    Branches(Parent),
    /// An author's comments.
    By(Id),
    /// The versions of a comment.
    Versions(CommentId),
}

impl CommentList {
    /// Signed but not part of the text: identifies the list.
    fn context(self) -> Vec<u8> {
        let mut context = b"kinfolk cursor 1 ".to_vec();
        match self {
            Self::Thread(parent, order) => {
                context.extend_from_slice(match order {
                    CommentOrder::Oldest => b"co",
                    CommentOrder::Newest => b"cn",
                });
                parent.push_to(&mut context);
            }
            Self::Branches(parent) => {
                context.extend_from_slice(b"cb");
                parent.push_to(&mut context);
            }
            Self::By(author) => {
                context.extend_from_slice(b"ca");
                author.push_to(&mut context);
            }
            Self::Versions(id) => {
                context.extend_from_slice(b"cv");
                context.extend_from_slice(&id.0.to_be_bytes());
            }
        }
        context
    }

    /// The cursor for a client that continues after a key: numbers of 16 bytes each, big-endian, sealed.
    pub(crate) fn encode<const LEN: usize>(self, key: [u128; LEN], keys: &Keyring) -> String {
        let message: Vec<u8> = key.iter().flat_map(|number| number.to_be_bytes()).collect();
        keys.seal(&self.context(), &message)
    }

    /// The key in a client's cursor for this list.
    pub(crate) fn decode<const LEN: usize>(self, text: &str, keys: &Keyring) -> Result<[u128; LEN]> {
        let message = keys.open(&self.context(), text).ok_or(Error::InvalidCursor)?;
        let (numbers, rest) = message.as_chunks::<16>();
        let numbers: Vec<u128> = numbers.iter().map(|&bytes| u128::from_be_bytes(bytes)).collect();
        if !rest.is_empty() {
            return Err(Error::InvalidCursor);
        }
        numbers.try_into().map_err(|_| Error::InvalidCursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SigningKey;
    use crate::comments::ParentKind;

    #[test]
    fn a_cursor_belongs_to_its_list() {
        let keys = Keyring::new(SigningKey::new([7; 32]), []);
        let parent = |kind, id| Parent { kind, id };
        let post = parent(ParentKind::Post, Id::Integer(5));
        let lists = [
            CommentList::Thread(post, CommentOrder::Oldest),
            CommentList::Thread(post, CommentOrder::Newest),
            CommentList::Thread(parent(ParentKind::Item, Id::Integer(5)), CommentOrder::Oldest),
            CommentList::Thread(parent(ParentKind::Post, Id::Integer(6)), CommentOrder::Oldest),
            CommentList::Thread(parent(ParentKind::Post, Id::Uuid(5)), CommentOrder::Oldest),
            CommentList::Branches(post),
            CommentList::By(Id::Integer(5)),
            CommentList::By(Id::Integer(6)),
            CommentList::Versions(CommentId(5)),
        ];
        for (at, list) in lists.into_iter().enumerate() {
            let text = list.encode([9, u128::MAX], &keys);
            for (other_at, other) in lists.into_iter().enumerate() {
                let read = other.decode::<2>(&text, &keys).ok();
                assert_eq!(read, (at == other_at).then_some([9, u128::MAX]), "{list:?} {other:?}");
            }
            assert!(list.decode::<1>(&text, &keys).is_err());
            assert!(list.decode::<2>("", &keys).is_err());
        }
    }
}
