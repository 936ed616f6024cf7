//! Cases of posts, feeds and inboxes: of the ports, and of the operations on top of them.

mod authored;
mod feed;
mod feed_walks;
mod inbox;
mod posting;
mod posts;
pub(super) mod words;

use super::Case;
use crate::ports::ContentPorts;

pub(super) fn cases<S: ContentPorts>() -> Vec<Case<S>> {
    [posts::cases(), authored::cases(), posting::cases(), feed::cases(), feed_walks::cases(), inbox::cases()]
        .concat()
}
