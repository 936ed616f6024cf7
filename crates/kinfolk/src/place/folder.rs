//! A folder as a target: the embedded store, opened in this process.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use kinfolk_core::feed::{NewPost, PostPage, WrittenPost};
use kinfolk_core::graph::{
    ChangesPage, Counts, Edge, EdgeCommand, EdgeStore, Graph, GraphSettings, ListPage, OverlapPage,
    PageRequest,
};
use kinfolk_core::suggest::{EveryoneRequest, SuggestionStore};
use kinfolk_core::{EdgeKind, Error, Id, IdKind, Timestamp};
use kinfolk_embedded::{BackupReport, Embedded, GuardedClock, Progress, Settings, VerifyReport};
use tokio::sync::watch;

use super::{
    ImportWish, Imported, List, PostList, SuggestDone, SuggestWish, Suggested, Target, WallClock, WriteDone,
};
use crate::bulk::{self, ImportChoices};
use crate::input::{Source, Stop};
use crate::output::{Edges, FileWriter, write_new_file};
use crate::progress::{Reporter, SUGGESTING};
use crate::room;
use crate::serve::Signals;

/// The kind of edge that commands work on.
const KIND: EdgeKind = EdgeKind::Follow;

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
    /// The rules of the graph.
    pub graph: GraphSettings,
    /// How suggestions are computed for everyone.
    pub everyone: EveryoneRequest,
}

impl Folder {
    /// Opens the graph that must be there already.
    pub fn open(&self) -> Result<OpenGraph> {
        if !self.path.exists() {
            let detail = format!(
                "there is no store in {}; make one with 'kinfolk import' or 'kinfolk follow', \
                 or name another folder with --data",
                self.path.display()
            );
            return Err(Error::InvalidStore { detail }.into());
        }
        OpenGraph::new(self.open_store()?, self, None)
    }

    fn open_store(&self) -> Result<Embedded> {
        let store = Embedded::open_with_clock(&self.path, self.settings.clone(), self.guarded_clock());
        let store = store.map_err(hint_at_server)?;
        self.require_kind(&store)?;
        Ok(store)
    }

    /// Opens the store, or makes one if there is none, for somebody who brings a runtime.
    pub fn open_or_create_store(&self) -> Result<Embedded> {
        if Embedded::exists(&self.path) {
            return self.open_store();
        }
        let (ids, settings) = (self.kind_when_created(), self.settings.clone());
        Ok(Embedded::create_with_clock(&self.path, ids, settings, self.guarded_clock())?)
    }

    fn guarded_clock(&self) -> Arc<GuardedClock> {
        Arc::new(GuardedClock::new(Arc::new(self.clock.clone()), self.settings.clock))
    }

    /// Opens the graph, or makes one if there is none.
    pub fn open_or_create(&self) -> Result<OpenGraph> {
        let created = (!Embedded::exists(&self.path))
            .then(|| CreatedFolder { path: self.path.clone(), folder_is_new: !self.path.exists() });
        OpenGraph::new(self.open_or_create_store()?, self, created)
    }

    /// As [`Folder::open_or_create`], for something about these users: a store of the wrong kind of ids would be in
    /// the way ever after, so none is made.
    pub fn open_or_create_for(&self, users: &[Id]) -> Result<OpenGraph> {
        if !Embedded::exists(&self.path) {
            let kind = self.kind_when_created();
            users
                .iter()
                .try_for_each(|&user| kind.require(user))
                .context("no graph was made; choose its kind of ids with --ids")?;
        }
        self.open_or_create()
    }

    /// The kind of ids that a store made here gets.
    pub fn kind_when_created(&self) -> IdKind {
        self.ids.unwrap_or(IdKind::Integer)
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

/// Whoever has the folder open may be a server, which can be asked instead.
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

/// An open graph and the runtime that drives it.
pub struct OpenGraph {
    path: PathBuf,
    graph: Graph<Embedded>,
    store: Embedded,
    settings: (Settings, GraphSettings, EveryoneRequest),
    runtime: tokio::runtime::Runtime,
    created: Option<CreatedFolder>,
}

impl OpenGraph {
    fn new(store: Embedded, folder: &Folder, created: Option<CreatedFolder>) -> Result<Self> {
        let graph = Graph::new(store.clone(), store.keyring(), folder.graph);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let settings = (folder.settings.clone(), folder.graph, folder.everyone);
        Ok(Self { path: folder.path.clone(), graph, store, settings, runtime, created })
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

impl Target for OpenGraph {
    fn write(&self, command: EdgeCommand) -> Result<WriteDone> {
        let written = self.run(self.graph.apply(KIND, vec![command]))?;
        Ok(WriteDone::from(written))
    }

    fn since(&self, edge: Edge) -> Result<Option<Timestamp>> {
        let others = [edge.followee];
        let relationships = self.run(self.graph.relationships(KIND, edge.follower, &others, None))?;
        Ok(relationships.first().and_then(|relationship| relationship.since))
    }

    fn page(&self, list: List, of: Id, request: PageRequest<'_>) -> Result<ListPage> {
        let page = self.run(async {
            match list {
                List::Following => self.graph.following(KIND, of, request, None).await,
                List::Followers => self.graph.followers(KIND, of, request, None).await,
                List::Friends => self.graph.friends(KIND, of, request, None).await,
            }
        })?;
        Ok(page)
    }

    fn counts(&self, of: &[Id]) -> Result<Vec<Counts>> {
        Ok(self.run(self.graph.counts(KIND, of, None))?)
    }

    fn common(&self, of: &[Id], request: PageRequest<'_>) -> Result<OverlapPage> {
        Ok(self.run(self.graph.common(KIND, of, request, None))?)
    }

    fn known_followers(&self, viewer: Id, of: Id, request: PageRequest<'_>) -> Result<OverlapPage> {
        Ok(self.run(self.graph.known_followers(KIND, viewer, of, request, None))?)
    }

    fn suggestions(&self, of: Id, limit: usize) -> Result<Suggested> {
        Ok(self.run(self.graph.suggestions(of, limit, None))?.into())
    }

    fn dismiss(&self, of: Id, target: Id) -> Result<WriteDone> {
        Ok(WriteDone::from(self.run(self.graph.dismiss(of, target))?))
    }

    fn register_post(&self, post: NewPost) -> Result<WrittenPost> {
        Ok(self.run(self.graph.register_post(post))?)
    }

    fn delete_post(&self, author: Id, id: Id) -> Result<WriteDone> {
        let (token, changed) = self.run(self.graph.delete_post(Some(author), id))?;
        Ok(WriteDone { changed, token })
    }

    fn posts(&self, list: PostList, of: Id, request: PageRequest<'_>) -> Result<PostPage> {
        let page = self.run(async {
            match list {
                PostList::Feed => self.graph.feed(of, request, None).await,
                PostList::Posts => self.graph.posts_by(of, request, None).await,
            }
        })?;
        Ok(page)
    }

    fn changes(&self, after: Option<&str>, limit: usize) -> Result<ChangesPage> {
        Ok(self.run(self.graph.changes(after, limit))?)
    }

    fn import(
        self: Box<Self>,
        sources: &[Source],
        wish: &ImportWish,
        reporter: &Reporter,
    ) -> Result<Imported> {
        let ids = self.store.id_kind();
        let needed = sources.iter().filter_map(|source| Some(room::of_edges(source.expected()?, ids)));
        let needed = needed.fold(0, u64::saturating_add).saturating_sub(self.store.stopped_import_bytes());
        if let Err(error) = room::require(&self.path, needed) {
            self.close_and_discard_if_new()?;
            return Err(error.into());
        }
        let (settings, graph, _) = &self.settings;
        let following_limit = (!wish.no_limit).then(|| wish.limit.unwrap_or(graph.following_limit));
        let choices = ImportChoices {
            skip_invalid: wish.skip_invalid,
            following_limit,
            sort_memory: wish.memory.map_or(settings.sort_memory, |mebibytes| mebibytes as usize * (1 << 20)),
            fingerprint: fingerprint(sources, wish.skip_invalid, following_limit),
            bytes_total: sources.iter().map(Source::length).sum(),
        };
        let report = |progress| reporter.report(progress);
        let imported = bulk::import(&self.store, &choices, &report, |rules, bytes_read, intake| {
            sources.iter().try_for_each(|source| source.read(rules, bytes_read, intake))
        });
        reporter.finish();
        let done = match imported {
            Ok(done) => done,
            Err(stop) => return Err(self.give_up(stop)),
        };
        let token = self.graph.token(done.report.position);
        self.close()?;
        Ok(Imported {
            added: done.report.added,
            duplicates: done.report.duplicates,
            self_follows: done.report.self_follows,
            over_limit: done.report.over_limit,
            invalid: done.invalid,
            edges: done.edges,
            token,
        })
    }

    fn export(&self, file: &Path, reporter: &Reporter) -> Result<u64> {
        let mut writer = FileWriter::create(file, Edges { ids: self.store.id_kind(), since: true })?;
        let report = |progress| reporter.report(progress);
        let edges = bulk::export(&self.store, &report, |edge, since| writer.write(&(edge, since)))?;
        writer.finish()?;
        Ok(edges)
    }

    fn verify(&self, repair: bool, reporter: &Reporter) -> Result<VerifyReport> {
        Ok(self.store.verify(repair, &|progress| reporter.report(progress))?)
    }

    fn suggest(&self, wish: &SuggestWish, reporter: &Reporter) -> Result<SuggestDone> {
        let request = wish.request(self.settings.2);
        self.run(suggest(self.store.clone(), request, reporter))
    }

    fn backup(&self, file: &Path, reporter: &Reporter) -> Result<BackupReport> {
        write_new_file(file, |out| {
            let written = self.store.backup(out, &|progress| reporter.report(progress));
            written.with_context(|| format!("could not write {}", file.display()))
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        Self::close(*self)
    }
}

impl OpenGraph {
    /// Ends an import that could not read its input; gives the error to report.
    fn give_up(self, stop: Stop) -> anyhow::Error {
        match stop {
            Stop::Malformed(mut detail) => {
                // The malformed line is what the user must see, whatever else goes wrong.
                if let Err(error) = self.close_and_discard_if_new() {
                    detail.push_str(&format!("; nor could what was read be removed: {error:#}"));
                }
                Error::InvalidInput { detail }.into()
            }
            // What was taken so far stays for the next try. Dropping closes the store too; its first error says
            // more than what closing could add to it.
            Stop::Unreadable(error) => error,
            Stop::Refused(error) => error.into(),
        }
    }
}

/// Computes on a thread of its own, so that signals are heard: the first one stops it between two users.
async fn suggest(store: Embedded, request: EveryoneRequest, reporter: &Reporter) -> Result<SuggestDone> {
    let mut signals = Signals::new().context("signals can't be received")?;
    let (sender, mut progress) = watch::channel(None);
    let stop = Arc::new(AtomicBool::new(false));
    let go_on = Arc::clone(&stop);
    let mut work = tokio::task::spawn_blocking(move || {
        store.suggest_for_everyone(request, &|done, total| {
            sender.send_replace(Some((done, total)));
            !go_on.load(Ordering::Relaxed)
        })
    });
    let mut stopped_by = None;
    loop {
        tokio::select! {
            report = &mut work => {
                let report = report.context("the computation ended badly")??;
                return Ok(SuggestDone { report, stopped_by });
            }
            signal = signals.next_stop(), if stopped_by.is_none() => {
                stopped_by = Some(signal);
                stop.store(true, Ordering::Relaxed);
                Signals::end_at_once_on_the_next().context("no thread could be started")?;
            }
            Ok(()) = progress.changed() => {
                if let Some((done, total)) = *progress.borrow_and_update() {
                    reporter.report(Progress { stage: SUGGESTING, done, total: Some(total) });
                }
            }
        }
    }
}

/// A name for the input and all that decides how it is read; none for input that can't be read again.
fn fingerprint(sources: &[Source], skip_invalid: bool, following_limit: Option<u32>) -> Option<String> {
    let files: Option<Vec<String>> = sources.iter().map(Source::fingerprint).collect();
    Some(format!("{}\nskip_invalid {skip_invalid}, limit {following_limit:?}", files?.join("\n")))
}
