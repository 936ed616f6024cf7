//! The default store: one process, an own change log, rows in LSM trees, a check index in memory.
//!
//! A write is an event in the log first; everything else is a projection of it. See `docs/architecture.md`.

mod background;
mod bulk;
mod changes;
mod comments;
mod disk;
mod edges;
mod engine;
mod feeds;
mod log;
mod lsm;
mod posts;
mod projection;
mod runtime;
mod settings;
mod stats;
mod suggestions;

pub use bulk::Import;
pub use engine::Embedded;
pub use kinfolk_core::bulk::{
    BackupReport, ImportOptions, ImportReport, Progress, SuggestionRun, VerifyReport,
};
pub use runtime::clock::{ClockLimits, GuardedClock};
pub use runtime::layers::{LAYER_TARGET, Layer};
pub use settings::Settings;
pub use stats::Stats;
