//! Cases that need checks and edges: what a check finds, alone and beside the lists and counts.

mod freshness;
mod operations;
mod races;
mod reads;
pub(super) mod staleness;

use kinfolk_core::GraphStore;

use super::Case;

pub(super) fn cases<S: GraphStore>() -> Vec<Case<S>> {
    [reads::cases(), freshness::cases(), operations::cases(), races::cases()].concat()
}
