//! Faults of edges: writing, reading and listing them, their limit and their overlap; and those of the log.

mod limit;
mod overlap;
pub(super) mod reads;
mod writes;
