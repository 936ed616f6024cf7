//! A graph that is open in this process, whatever its profile.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use kinfolk_core::bulk::{BackupReport, Progress, VerifyReport};
use kinfolk_core::changes::Changes;
use kinfolk_core::comments::CommentThreads;
use kinfolk_core::feeds::{Feeds, NewPost, PostPage, WriteOutcome};
use kinfolk_core::graph::{
    Counts, Edge, EdgeCommand, FollowerChanges, FollowerCommand, Graph, ListPage, OverlapPage, Receipt,
};
use kinfolk_core::suggestions::{SuggestionRunRequest, SuggestionStore, Suggestions};
use kinfolk_core::{
    Context as CoreContext, Deployment, EdgeKind, Error, Frontier, Id, PageRequest, Position, Store,
    Timestamp,
};
use tokio::sync::watch;

use super::{
    ChangesDone, ImportWish, Imported, List, PostDone, PostList, SuggestDone, SuggestWish, Suggested, Target,
    WriteDone,
};
use crate::bulk::{self, ImportChoices};
use crate::input::{Source, Stop};
use crate::output::{Edges, FileWriter, write_new_file};
use crate::profile::{Discard, OpenStore, Profile};
use crate::progress::{Reporter, SUGGESTING};
use crate::room;
use crate::serve::Signals;

/// The kind of edge that commands work on.
const KIND: EdgeKind = EdgeKind::Follow;

/// The store of a profile, the part of it that keeps posts, feeds and comments, and the one that keeps suggestions.
type StoreOf<P> = <P as Profile>::Store;
type ContentOf<P> = <StoreOf<P> as Store>::Content;
type SuggestionsOf<P> = <StoreOf<P> as Store>::Suggestions;

/// An open graph and the runtime that drives it.
pub struct OpenGraph<P: Profile> {
    profile: P,
    graph: Graph<StoreOf<P>>,
    store: StoreOf<P>,
    runtime: tokio::runtime::Runtime,
    discard: Option<Discard>,
}

impl<P: Profile> OpenGraph<P> {
    /// Opens the graph that must be there already.
    pub fn open(profile: &P) -> Result<Self> {
        Self::new(profile, profile.open()?, None)
    }

    /// Opens the graph, or makes one if there is none.
    pub fn open_or_create(profile: &P) -> Result<Self> {
        let (store, discard) = profile.open_or_create()?;
        Self::new(profile, store, discard)
    }

    /// As [`OpenGraph::open_or_create`], for something about these users.
    pub fn open_or_create_for(profile: &P, users: &[Id]) -> Result<Self> {
        profile.require_creatable_for(users)?;
        Self::open_or_create(profile)
    }

    fn new(profile: &P, store: StoreOf<P>, discard: Option<Discard>) -> Result<Self> {
        let page_limit_max = CoreContext::<StoreOf<P>>::PAGE_LIMIT_MAX;
        let context = CoreContext::new(Arc::new(store.clone()), store.keyring(), page_limit_max);
        let graph = Graph::new(context, profile.service_settings().graph);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { profile: profile.clone(), graph, store, runtime, discard })
    }

    /// The graph.
    pub fn graph(&self) -> &Graph<StoreOf<P>> {
        &self.graph
    }

    /// Its change log.
    fn log(&self) -> Changes<StoreOf<P>> {
        Changes { context: self.graph.context.clone() }
    }

    /// Suggestions, if the profile has them.
    pub fn suggestion_part(&self) -> Result<Suggestions<SuggestionsOf<P>>> {
        let store = self
            .graph
            .context
            .shared_store()
            .suggestions()
            .ok_or(Error::NotAvailable { what: "suggesting users" })?;
        let settings = self.profile.service_settings().suggestions;
        Ok(Suggestions::new(self.graph.context.with(store), settings))
    }

    /// Posts and feeds, if the profile has them.
    pub fn feeds(&self) -> Result<Feeds<ContentOf<P>>> {
        let settings = self.profile.service_settings().feeds;
        Ok(Feeds::new(self.content("posting")?, settings))
    }

    /// Comment threads, if the profile has them.
    pub fn comments(&self) -> Result<CommentThreads<ContentOf<P>>> {
        let settings = self.profile.service_settings().comments;
        Ok(CommentThreads::new(self.content("commenting")?, settings))
    }

    fn content(&self, what: &'static str) -> Result<CoreContext<ContentOf<P>>> {
        let store = self.graph.context.shared_store().content().ok_or(Error::NotAvailable { what })?;
        Ok(self.graph.context.with(store))
    }

    /// The store below it, for bulk work.
    pub fn store(&self) -> &StoreOf<P> {
        &self.store
    }

    /// Runs work on the graph to its end.
    pub fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// The token of a write.
    pub fn token(&self, position: Position) -> String {
        self.graph.context.token(position.into())
    }

    pub(super) fn removed(&self, WriteOutcome { position, changed }: WriteOutcome) -> WriteDone {
        WriteDone { changed, token: self.token(position) }
    }

    fn written(&self, Receipt { position, changed }: &Receipt) -> WriteDone {
        WriteDone { changed: changed.contains(&true), token: self.token(*position) }
    }

    /// Closes the store. Without it the store closes as well, but can't say what failed.
    pub fn close(self) -> Result<()> {
        drop(self.graph);
        Ok(self.store.close()?)
    }

    /// Closes the store and, if this process made it, takes it away again.
    pub fn close_and_discard_if_new(mut self) -> Result<()> {
        let discard = self.discard.take();
        self.close()?;
        discard.map_or(Ok(()), |discard| discard())
    }
}

impl<P: Profile> Target for OpenGraph<P> {
    fn write(&self, EdgeCommand { action, edge }: EdgeCommand) -> Result<WriteDone> {
        let commands = vec![FollowerCommand { action, followee: edge.followee }];
        let changes = FollowerChanges { follower: edge.follower, commands };
        let written = self.run(self.graph.apply(KIND, vec![changes])).pop().unwrap_or(Err(Error::Closed))?;
        Ok(self.written(&written))
    }

    fn since(&self, edge: Edge) -> Result<Option<Timestamp>> {
        let others = [edge.followee];
        let relationships =
            self.run(self.graph.relationships(KIND, edge.follower, &others, Frontier::EMPTY))?;
        Ok(relationships.first().and_then(|relationship| relationship.since))
    }

    fn page(&self, list: List, of: Id, request: PageRequest<'_>) -> Result<ListPage> {
        let page = self.run(async {
            match list {
                List::Following => self.graph.following(KIND, of, request, Frontier::EMPTY).await,
                List::Followers => self.graph.followers(KIND, of, request, Frontier::EMPTY).await,
                List::Friends => self.graph.friends(KIND, of, request, Frontier::EMPTY).await,
            }
        })?;
        Ok(page)
    }

    fn counts(&self, of: &[Id]) -> Result<Vec<Counts>> {
        Ok(self.run(self.graph.counts(KIND, of, Frontier::EMPTY))?)
    }

    fn common(&self, of: &[Id], request: PageRequest<'_>) -> Result<OverlapPage> {
        Ok(self.run(self.graph.common(KIND, of, request, Frontier::EMPTY))?)
    }

    fn known_followers(&self, viewer: Id, of: Id, request: PageRequest<'_>) -> Result<OverlapPage> {
        Ok(self.run(self.graph.known_followers(KIND, viewer, of, request, Frontier::EMPTY))?)
    }

    fn suggestions(&self, of: Id, limit: usize) -> Result<Suggested> {
        let suggestions = self.suggestion_part()?;
        Ok(self.run(suggestions.read(of, limit, Frontier::EMPTY))?.into())
    }

    fn dismiss(&self, of: Id, target: Id) -> Result<WriteDone> {
        let suggestions = self.suggestion_part()?;
        Ok(self.written(&self.run(suggestions.dismiss(of, target))?))
    }

    fn register_post(&self, post: NewPost) -> Result<PostDone> {
        let written = self.run(self.feeds()?.register_post(post))?;
        Ok(PostDone { token: self.token(written.position), post: written.post, is_new: written.is_new })
    }

    fn delete_post(&self, author: Id, id: Id) -> Result<WriteDone> {
        Ok(self.removed(self.run(self.feeds()?.delete_post(Some(author), id, Frontier::EMPTY))?))
    }

    fn posts(&self, list: PostList, of: Id, request: PageRequest<'_>) -> Result<PostPage> {
        let feeds = self.feeds()?;
        let page = self.run(async {
            match list {
                PostList::Feed => feeds.feed(of, request, Frontier::EMPTY).await,
                PostList::Posts => feeds.posts_by(of, request, Frontier::EMPTY).await,
            }
        })?;
        Ok(page)
    }

    fn changes(&self, after: Option<&str>, limit: usize) -> Result<ChangesDone> {
        let context = &self.graph.context;
        let after = after.map(|token| context.frontier(token)).transpose()?.unwrap_or_default();
        let page = self.run(self.log().read(&after, limit))?;
        Ok(ChangesDone { items: page.items, next: context.token(page.next) })
    }

    fn import(
        self: Box<Self>,
        sources: &[Source],
        given: &ImportWish,
        reporter: &Reporter,
    ) -> Result<Imported> {
        let ids = self.store.id_kind();
        let needed = sources.iter().filter_map(|source| Some(room::of_edges(source.expected()?, ids)));
        let needed = needed.fold(0, u64::saturating_add).saturating_sub(self.store.stopped_import_bytes());
        if let Err(error) = self.profile.require_room(needed) {
            self.close_and_discard_if_new()?;
            return Err(error.into());
        }
        let limit = self.profile.service_settings().graph.following_limit;
        let following_limit = (!given.no_limit).then(|| given.limit.unwrap_or(limit));
        let sort_memory = given.memory.map(|mebibytes| mebibytes as usize * (1 << 20));
        let choices = ImportChoices {
            skip_invalid: given.skip_invalid,
            following_limit,
            sort_memory: sort_memory.unwrap_or_else(|| self.profile.sort_memory()),
            fingerprint: fingerprint(sources, given.skip_invalid, following_limit),
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
        let token = self.graph.context.token(done.report.frontier);
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

    fn suggest(&self, given: &SuggestWish, reporter: &Reporter) -> Result<SuggestDone> {
        let request = given.request(self.profile.everyone());
        let store = self
            .graph
            .context
            .shared_store()
            .suggestions()
            .ok_or(Error::NotAvailable { what: "suggesting users" })?;
        self.run(suggest(store, request, reporter))
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

impl<P: Profile> OpenGraph<P> {
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
async fn suggest<S: SuggestionStore>(
    store: Arc<S>,
    request: SuggestionRunRequest,
    reporter: &Reporter,
) -> Result<SuggestDone> {
    let mut signals = Signals::new().context("signals can't be received")?;
    let (sender, mut progress) = watch::channel(None);
    let stop = Arc::new(AtomicBool::new(false));
    let go_on = Arc::clone(&stop);
    let mut work = tokio::task::spawn_blocking(move || {
        store.compute_suggestions(request, &|done, total| {
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
