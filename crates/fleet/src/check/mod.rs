//! The layers of a check: the filter of the shard, in this process; the follower's set, in Redis; the shard itself.
//!
//! A layer answers only where it has everything that the answer must show: what the caller has seen, and what the shard had at most two
//! seconds ago. Otherwise the next one is asked. `layers` stacks them; each is a decorator of the one behind it.

mod build;
mod feed;
mod filter;
mod filters;
mod layers;
mod ports;
mod saved;
mod shard;
mod state;

pub use feed::{FilterSettings, Filtering};
pub use filters::FilterVerdict;
pub(crate) use filters::Filters;
pub(crate) use layers::{CheckLayer, Checks, Layers};
pub(crate) use shard::ShardCounts;
pub use shard::ShardVerdict;
pub use state::{FilterState, LayerStates};
