//! Work in the background: flushing and snapshots, compaction, reconciliation.

pub mod compaction;
pub mod maintenance;
mod reconcile;
