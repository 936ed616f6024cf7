//! Bulk work: imports, exports, backups. Sorted outside of memory, loaded in key order.

pub mod backup;
mod backup_comments;
mod backup_posts;
pub mod import;
pub mod load;
pub mod restore;
mod run;
mod sorter;
