//! Edges: checks, lists, relationships and counts.

use kinfolk_core::graph;
use serde::{Deserialize, Serialize};

use crate::{Id, Page, Time};

/// A user in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Entry))]
pub struct ListEntry {
    /// The user.
    pub id: Id,
    /// Since when.
    pub since: Time,
}

impl From<graph::ListEntry> for ListEntry {
    fn from(graph::ListEntry { since, id }: graph::ListEntry) -> Self {
        Self { id: id.into(), since: since.into() }
    }
}

/// A page of followees, followers or friends.
pub type Users = Page<ListEntry>;

/// A user in an overlap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Member {
    /// The user.
    pub id: Id,
}

/// Whether one user follows another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Follows {
    /// Whether the edge exists.
    pub following: bool,
    /// Since when, if it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub since: Option<Time>,
}

impl From<Option<kinfolk_core::Timestamp>> for Follows {
    fn from(since: Option<kinfolk_core::Timestamp>) -> Self {
        Self { following: since.is_some(), since: since.map(Time) }
    }
}

/// The pairs of a bulk check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckRequest {
    /// Followers with their followees; up to 1,000 pairs.
    pub pairs: Vec<[Id; 2]>,
}

/// The results of a bulk check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Checked))]
pub struct CheckResults {
    /// For each pair, in the order of the request, whether the first follows the second.
    pub results: Vec<bool>,
}

/// A user's relationships to others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Standings))]
pub struct Relationships {
    /// One for each user, in the order of the request.
    pub items: Vec<Relationship>,
}

/// A user's relationship to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Standing))]
pub struct Relationship {
    /// The other user.
    pub id: Id,
    /// Whether the user follows the other.
    pub following: bool,
    /// Whether the other follows the user.
    pub followed_by: bool,
    /// Whether each follows the other.
    pub mutual: bool,
    /// Since when the user follows the other, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(nullable = false))]
    pub since: Option<Time>,
}

impl From<graph::Relationship> for Relationship {
    fn from(found: graph::Relationship) -> Self {
        Self {
            id: found.id.into(),
            following: found.following(),
            followed_by: found.followed_by,
            mutual: found.mutual(),
            since: found.since.map(Time),
        }
    }
}

/// A user's counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Counted))]
pub struct Counts {
    /// The user.
    pub id: Id,
    /// How many users it follows.
    pub following: u64,
    /// How many users follow it.
    pub followers: u64,
}

impl Counts {
    /// The counts of a user.
    pub fn new(id: kinfolk_core::Id, graph::Counts { following, followers }: graph::Counts) -> Self {
        Self { id: id.into(), following, followers }
    }
}

/// The counts of several users.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = CountedUsers))]
pub struct CountsList {
    /// One for each user, in the order of the request.
    pub items: Vec<Counts>,
}
