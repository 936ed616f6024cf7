//! Posts and home feeds: their types, ports and operations, and the planning of writes.

mod model;
mod operations;
mod plan;
mod ports;

pub use model::{Delivery, Inbox, NewPost, Post, PostKey, PostState, PostWritten, WriteOutcome};
pub(crate) use operations::require_key;
pub use operations::{FeedSettings, Feeds, PostPage};
pub use plan::{PlannedPostView, PlannedPosts, PostEvent, PostPlanner, PostView, Registration};
pub use ports::{FeedStore, InboxStore, PostStore};
