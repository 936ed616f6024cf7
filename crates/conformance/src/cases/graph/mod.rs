//! Cases of the graph: of its ports, and of the operations on top of them.

mod common;
mod freshness;
mod friends;
mod limit;
mod lists;
pub(super) mod operations;
mod overlap;
mod races;
mod reads;
mod times;
mod walks;
mod writes;

use kinfolk_core::GraphStore;

use super::Case;

pub(super) fn cases<S: GraphStore>() -> Vec<Case<S>> {
    [
        writes::cases(),
        limit::cases(),
        times::cases(),
        reads::cases(),
        lists::cases(),
        walks::cases(),
        friends::cases(),
        overlap::cases(),
        freshness::cases(),
        operations::cases(),
        common::cases(),
        races::cases(),
    ]
    .concat()
}
