//! Files and bytes that everything else stands on: durable files, the folder's lock and format, checkpoints, encoded ids.

pub mod backup_file;
pub mod byte_reader;
pub mod checkpoint;
pub mod files;
pub mod folder_lock;
pub mod format;
pub mod free_space;
pub mod id_encoding;
pub mod restore_marker;
