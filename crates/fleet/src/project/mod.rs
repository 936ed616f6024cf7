//! The follower side: rows and counts on the shard of each followee, projected from the logs of all sources.
//!
//! Each host shows each source up to a mark. A transaction first locks the marks that it moves, so that two owners of one source
//! are harmless; it applies exactly the changes that follow on them, and never jumps a gap.

mod apply;
mod new_epoch;
mod runner;
mod source;

pub(crate) use apply::{Applied, ProjectedRows, net_edge};
pub(crate) use new_epoch::{edge_of_row, kind_of};
pub use runner::Projection;
pub(crate) use runner::{Pace, Target, TargetLoop};
pub use source::{ChangeSource, LogSource, SourceBatch};
