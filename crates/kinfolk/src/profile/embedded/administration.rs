//! The administration of an embedded store through a server: bulk work on streams, and statistics for metrics.

use std::io::{Read, Write};
use std::sync::Mutex;

use kinfolk_core::bulk::{BackupReport, Progress, VerifyReport};
use kinfolk_core::suggestions::SuggestionRunRequest;
use kinfolk_core::{EdgeKind, Result};
use kinfolk_embedded::Embedded;
use kinfolk_server::{Administration, ExportRequest, Import, ImportDone, LayerTimes, NumberedUsers, Stat};

use super::{Folder, stats};
use crate::profile::files::StoreFiles;

/// The prefix of folders in which older versions wrote backups.
const BACKUP_PREFIX: &str = ".backup-";

/// Bulk work on the embedded store.
pub(crate) struct EmbeddedAdministration {
    files: StoreFiles<Embedded>,
    everyone: SuggestionRunRequest,
}

impl EmbeddedAdministration {
    /// The administration of a store in a folder.
    pub(crate) fn new(store: Embedded, folder: &Folder) -> Self {
        let files = StoreFiles {
            store,
            folder: folder.path.clone(),
            following_limit: folder.service.graph.following_limit,
            sort_memory: folder.settings.sort_memory,
            importing: Mutex::new(()),
        };
        Self { files, everyone: folder.everyone }
    }

    /// Removes the files of an older version that was killed during a backup.
    pub(crate) fn remove_leftovers(&self) {
        for entry in std::fs::read_dir(&self.files.folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(BACKUP_PREFIX)
                && let Err(error) = std::fs::remove_dir_all(entry.path())
            {
                tracing::warn!(path = %entry.path().display(), %error, "could not remove an unfinished backup");
            }
        }
    }
}

impl Administration for EmbeddedAdministration {
    fn stats(&self) -> Vec<Stat> {
        stats::stats(&self.files.store)
    }

    fn layers(&self) -> Vec<LayerTimes> {
        stats::layers(&self.files.store)
    }

    fn users(&self, from: u32, limit: usize) -> Result<NumberedUsers> {
        let (store, kind) = (&self.files.store, EdgeKind::Follow);
        Ok(NumberedUsers { numbering: store.numbering(kind), users: store.users_from(kind, from, limit) })
    }

    fn set_count(&self) -> Option<u64> {
        Some(self.files.store.set_count(EdgeKind::Follow))
    }

    fn failure(&self) -> Option<String> {
        self.files.store.failure().map(str::to_owned)
    }

    fn everyone(&self) -> SuggestionRunRequest {
        self.everyone
    }

    fn import(
        &self,
        file: &mut (dyn Read + Send),
        options: &Import,
        progress: &dyn Fn(Progress),
    ) -> Result<ImportDone> {
        self.files.import(file, options, progress)
    }

    fn export(&self, file: &mut (dyn Write + Send), request: ExportRequest) -> Result<u64> {
        self.files.export(file, request)
    }

    fn compact(&self) -> Result<u64> {
        self.files.store.compact()
    }

    fn verify(&self, repair: bool, progress: &dyn Fn(Progress)) -> Result<VerifyReport> {
        self.files.store.verify(repair, progress)
    }

    fn backup(&self, file: &mut (dyn Write + Send), progress: &dyn Fn(Progress)) -> Result<BackupReport> {
        self.files.store.backup(file, progress)
    }
}
