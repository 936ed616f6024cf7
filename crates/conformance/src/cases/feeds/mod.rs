//! Cases of posts, feeds and inboxes: of the ports, and of the operations on top of them.

mod authored;
mod feed;
mod feed_walks;
pub(super) mod helpers;
mod inbox;
mod posting;
mod posts;

use super::Case;
use crate::ports::ContentPorts;

pub(super) fn cases<S: ContentPorts>() -> Vec<Case<S>> {
    [posts::cases(), authored::cases(), posting::cases(), feed::cases(), feed_walks::cases(), inbox::cases()]
        .concat()
}
