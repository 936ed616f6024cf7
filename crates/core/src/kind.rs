//! Edge kinds: the meaning of an edge. All kinds share one storage layout.

use crate::names::names;

/// The kind of an edge. The number is part of keys on disk and never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EdgeKind {
    /// The follower reads the followee's posts.
    Follow = 1,
    /// The source neither sees nor is seen by the target.
    Block = 2,
    /// The source does not see the target.
    Mute = 3,
    /// The source likes the target, usually a post.
    Like = 4,
    /// The source is a member of the target.
    Membership = 5,
    /// The source has shared the target.
    Share = 6,
    /// The source does not want the target to be suggested again.
    Dismissal = 7,
}

// The change event that removes an edge has the name of its kind with the prefix `un`.
names! {
    EdgeKind {
        Follow => "follow",
        Block => "block",
        Mute => "mute",
        Like => "like",
        Membership => "membership",
        Share => "share",
        Dismissal => "dismiss",
    }
}

impl EdgeKind {
    /// The number used on disk.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The kind with that number on disk.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_stable() {
        let table: Vec<_> = EdgeKind::ALL.iter().map(|kind| (kind.number(), kind.name())).collect();
        assert_eq!(
            table,
            [
                (1, "follow"),
                (2, "block"),
                (3, "mute"),
                (4, "like"),
                (5, "membership"),
                (6, "share"),
                (7, "dismiss")
            ]
        );
        for kind in EdgeKind::ALL {
            assert_eq!(EdgeKind::from_number(kind.number()), Some(kind));
            assert_eq!(EdgeKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(EdgeKind::from_number(0), None);
    }
}
