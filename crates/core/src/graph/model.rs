//! The words of the graph: edges, list entries, counts, changes.

use std::cmp::Ordering;

use crate::{Id, Timestamp};

/// A directed edge between two users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// Where the edge starts.
    pub follower: Id,
    /// Where it ends.
    pub followee: Id,
}

/// What to do with an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeAction {
    /// Make it exist.
    Follow,
    /// Make it not exist.
    Unfollow,
}

/// One command about one edge. Repeating it is a success that changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeCommand {
    /// What to do.
    pub action: EdgeAction,
    /// With which edge.
    pub edge: Edge,
}

/// The side of the graph that a list shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Whom a user follows.
    Following,
    /// Who follows a user.
    Followers,
}

/// The users at the other end of one side of a user's edges, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserSet {
    /// Which side.
    pub side: Side,
    /// Of whom.
    pub of: Id,
}

impl UserSet {
    /// The edge that must exist for `member` to be in the set.
    pub fn edge(self, member: Id) -> Edge {
        match self.side {
            Side::Following => Edge { follower: self.of, followee: member },
            Side::Followers => Edge { follower: member, followee: self.of },
        }
    }
}

/// Those who are in all of some sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// How many there are in all.
    pub count: u64,
    /// Some of them, by id.
    pub ids: Vec<Id>,
}

/// A place in a list. Lists run from the newest `since` to the oldest, and from the highest id to the lowest
/// where `since` is the same: the order of this type is the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListKey {
    /// When the edge was made.
    pub since: Timestamp,
    /// The user at the other end.
    pub id: Id,
}

impl Ord for ListKey {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.since, other.id).cmp(&(self.since, self.id))
    }
}

impl PartialOrd for ListKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An entry of a list is its place in it.
pub type ListEntry = ListKey;

/// How many edges a user has on each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many the user follows.
    pub following: u64,
    /// How many follow the user.
    pub followers: u64,
}

impl Counts {
    /// How many edges there are on one side.
    pub fn on(self, side: Side) -> u64 {
        match side {
            Side::Following => self.following,
            Side::Followers => self.followers,
        }
    }
}

/// How one user stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relationship {
    /// The other user.
    pub id: Id,
    /// Since when the first follows the other, if it does.
    pub since: Option<Timestamp>,
    /// Whether the other follows the first.
    pub followed_by: bool,
}

impl Relationship {
    /// Whether the first follows the other.
    pub fn following(&self) -> bool {
        self.since.is_some()
    }

    /// Whether each follows the other.
    pub fn mutual(&self) -> bool {
        self.following() && self.followed_by
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_run_from_new_to_old_and_from_high_to_low() {
        let key = |since, id| ListKey { since: Timestamp::from_millis(since), id: Id::Integer(id) };
        let mut keys = vec![key(1, 9), key(2, 1), key(2, 3), key(3, 0)];
        keys.sort();
        assert_eq!(keys, [key(3, 0), key(2, 3), key(2, 1), key(1, 9)]);
    }
}
