//! The layers of a check: the filter of the shard, in this process, then the shard itself.
//!
//! A filter answers only "no", and only where it has everything that the answer must show: what the caller has seen, and what the
//! shard had at most two seconds ago. Otherwise the next layer is asked.

mod build;
mod feed;
mod filter;
mod filters;
mod ports;

pub use feed::Filtering;
pub(crate) use filters::Filters;
pub use filters::Verdict;
