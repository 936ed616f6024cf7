//! Cases of posts.

pub(super) mod authored;
pub(super) mod helpers;
mod posts;

use super::Case;
use crate::ports::PostPorts;

pub(super) fn cases<S: PostPorts>() -> Vec<Case<S>> {
    [posts::cases(), authored::cases()].concat()
}
