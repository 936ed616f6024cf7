//! Files and bytes that everything else stands on: durable files, the folder's lock and format, checkpoints, encoded ids.

pub(crate) mod backup_file;
pub(crate) mod byte_reader;
pub(crate) mod checkpoint;
pub(crate) mod checksummed;
pub(crate) mod files;
pub(crate) mod folder_lock;
pub(crate) mod format;
pub(crate) mod free_space;
pub(crate) mod id_encoding;
pub(crate) mod restore_marker;
