//! What a profile offers: the graph always, suggestions and content as optional capabilities.

use std::sync::Arc;

use crate::changes::ChangeLog;
use crate::comments::CommentStore;
use crate::feeds::{FeedStore, InboxStore, PostStore};
use crate::graph::{CheckStore, EdgeStore};
use crate::suggestions::SuggestionStore;

/// The ports of the graph. Every profile has them.
pub trait GraphStore: CheckStore + EdgeStore + ChangeLog {}

impl<S: CheckStore + EdgeStore + ChangeLog> GraphStore for S {}

/// The ports of posts, feeds and comments.
pub trait ContentStore: PostStore + FeedStore + InboxStore + CommentStore {}

impl<S: PostStore + FeedStore + InboxStore + CommentStore> ContentStore for S {}

/// A profile's store. A capability that it lacks has the type [`crate::Absent`].
pub trait Store: GraphStore {
    /// The store of suggestions.
    type Suggestions: SuggestionStore + CheckStore + EdgeStore;
    /// The store of posts, feeds and comments.
    type Content: ContentStore;

    /// Suggestions, if the profile has them.
    fn suggestions(self: &Arc<Self>) -> Option<Arc<Self::Suggestions>>;

    /// Posts, feeds and comments, if the profile has them.
    fn content(self: &Arc<Self>) -> Option<Arc<Self::Content>>;
}
