//! Edge kinds: what a relation between two entities means. Every kind shares one storage layout.

/// The kind of an edge. The number is part of keys on disk and never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EdgeKind {
    /// The follower reads what the followee publishes.
    Follow = 1,
    /// The first does not want to see, or be seen by, the second.
    Block = 2,
    /// The first does not want to see the second.
    Mute = 3,
    /// The first likes the second, usually a post.
    Like = 4,
    /// The first is a member of the second.
    Membership = 5,
    /// The first has shared the second.
    Share = 6,
    /// The first does not want the second to be suggested again.
    Dismissal = 7,
}

impl EdgeKind {
    /// All kinds, by number.
    pub const ALL: [Self; 7] =
        [Self::Follow, Self::Block, Self::Mute, Self::Like, Self::Membership, Self::Share, Self::Dismissal];

    /// The number used on disk.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The kind with that number on disk.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// The name used in messages and change events; removing an edge has `un` before it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Follow => "follow",
            Self::Block => "block",
            Self::Mute => "mute",
            Self::Like => "like",
            Self::Membership => "membership",
            Self::Share => "share",
            Self::Dismissal => "dismiss",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
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
