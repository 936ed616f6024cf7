//! The embedded profile: a folder, opened in this process. The only place that knows the embedded store.

mod administration;
mod figures;
mod wall_clock;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use kinfolk_core::bulk::{BackupReport, ImportOptions, ImportReport, Progress, SuggestionRun, VerifyReport};
use kinfolk_core::comments::Comment;
use kinfolk_core::graph::Edge;
use kinfolk_core::suggestions::SuggestionRunRequest;
use kinfolk_core::{Clock, Deployment, EdgeKind, Error, Id, IdKind, Keyring, Timestamp};
use kinfolk_embedded::{Embedded, GuardedClock, Import};
use kinfolk_server::{Administration, ServiceSettings};

pub use administration::IMPORTED_FILE;
pub use kinfolk_embedded::{ClockLimits, LAYER_TARGET, Settings};
pub use wall_clock::WallClock;

use self::administration::EmbeddedAdministration;
use super::{DatedEdge, Discard, EdgeImport, OpenStore, Profile};
use crate::room;

/// A folder, which may not hold a store yet.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Its path.
    pub path: PathBuf,
    /// The kind of ids that were asked for, if any.
    pub ids: Option<IdKind>,
    /// What the store may use.
    pub settings: Settings,
    /// What the store goes by.
    pub clock: WallClock,
    /// The rules of its parts.
    pub service: ServiceSettings,
    /// How suggestions are computed for everyone.
    pub everyone: SuggestionRunRequest,
}

impl Folder {
    /// The kind of ids that a store made here gets.
    pub fn kind_when_created(&self) -> IdKind {
        self.ids.unwrap_or(IdKind::Integer)
    }

    /// Makes a store from a backup here; times that are later than now become now if they are to be clamped.
    pub fn restore(
        &self,
        file: &Path,
        clamp_times: bool,
        progress: &dyn Fn(Progress),
    ) -> kinfolk_core::Result<BackupReport> {
        let latest = if clamp_times { self.clock.now() } else { Timestamp::MAX };
        Embedded::restore_clamped(file, &self.path, (&self.settings, latest), progress)
    }

    fn open_store(&self) -> Result<Embedded> {
        let store = Embedded::open_with_clock(&self.path, self.settings.clone(), self.guarded_clock());
        let store = store.map_err(hint_at_server)?;
        self.require_kind(&store)?;
        Ok(store)
    }

    fn guarded_clock(&self) -> Arc<GuardedClock> {
        Arc::new(GuardedClock::new(Arc::new(self.clock.clone()), self.settings.clock))
    }

    fn require_kind(&self, store: &Embedded) -> Result<()> {
        let kind = store.id_kind();
        if self.ids.is_some_and(|asked| asked != kind) {
            let (path, name) = (self.path.display(), kind.name());
            let detail = format!(
                "the store in {path} uses {name} ids, chosen when it was made; leave out --ids, \
                 or name another folder with --data"
            );
            return Err(Error::InvalidStore { detail }.into());
        }
        Ok(())
    }
}

/// What a file holds that backup has made; all of it is read.
pub fn inspect_backup(file: &Path) -> kinfolk_core::Result<BackupReport> {
    Embedded::inspect_backup(file)
}

impl Profile for Folder {
    type Store = Embedded;

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn open(&self) -> Result<Embedded> {
        if !self.path.exists() {
            let detail = format!(
                "there is no store in {}; make one with 'kinfolk import' or 'kinfolk follow', \
                 or name another folder with --data",
                self.path.display()
            );
            return Err(Error::InvalidStore { detail }.into());
        }
        self.open_store()
    }

    fn open_or_create(&self) -> Result<(Embedded, Option<Discard>)> {
        if Embedded::exists(&self.path) {
            return Ok((self.open_store()?, None));
        }
        let created = CreatedFolder { path: self.path.clone(), folder_is_new: !self.path.exists() };
        let (ids, settings) = (self.kind_when_created(), self.settings.clone());
        let store = Embedded::create_with_clock(&self.path, ids, settings, self.guarded_clock())?;
        Ok((store, Some(Box::new(move || created.remove()))))
    }

    /// A store of the wrong kind of ids would be in the way ever after.
    fn require_creatable_for(&self, users: &[Id]) -> Result<()> {
        if Embedded::exists(&self.path) {
            return Ok(());
        }
        let kind = self.kind_when_created();
        let fit = users.iter().try_for_each(|&user| kind.require(user));
        fit.context("no graph was made; choose its kind of ids with --ids")
    }

    fn service_settings(&self) -> ServiceSettings {
        self.service
    }

    fn everyone(&self) -> SuggestionRunRequest {
        self.everyone
    }

    fn sort_memory(&self) -> usize {
        self.settings.sort_memory
    }

    fn require_room(&self, bytes: u64) -> kinfolk_core::Result<()> {
        room::require(&self.path, bytes)
    }

    fn administration(&self, store: &Embedded) -> Arc<dyn Administration> {
        let administration = EmbeddedAdministration::new(store.clone(), self);
        administration.remove_leftovers();
        Arc::new(administration)
    }
}

/// The process that has the folder open may be a server, which can be asked instead.
fn hint_at_server(error: Error) -> Error {
    match error {
        Error::InUse { detail } => Error::InUse {
            detail: format!("{detail}; if that is a server, ask it with --url instead of --data"),
        },
        error => error,
    }
}

/// A store that this process has made, so that it can be taken away again.
#[derive(Debug)]
struct CreatedFolder {
    path: PathBuf,
    folder_is_new: bool,
}

impl CreatedFolder {
    fn remove(&self) -> Result<()> {
        self.try_remove().with_context(|| format!("could not remove {}", self.path.display()))
    }

    fn try_remove(&self) -> io::Result<()> {
        if self.folder_is_new {
            return std::fs::remove_dir_all(&self.path);
        }
        // The folder was there, and empty: a store is made in no other.
        for entry in std::fs::read_dir(&self.path)? {
            remove_entry(&entry?.path())?;
        }
        Ok(())
    }
}

fn remove_entry(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
}

impl OpenStore for Embedded {
    type Import = Import;

    fn keyring(&self) -> Keyring {
        Self::keyring(self)
    }

    fn now(&self) -> Timestamp {
        Self::now(self)
    }

    fn failure(&self) -> Option<String> {
        Self::failure(self).map(str::to_owned)
    }

    fn edge_count(&self, kind: EdgeKind) -> u64 {
        Self::edge_count(self, kind)
    }

    fn import(&self, options: &ImportOptions) -> kinfolk_core::Result<Import> {
        Self::import(self, options)
    }

    fn stopped_import_bytes(&self) -> u64 {
        Self::stopped_import_bytes(self)
    }

    fn edges(
        &self,
        kind: EdgeKind,
    ) -> kinfolk_core::Result<impl Iterator<Item = DatedEdge> + Send + 'static> {
        Self::edges(self, kind)
    }

    fn all_comments(
        &self,
    ) -> kinfolk_core::Result<impl Iterator<Item = kinfolk_core::Result<Comment>> + Send + 'static> {
        Self::all_comments(self)
    }

    fn verify(&self, repair: bool, progress: &dyn Fn(Progress)) -> kinfolk_core::Result<VerifyReport> {
        Self::verify(self, repair, progress)
    }

    fn backup(&self, out: &mut dyn Write, progress: &dyn Fn(Progress)) -> kinfolk_core::Result<BackupReport> {
        Self::backup(self, out, progress)
    }

    fn compact(&self) -> kinfolk_core::Result<u64> {
        Self::compact(self)
    }

    fn suggestion_run(&self) -> Option<SuggestionRun> {
        Self::suggestion_run(self)
    }

    fn close(self) -> kinfolk_core::Result<()> {
        Self::close(self)
    }
}

impl EdgeImport for Import {
    fn taken(&self) -> u64 {
        Self::taken(self)
    }

    #[inline]
    fn push(&mut self, edge: Edge, since: Option<Timestamp>) -> kinfolk_core::Result<()> {
        Self::push(self, edge, since)
    }

    fn finish(self, progress: &dyn Fn(Progress)) -> kinfolk_core::Result<ImportReport> {
        Self::finish(self, progress)
    }

    fn abandon(self) -> kinfolk_core::Result<()> {
        Self::abandon(self)
    }
}
