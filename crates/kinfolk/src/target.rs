//! Where commands work: a folder that no server has open. A running server's URL will be the other kind of target.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kinfolk_core::graph::{Graph, GraphSettings};
use kinfolk_core::{Error, IdKind};
use kinfolk_embedded::{Embedded, Settings};

/// The place of the graph that a command works on.
#[derive(Clone, Debug)]
pub enum Target {
    /// A folder of the embedded store.
    Folder(Folder),
}

/// A folder, which may not hold a store yet.
#[derive(Clone, Debug)]
pub struct Folder {
    /// Its path.
    pub path: PathBuf,
    /// The kind of ids that were asked for, if any.
    pub ids: Option<IdKind>,
    /// What the store may use.
    pub settings: Settings,
}

impl Target {
    /// The folder. Every target is one until the command line can talk to a server.
    pub fn folder(&self) -> &Folder {
        match self {
            Self::Folder(folder) => folder,
        }
    }
}

impl Folder {
    /// Opens the store that must be there already.
    pub fn open(&self) -> Result<OpenGraph> {
        if !self.path.exists() {
            let detail = format!(
                "there is no store in {}; make one with 'kinfolk import' or 'kinfolk follow', \
                 or name another folder with --data",
                self.path.display()
            );
            return Err(Error::InvalidStore { detail }.into());
        }
        let store = Embedded::open(&self.path, self.settings.clone())?;
        self.require_kind(&store)?;
        OpenGraph::new(store, None)
    }

    /// Opens the store, or makes one if there is none.
    pub fn open_or_create(&self) -> Result<OpenGraph> {
        if Embedded::exists(&self.path) {
            return self.open();
        }
        let folder_is_new = !self.path.exists();
        let store = Embedded::create(&self.path, self.kind_when_created(), self.settings.clone())?;
        OpenGraph::new(store, Some(CreatedFolder { path: self.path.clone(), folder_is_new }))
    }

    /// The kind of ids that a store made here gets.
    pub fn kind_when_created(&self) -> IdKind {
        self.ids.unwrap_or(IdKind::Integer)
    }

    /// Whether [`Folder::open_or_create`] would make a store.
    pub fn holds_no_store(&self) -> bool {
        !Embedded::exists(&self.path)
    }

    fn require_kind(&self, store: &Embedded) -> Result<()> {
        use kinfolk_core::graph::EdgeStore;
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

/// A store that this process has made, so that it can be taken away again.
#[derive(Debug)]
struct CreatedFolder {
    path: PathBuf,
    folder_is_new: bool,
}

/// An open graph and the runtime that drives it.
pub struct OpenGraph {
    graph: Graph<Embedded>,
    store: Embedded,
    runtime: tokio::runtime::Runtime,
    created: Option<CreatedFolder>,
}

impl OpenGraph {
    fn new(store: Embedded, created: Option<CreatedFolder>) -> Result<Self> {
        let graph = Graph::new(store.clone(), store.keyring(), GraphSettings::default());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { graph, store, runtime, created })
    }

    /// The graph.
    pub fn graph(&self) -> &Graph<Embedded> {
        &self.graph
    }

    /// The store below it, for bulk work.
    pub fn store(&self) -> &Embedded {
        &self.store
    }

    /// Runs work on the graph to its end.
    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Closes the store. Without it the store closes as well, but can't say what failed.
    pub fn close(self) -> Result<()> {
        drop(self.graph);
        Ok(self.store.close()?)
    }

    /// Closes the store and, if this process made it, takes it away again.
    pub fn close_and_discard_if_new(mut self) -> Result<()> {
        let created = self.created.take();
        self.close()?;
        match created {
            Some(created) => {
                created.remove().with_context(|| format!("could not remove {}", created.path.display()))
            }
            None => Ok(()),
        }
    }
}

impl CreatedFolder {
    fn remove(&self) -> io::Result<()> {
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
