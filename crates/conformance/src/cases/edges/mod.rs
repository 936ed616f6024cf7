//! Cases of edges: writing, counting and listing them, and what lists have in common.

mod common;
mod friends;
mod limit;
mod lists;
mod overlap;
pub(super) mod pages;
mod projections;
mod times;
mod walks;
mod writes;

use kinfolk_core::GraphStore;

use super::Case;
use crate::ports::EdgePorts;

pub(super) fn cases<S: EdgePorts>() -> Vec<Case<S>> {
    [
        writes::cases(),
        limit::cases(),
        times::cases(),
        lists::cases(),
        walks::cases(),
        friends::cases(),
        overlap::cases(),
        common::cases(),
        pages::cases(),
        projections::cases(),
    ]
    .concat()
}

/// Those that need checks, too.
pub(super) fn cases_with_checks<S: GraphStore>() -> Vec<Case<S>> {
    [
        writes::cases_with_checks(),
        limit::cases_with_checks(),
        times::cases_with_checks(),
        lists::cases_with_checks(),
    ]
    .concat()
}
