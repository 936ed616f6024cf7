//! Bulk work on a whole store: imports, backups, restores, verification.

mod backup;
mod import;
mod restore;
pub mod verify;

pub use backup::{Blocks, Reader, Snapshot, Totals, inspect as inspect_backup, write as write_backup};
pub use import::Import;
pub use restore::restore;
