//! Cases of feeds, and of the operations on posts and feeds.

mod feed;
mod feed_walks;
mod posting;

use super::Case;
use crate::ports::FeedPorts;

pub(super) fn cases<S: FeedPorts>() -> Vec<Case<S>> {
    [posting::cases(), feed::cases(), feed_walks::cases()].concat()
}
