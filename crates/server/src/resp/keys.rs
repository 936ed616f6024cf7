//! The keys that the Redis commands take: `following:ID` and `followers:ID`.

use kinfolk_core::graph::{Side, UserSet};
use kinfolk_core::{Error, Id, IdKind, Result};

/// One of a user's two sets.
pub(super) fn parse(kind: IdKind, text: &[u8]) -> Result<UserSet> {
    let (side, id) = if let Some(id) = text.strip_prefix(b"following:") {
        (Side::Following, id)
    } else if let Some(id) = text.strip_prefix(b"followers:") {
        (Side::Followers, id)
    } else {
        return Err(Error::WrongKey);
    };
    Ok(UserSet { side, of: kind.parse_bytes(id)? })
}

/// The key of one of a user's two sets.
pub(super) fn write(side: Side, of: Id) -> String {
    match side {
        Side::Following => format!("following:{of}"),
        Side::Followers => format!("followers:{of}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_families_and_no_other() {
        let key = parse(IdKind::Integer, b"following:007").unwrap();
        assert_eq!(key, UserSet { side: Side::Following, of: Id::Integer(7) });
        let key = parse(IdKind::Integer, b"followers:7").unwrap();
        assert_eq!(key, UserSet { side: Side::Followers, of: Id::Integer(7) });
        for (side, text) in [(Side::Following, "following:7"), (Side::Followers, "followers:7")] {
            assert_eq!(write(side, Id::Integer(7)), text);
        }
        for text in ["", "following", "following7", "FOLLOWING:7", "friends:7", "following :7"] {
            assert!(matches!(parse(IdKind::Integer, text.as_bytes()), Err(Error::WrongKey)), "{text}");
        }
        for text in ["following:", "followers:x", "following: 7", "following:7 "] {
            let refused = parse(IdKind::Integer, text.as_bytes());
            assert!(matches!(refused, Err(Error::InvalidId { .. })), "{text}");
        }
    }
}
