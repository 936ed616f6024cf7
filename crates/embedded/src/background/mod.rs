//! Work in the background: flushing and snapshots, compaction, reconciliation.

pub(crate) mod compaction;
pub(crate) mod maintenance;
mod reconcile;
