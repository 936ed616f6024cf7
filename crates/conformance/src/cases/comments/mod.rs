//! Cases of comment threads: of the port, and of the operations on top of it.

mod changing;
mod graph;
mod helpers;
mod purging;
mod races;
mod reading;
mod trees;
mod writing;

use super::{Case, list_cases};
use crate::ports::CommentPorts;

pub(super) fn cases<S: CommentPorts>() -> Vec<Case<S>> {
    [
        writing::cases(),
        changing::cases(),
        purging::cases(),
        reading::cases(),
        graph::cases(),
        trees::cases(),
        races::cases(),
    ]
    .concat()
}
