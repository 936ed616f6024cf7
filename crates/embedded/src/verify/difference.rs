//! What can differ from the truth: how it is described, looked at again, and repaired. How it is found is not here.

use std::fmt;

use kinfolk_core::comments::CommentId;
use kinfolk_core::feeds::PostKey;
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Id, Result, Timestamp};

use crate::feeds::{self, InboxPlace};
use crate::remembered::LoggedKey;
use crate::rows::Tree;
use crate::store::Store;
use crate::threads::{Place, Tally};

/// Something that differs from the truth.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// A list lacks a row, or has one that it should not have.
    Row { tree: Tree, kind: EdgeKind, edge: Edge, since: Timestamp, missing: bool },
    /// The index has other followees for a user than the truth.
    Followees { kind: EdgeKind, follower: Id },
    /// The list of an author's posts is not what the post's record says.
    Post { author: Id, at: PostKey },
    /// The idempotency key of a post names something else than the log and the records.
    PostKey(LoggedKey<Id>),
    /// A row about comments is not what their records say.
    Comment(Place),
    /// The idempotency key of a comment names something else than the log and the records.
    CommentKey(LoggedKey<CommentId>),
    /// An inbox is not what its contract says.
    Inbox(InboxPlace),
    /// The index counts another number of followers than there are.
    FollowerCount { kind: EdgeKind, id: Id, counted: u64, is: u64 },
    /// Comments or replies are counted as more or fewer than there are.
    CommentCount(Tally),
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Row { tree, kind, edge, since, missing } => {
                let list = if *tree == Tree::Following { "following" } else { "followers" };
                let (follower, followee, kind) = (edge.follower, edge.followee, kind.name());
                let state = if *missing { "lacks" } else { "has the stray" };
                write!(out, "the {list} list {state} {kind} edge {follower} to {followee} since {since}")
            }
            Self::Followees { kind, follower } => {
                write!(out, "the index has other {} edges from {follower} than the rows", kind.name())
            }
            Self::FollowerCount { kind, id, counted, is } => {
                write!(out, "the index counts {counted} {} followers of {id}, there are {is}", kind.name())
            }
            Self::Post { author, at } => {
                write!(out, "the posts by {author} differ from the record of post {} of {}", at.id, at.since)
            }
            Self::PostKey(key) => key.describe(out, "post"),
            Self::CommentKey(key) => key.describe(out, "comment"),
            Self::Comment(place) => place.fmt(out),
            Self::CommentCount(tally) => tally.fmt(out),
            Self::Inbox(place) => place.fmt(out),
        }
    }
}

impl Difference {
    /// Whether it is about how many there are of something: looking again then takes as long as there are many, and is
    /// left to a [`super::Recount`].
    pub fn is_count(&self) -> bool {
        matches!(self, Self::FollowerCount { .. } | Self::CommentCount(_))
    }

    /// The difference as it is now, if there is one. Between two batches of the writer that is certain; elsewhere a write may
    /// come in between.
    pub fn look_again(&self, store: &Store) -> Result<Option<Self>> {
        let (rows, posts, threads) = (&store.rows, &store.posts, &store.threads);
        let now = store.newest_time();
        let differs = match self {
            &Self::Row { tree, kind, edge, since, .. } => {
                let missing = rows.since(kind, edge)? == Some(since);
                let differs = rows.has(tree, (kind, edge, since))? != missing;
                return Ok(differs.then_some(Self::Row { tree, kind, edge, since, missing }));
            }
            &Self::Followees { kind, follower } => {
                let truth: Vec<Id> = rows.followees(kind, follower).collect::<Result<_>>()?;
                store.index.followees(kind, follower) != truth
            }
            &Self::Post { author, at } => posts.difference((author, at))?.is_some(),
            Self::PostKey(key) => posts.key_difference(key, now)?.is_some(),
            Self::Comment(place) => threads.difference(*place)?.is_some(),
            Self::CommentKey(key) => threads.key_difference(key, now)?.is_some(),
            Self::Inbox(place) => feeds::differs(store, *place)?,
            Self::FollowerCount { .. } | Self::CommentCount(_) => false,
        };
        Ok(differs.then(|| self.clone()))
    }

    /// Brings what differs back to the truth. Runs on the writer's thread.
    pub fn mend(&self, store: &Store) -> Result<()> {
        let now = store.newest_time();
        match self {
            &Self::Row { tree, kind, edge, since, missing } => {
                store.rows.repair(tree, (kind, edge, since), missing);
                store.newest.changed(edge.follower);
            }
            &Self::Followees { kind, follower } => {
                let followees: Vec<Id> = store.rows.followees(kind, follower).collect::<Result<_>>()?;
                store.index.replace_followees(kind, follower, &followees);
                // Those who have a number only now were left out of what is kept.
                store.newest.changed(follower);
            }
            &Self::Post { author, at } => store.posts.mend((author, at))?,
            Self::PostKey(key) => store.posts.mend_key(key, now)?,
            Self::Comment(place) => store.threads.mend(*place)?,
            Self::CommentKey(key) => store.threads.mend_key(key, now)?,
            Self::Inbox(place) => feeds::mend(store, *place)?,
            // A recount does it.
            Self::FollowerCount { .. } | Self::CommentCount(_) => {}
        }
        Ok(())
    }
}
