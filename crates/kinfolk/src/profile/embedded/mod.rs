//! The embedded profile: a folder, opened in this process. Only this module uses the embedded store.

mod administration;
mod settings;
mod stats;
mod wall_clock;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use kinfolk_core::bulk::{BackupReport, ImportOptions, ImportReport, Progress, SuggestionRun};
use kinfolk_core::comments::Comment;
use kinfolk_core::graph::Edge;
use kinfolk_core::suggestions::SuggestionRunRequest;
use kinfolk_core::{Clock, Deployment, EdgeKind, Error, Id, IdKind, Keyring, Timestamp};
use kinfolk_embedded::{Embedded, GuardedClock, Import, Settings};
use kinfolk_server::{Administration, ServiceSettings, SharedBudgets};

pub(super) use self::wall_clock::WallClock;
pub(crate) use kinfolk_embedded::LAYER_TARGET;

use self::administration::EmbeddedAdministration;
use super::{DatedEdge, EdgeImport, OpenStore, Profile};
use crate::free_space;
use crate::settings::{Configuration, Role, TuningArguments};

/// A folder, which may not contain a store yet.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The requested kind of ids.
    ids: Option<IdKind>,
    /// The settings of the store.
    pub(crate) settings: Settings,
    /// The clock of the store.
    pub(super) clock: WallClock,
    /// The settings of its services.
    pub(crate) service: ServiceSettings,
    /// The default computation of suggestions for all users.
    pub(crate) everyone: SuggestionRunRequest,
}

impl Folder {
    /// The folder that the configuration names.
    pub(crate) fn new(configuration: &Configuration, tuning: &TuningArguments) -> Self {
        Self {
            path: configuration.data.folder.clone(),
            ids: configuration.data.ids,
            settings: settings::store_settings(configuration, tuning),
            clock: WallClock { file: tuning.clock_file.clone() },
            service: configuration.service_settings(),
            everyone: configuration.suggest.for_everyone(),
        }
    }

    /// A folder elsewhere with the same settings, for a store with the default kind of ids.
    pub(crate) fn at(&self, path: PathBuf) -> Self {
        Self { path, ids: None, ..self.clone() }
    }

    /// The kind of ids of a store created here.
    fn kind_when_created(&self) -> IdKind {
        self.ids.unwrap_or(IdKind::Integer)
    }

    /// Creates a store from a backup; `clamp_times` replaces times in the future by the current time.
    pub(crate) fn restore(
        &self,
        file: &Path,
        clamp_times: bool,
        progress: &dyn Fn(Progress),
    ) -> kinfolk_core::Result<BackupReport> {
        let latest = if clamp_times { self.clock.now() } else { Timestamp::MAX };
        Embedded::restore(file, &self.path, &self.settings, latest, progress)
    }

    /// Opens the store, which must exist.
    pub(crate) fn open(&self) -> Result<Embedded> {
        if !self.path.exists() {
            let detail = format!(
                "there is no store in {}; create one with 'kinfolk import' or 'kinfolk follow', \
                 or name another folder with --data",
                self.path.display()
            );
            return Err(Error::InvalidStore { detail }.into());
        }
        self.open_store()
    }

    /// Opens the store, or creates it.
    pub(crate) fn open_or_create_store(&self) -> Result<Opened> {
        if Embedded::exists(&self.path) {
            return Ok(Opened { store: self.open_store()?, discard: None });
        }
        let created = CreatedFolder { path: self.path.clone(), folder_is_new: !self.path.exists() };
        let (ids, settings) = (self.kind_when_created(), self.settings.clone());
        let store = Embedded::create_with_clock(&self.path, ids, settings, self.guarded_clock())?;
        Ok(Opened { store, discard: Some(Box::new(move || created.remove())) })
    }

    /// Returns an error if a store created here would have another kind of ids than these users: it keeps its kind forever.
    pub(crate) fn require_creatable_for(&self, users: &[Id]) -> Result<()> {
        if Embedded::exists(&self.path) {
            return Ok(());
        }
        let kind = self.kind_when_created();
        let fit = users.iter().try_for_each(|&user| kind.require(user));
        fit.context("no graph was created; choose its kind of ids with --ids")
    }

    /// Returns an error unless there is disk space for an import of this many bytes. A stopped import has taken a part of the
    /// space already.
    pub(crate) fn require_import_space(&self, store: &Embedded, bytes: u64) -> kinfolk_core::Result<()> {
        free_space::require(&self.path, bytes.saturating_sub(store.stopped_import_bytes()))
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
                "the store in {path} uses {name} ids, chosen when it was created; leave out --ids, \
                 or name another folder with --data"
            );
            return Err(Error::InvalidStore { detail }.into());
        }
        Ok(())
    }
}

/// Reads a whole backup; returns its contents.
pub(crate) fn inspect_backup(file: &Path) -> kinfolk_core::Result<BackupReport> {
    Embedded::inspect_backup(file)
}

impl Profile for Folder {
    type Store = Embedded;
    type Background = ();

    fn location(&self) -> String {
        self.path.display().to_string()
    }

    fn require_role(&self, role: Role) -> Result<()> {
        if role == Role::All {
            return Ok(());
        }
        let what = "a role other than all, which needs the fleet profile,";
        Err(Error::NotAvailable { what }.into())
    }

    fn open_or_create(&self) -> Result<Embedded> {
        Ok(self.open_or_create_store()?.store)
    }

    fn service_settings(&self) -> ServiceSettings {
        self.service
    }

    fn everyone(&self) -> Option<SuggestionRunRequest> {
        Some(self.everyone)
    }

    fn administration(&self, store: &Embedded) -> Arc<dyn Administration> {
        let administration = EmbeddedAdministration::new(store.clone(), self);
        administration.remove_leftovers();
        Arc::new(administration)
    }

    /// No other process serves the folder.
    fn shared_budgets(&self) -> Option<Arc<SharedBudgets>> {
        None
    }

    /// The store has threads of its own.
    async fn start_background(&self, _store: &Embedded) -> Result<()> {
        Ok(())
    }

    async fn stop_background((): ()) {}
}

/// The process that has the folder open may be a server: suggest to use it.
fn hint_at_server(error: Error) -> Error {
    match error {
        Error::InUse { detail } => Error::InUse {
            detail: format!("{detail}; if that is a server, use it with --url instead of --data"),
        },
        error => error,
    }
}

/// Removes a store that was just created, after its first write failed.
pub(crate) type Discard = Box<dyn FnOnce() -> Result<()> + Send>;

/// An opened store.
pub(crate) struct Opened {
    pub(crate) store: Embedded,
    /// Removes the store; none if it existed before.
    pub(crate) discard: Option<Discard>,
}

/// A store that this process created, so that it can be removed.
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
        // The folder existed and was empty: a store is created in no other.
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

    fn edge_count(&self, kind: EdgeKind) -> Option<u64> {
        Some(Self::edge_count(self, kind))
    }

    fn import(&self, options: &ImportOptions) -> kinfolk_core::Result<Import> {
        Self::import(self, options)
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
