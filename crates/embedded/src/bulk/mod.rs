//! Bulk work on a whole store: imports, backups, restores, verification.

mod backup;
mod import;
mod restore;
pub mod verify;

pub use backup::{Snapshot, write as write_backup};
pub use import::Import;
pub use restore::restore;
