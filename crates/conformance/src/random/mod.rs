//! Random histories of one client, compared with the reference step by step; and of several at once, audited afterwards.

mod answers;
pub(crate) mod audit;
mod comment_audit;
mod comment_history;
pub(crate) mod compare;
pub(crate) mod compare_comments;
mod concurrent;
mod concurrent_comments;
mod concurrent_feeds;
mod feed_history;
mod generator;
mod graph_history;
mod history;
mod observed;
mod pairs;
mod shared;
mod trims;
mod unknown_comments;
mod unsettled;

pub use comment_history::{comment_histories, comment_restarts};
pub use concurrent::{
    concurrent_histories, concurrent_histories_with_fault, concurrent_histories_with_timeouts,
};
pub use concurrent_comments::{
    concurrent_comments, concurrent_comments_with_fault, concurrent_comments_with_timeouts,
};
pub use concurrent_feeds::{concurrent_feeds, concurrent_feeds_with_fault, concurrent_feeds_with_timeouts};
pub use feed_history::{feed_histories, feed_restarts};
pub use graph_history::{Restore, graph_histories, graph_restores};
pub use history::{Reopen, histories};
pub use trims::{Trim, graph_trims};
pub use unsettled::TimeoutFault;

pub(crate) use generator::Random;
