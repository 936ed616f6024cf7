//! Bulk work on a whole store: imports, backups, restores, verification.

mod backup;
mod import;
mod restore;
pub(crate) mod verify;

pub(crate) use backup::{Snapshot, write as write_backup};
pub use import::Import;
pub(crate) use restore::restore;
