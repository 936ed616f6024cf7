//! Files that come and go through a server: imports and exports of any open store.

use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use kinfolk_core::bulk::Progress;
use kinfolk_core::{Error, Result};
use kinfolk_server::{ExportRequest, FileFormat, Import, ImportDone};

use super::OpenStore;
use crate::bulk::{self, ImportChoices};
use crate::free_space;
use crate::input::{Stop, Text, expect_parquet, read_parquet};

/// The name of an imported file in messages: the server does not know it.
pub(crate) const IMPORTED_FILE: &str = "the file";

/// The bytes copied between two checks of free disk space.
const CHECK_EVERY_BYTES: u64 = 16 << 20;

/// Reads and writes the files of a store.
pub(crate) struct StoreFiles<S> {
    pub(crate) store: S,
    /// The folder of temporary files.
    pub(crate) folder: PathBuf,
    pub(crate) following_limit: u32,
    pub(crate) sort_memory: usize,
    /// A store runs one import at a time; a second one waits.
    pub(crate) importing: Mutex<()>,
}

impl<S: OpenStore> StoreFiles<S> {
    /// Adds the edges of a file.
    pub(crate) fn import(
        &self,
        file: &mut (dyn Read + Send),
        options: &Import,
        progress: &dyn Fn(Progress),
    ) -> Result<ImportDone> {
        let _one_at_a_time = self.importing.lock().unwrap_or_else(PoisonError::into_inner);
        let choices = ImportChoices {
            skip_invalid: options.skip_invalid,
            following_limit: (!options.no_limit).then_some(self.following_limit),
            sort_memory: self.sort_memory,
            fingerprint: None,
            bytes_total: None,
        };
        let imported = bulk::import(&self.store, &choices, progress, |rules, bytes_read, intake| {
            if options.format == FileFormat::Parquet {
                let file = self.spool(file, options.length)?;
                return read_parquet(file, IMPORTED_FILE, rules, bytes_read, intake);
            }
            Text { name: IMPORTED_FILE, format: options.format }.read(file, rules, intake)
        });
        imported.map_err(|stop| match stop {
            Stop::Malformed(detail) => Error::InvalidInput { detail },
            Stop::Unreadable(error) => Error::InvalidRequest { detail: format!("{error:#}") },
            Stop::Refused(error) => error,
        })
    }

    /// Writes all edges or all comments; returns their number.
    pub(crate) fn export(&self, file: &mut (dyn Write + Send), request: ExportRequest) -> Result<u64> {
        let exported = bulk::export(&self.store, request, file, &|_| {});
        let written = exported.and_then(|exported| {
            exported.out.flush()?;
            Ok(exported.rows)
        });
        written.map_err(known)
    }

    fn temporary_failed(&self, error: &std::io::Error) -> Error {
        let detail = format!("could not use a temporary file in {}: {error}", self.folder.display());
        if error.kind() == std::io::ErrorKind::StorageFull {
            Error::StorageFull { detail }
        } else {
            Error::Storage { detail }
        }
    }

    /// Copies a Parquet file to disk, because it is read from its end. Its edges need at least as much space again; the exact
    /// number is known once the file is complete.
    fn spool(
        &self,
        file: &mut (dyn Read + Send),
        length: Option<u64>,
    ) -> std::result::Result<std::fs::File, Stop> {
        let failed = |error: std::io::Error| Stop::Refused(self.temporary_failed(&error));
        let require = |needed| free_space::require(&self.folder, needed).map_err(Stop::Refused);
        require(length.unwrap_or(0).saturating_mul(2))?;
        let mut spooled = tempfile::tempfile_in(&self.folder).map_err(failed)?;
        let mut buffer = vec![0; 256 << 10];
        let (mut copied, mut checked) = (0, 0);
        loop {
            let count = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Stop::Unreadable(error.into())),
            };
            spooled.write_all(buffer.get(..count).unwrap_or_default()).map_err(failed)?;
            copied += count as u64;
            if copied - checked >= CHECK_EVERY_BYTES {
                require(copied)?;
                checked = copied;
            }
        }
        let expected = expect_parquet(spooled.try_clone().map_err(failed)?);
        require(expected.map_or(0, |expected| free_space::of_edges(expected, self.store.id_kind())))?;
        spooled.rewind().map_err(failed)?;
        Ok(spooled)
    }
}

/// The error of the store; any other error is a failed write to the stream.
fn known(error: anyhow::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(|error| Error::Storage { detail: format!("{error:#}") })
}
