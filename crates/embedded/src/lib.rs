//! The default store: one process, an own change log, rows in LSM trees, a check index in memory.
//!
//! A write is an event in the log first; everything else is a projection of it. See `docs/architecture.md`.
//!
//! Rooms, lowest first. A room uses only earlier ones, never those below:
//!
//! | room | what it holds |
//! |---|---|
//! | `settings`, `disk`, `runtime` | files and their encodings; clock, health, signals and timings |
//! | `log` | the change log |
//! | `lsm` | LSM trees, which know nothing of what their rows mean |
//! | `projection` | what a projection of the log is, and the list of them that all work goes through |
//! | `edges`, `posts`, `comments`, `feeds`, `suggestions` | the projections; `feeds` reads `edges` and `posts`, `suggestions` reads `edges` |
//! | `engine` | the writer, opening, replay, publishing; the handle [`Embedded`] |
//! | `background`, `bulk`, `changes` | maintenance, compaction, reconciliation; imports, backups, restores, verification; the port of changes |
//!
//! Two kinds of files of a projection's room stand above the engine: `port.rs`, which implements the room's port for [`Embedded`], and
//! `planning.rs`, which plans its writes in a batch; so does `comments/erase.rs`, which has the writer rewrite the log. And the handle
//! offers what `background` and `bulk` do.

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
