//! Work in the background: flushing, snapshots, compaction, reconciliation.

pub(crate) mod compaction;
pub(crate) mod maintenance;
mod reconcile;
pub(crate) mod snapshots;
