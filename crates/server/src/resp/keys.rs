//! The keys that the Redis commands take: `following:ID` and `followers:ID`.

use kinfolk_core::graph::{Edge, Side};
use kinfolk_core::{Error, Id, IdKind, Result};

/// One of a user's two sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub side: Side,
    pub of: Id,
}

impl Key {
    pub fn parse(kind: IdKind, text: &[u8]) -> Result<Self> {
        let (side, id) = if let Some(id) = text.strip_prefix(b"following:") {
            (Side::Following, id)
        } else if let Some(id) = text.strip_prefix(b"followers:") {
            (Side::Followers, id)
        } else {
            return Err(Error::WrongKey);
        };
        Ok(Self { side, of: kind.parse_bytes(id)? })
    }

    /// The edge that exists if `member` is in the set.
    pub fn edge(self, member: Id) -> Edge {
        match self.side {
            Side::Following => Edge { follower: self.of, followee: member },
            Side::Followers => Edge { follower: member, followee: self.of },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_families_and_no_other() {
        let key = Key::parse(IdKind::Integer, b"following:007").unwrap();
        assert_eq!(key, Key { side: Side::Following, of: Id::Integer(7) });
        assert_eq!(key.edge(Id::Integer(8)), Edge { follower: Id::Integer(7), followee: Id::Integer(8) });
        let key = Key::parse(IdKind::Integer, b"followers:7").unwrap();
        assert_eq!(key.edge(Id::Integer(8)), Edge { follower: Id::Integer(8), followee: Id::Integer(7) });
        for text in ["", "following", "following7", "FOLLOWING:7", "friends:7", "following :7"] {
            assert!(matches!(Key::parse(IdKind::Integer, text.as_bytes()), Err(Error::WrongKey)), "{text}");
        }
        for text in ["following:", "followers:x", "following: 7", "following:7 "] {
            let refused = Key::parse(IdKind::Integer, text.as_bytes());
            assert!(matches!(refused, Err(Error::InvalidId { .. })), "{text}");
        }
    }
}
