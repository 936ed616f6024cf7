//! The types of the graph: edges, list entries, counts.

use std::cmp::Ordering;

use crate::{Id, Timestamp};

/// A directed edge between two users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The source of the edge.
    pub follower: Id,
    /// The target of the edge.
    pub followee: Id,
}

/// An action on an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeAction {
    /// Create the edge.
    Follow,
    /// Remove the edge.
    Unfollow,
}

/// A command about one edge. Repeating it succeeds and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeCommand {
    /// The action.
    pub action: EdgeAction,
    /// The edge.
    pub edge: Edge,
}

/// A side of a user's edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The user's followees.
    Following,
    /// The user's followers.
    Followers,
}

/// A user's followees or followers, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserSet {
    /// The side.
    pub side: Side,
    /// The user.
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

/// The intersection of sets of users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlap {
    /// The size of the intersection.
    pub count: u64,
    /// A page of its members, by id.
    pub ids: Vec<Id>,
}

/// The sort key of a list entry. Lists run from the newest `since` to the oldest and, for equal `since`, from the highest
/// id to the lowest: the order of this type is the order of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListKey {
    /// When the edge was created.
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

/// An entry of a list consists of its sort key.
pub type ListEntry = ListKey;

/// How many edges a user has on each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of followees.
    pub following: u64,
    /// The number of followers.
    pub followers: u64,
}

impl Counts {
    /// The count of one side.
    pub fn on(self, side: Side) -> u64 {
        match side {
            Side::Following => self.following,
            Side::Followers => self.followers,
        }
    }
}

/// The relationship of a user to another user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relationship {
    /// The other user.
    pub id: Id,
    /// Since when the user follows the other; `None` if it does not.
    pub since: Option<Timestamp>,
    /// Whether the other follows the user.
    pub followed_by: bool,
}

impl Relationship {
    /// Whether the user follows the other.
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
