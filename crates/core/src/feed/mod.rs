//! Posts and home feeds: what they are, the ports that keep them, and the operations on them.

mod model;
mod operations;
mod plan;
mod ports;

pub use model::{Delivery, Inbox, NewPost, Post, PostKey, PostState, Posted, Removed};
pub(crate) use operations::require_key;
pub use operations::{FeedSettings, Feeds, PostPage, WrittenPost};
pub use plan::{PlannedPosts, PostEvent, PostPlanner, PostView, PostsAfter, Registration};
pub use ports::{FeedStore, InboxStore, PostStore};
