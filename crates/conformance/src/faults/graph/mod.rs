//! Faults of edges: writing, reading and listing them, their limit and their overlap; and those of the log.

pub(super) mod declared;
mod limit;
mod overlap;
pub(super) mod reads;
mod writes;
