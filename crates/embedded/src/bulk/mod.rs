//! Bulk work on a whole store: imports, backups, restores, verification.

mod backup;
mod import;
mod restore;
pub mod verify;

pub use backup::{Blocks, Reader, Snapshot, Totals, inspect as inspect_backup, write as write_backup};
pub use import::{
    Import, apply_committed as apply_import, is_kept as is_import_kept, stopped_bytes as stopped_import_bytes,
};
pub use restore::restore;
