//! Cases of posts.

pub(super) mod authored;
pub(super) mod helpers;
mod writing;

use super::Case;
use crate::ports::PostPorts;

pub(super) fn cases<S: PostPorts>() -> Vec<Case<S>> {
    [writing::cases(), authored::cases()].concat()
}
