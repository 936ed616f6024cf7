//! The store behind the servers: a fleet of one shard, so that positions are those of the reference store, with clients that
//! see every write before them. Where the environment names no PostgreSQL, it is the reference store.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kinfolk_conformance::{ModelStore, SimulatedClock};
use kinfolk_core::changes::{ChangeLog, LogPage, LogSpan};
use kinfolk_core::graph::{
    CheckStore, Counts, Edge, EdgeList, EdgeStore, ListEntry, ListKey, Overlap, Receipt, UserSet,
    WriteRequest,
};
use kinfolk_core::suggestions::{
    StoredSuggestions, Suggestion, SuggestionRunReport, SuggestionRunRequest, SuggestionStore, WalkBounds,
};
use kinfolk_core::{Absent, Deployment, EdgeKind, Epoch, Frontier, Id, IdKind, Result, Store, Timestamp};
use kinfolk_fleet::{Fleet, LogSource, NewDeployment, Projection, Settings};

use super::super::databases::Databases;
use super::store::WatchedStore;

/// Whether it has posts, feeds and comments.
pub(crate) const HAS_CONTENT: bool = false;

/// Whether its reads show a position of any shard: checks, and whom a user follows, come from the follower's shard alone.
pub(crate) const READS_SHOW_EVERYTHING: bool = false;

pub(crate) enum Backing {
    Fleet(Box<Deployed>),
    Reference(Box<ModelStore>),
}

/// A fleet of its own.
pub(crate) struct Deployed {
    fleet: Fleet,
    /// What was written so far: every read shows it, as the reads of a client do that sends its tokens.
    seen: Mutex<Frontier>,
    /// Not there only while it is dropped.
    databases: Option<Databases>,
}

impl Drop for Deployed {
    fn drop(&mut self) {
        // Removing databases blocks, and the last user of the store may be a task.
        let databases = self.databases.take();
        let removed = std::thread::spawn(move || drop(databases)).join();
        assert!(removed.is_ok() || std::thread::panicking(), "the databases are removed");
    }
}

/// An empty store.
pub(crate) fn open(id_kind: IdKind, clock: Arc<SimulatedClock>) -> Backing {
    let Some(databases) = Databases::create() else {
        return Backing::Reference(Box::new(ModelStore::new(id_kind, clock)));
    };
    let [catalog, a, b] = [0, 1, 2].map(|database| databases.url(database));
    let hosts = [("a".to_owned(), a), ("b".to_owned(), b)];
    let settings =
        Settings { read_connections: 4, write_connections: 2, ..Settings::new(catalog, hosts.into()) };
    Fleet::init(&settings, NewDeployment { id_kind, shards: 1.try_into().unwrap() }).unwrap();
    // The epoch of the reference store, which the tests put into tokens.
    for host in [1, 2] {
        databases
            .execute(host, "UPDATE kinfolk.shards SET epoch = 1; UPDATE kinfolk.projected SET epoch = 1");
    }
    databases.execute(0, "UPDATE kinfolk_catalog.deployment SET epoch = 1");
    let fleet = Fleet::open_with_clock(settings, clock).unwrap();
    Projection::start(&fleet, &Arc::new(LogSource::new(&fleet))).detach();
    Backing::Fleet(Box::new(Deployed { fleet, seen: Mutex::default(), databases: Some(databases) }))
}

impl Backing {
    /// What a read has to show.
    fn fresh(&self, at_least: &Frontier) -> Frontier {
        let mut fresh = at_least.clone();
        if let Self::Fleet(deployed) = self {
            fresh.join(&deployed.seen.lock().unwrap());
        }
        fresh
    }
}

/// Calls the store that there is.
macro_rules! call {
    ($backing:ident, $store:ident => $call:expr) => {
        match $backing {
            Backing::Fleet(deployed) => {
                let $store = &deployed.fleet;
                $call
            }
            Backing::Reference($store) => $call,
        }
    };
}

/// Reads that show at least what was written so far.
macro_rules! reads {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        $(async fn $name(&self, $($argument: $type,)* at_least: &Frontier) -> $output {
            let fresh = self.fresh(at_least);
            call!(self, store => store.$name($($argument,)* &fresh).await)
        })*
    };
}

impl Deployment for Backing {
    fn id_kind(&self) -> IdKind {
        call!(self, store => store.id_kind())
    }

    fn epoch(&self) -> Epoch {
        call!(self, store => store.epoch())
    }
}

impl CheckStore for Backing {
    reads! {
        fn contains(kind: EdgeKind, edges: &[Edge]) -> Result<Vec<bool>>;
    }
}

impl EdgeStore for Backing {
    async fn write(&self, requests: Vec<WriteRequest>) -> Vec<Result<Receipt>> {
        let written = call!(self, store => store.write(requests).await);
        if let Self::Fleet(deployed) = self {
            let mut seen = deployed.seen.lock().unwrap();
            written.iter().flatten().for_each(|receipt| seen.join(&receipt.position.into()));
        }
        written
    }

    reads! {
        fn since(kind: EdgeKind, edges: &[Edge]) -> Result<Vec<Option<Timestamp>>>;
        fn list(list: EdgeList, after: Option<ListKey>, limit: usize) -> Result<Vec<ListEntry>>;
        fn friends(kind: EdgeKind, of: Id, after: Option<ListKey>, limit: usize) -> Result<Vec<ListEntry>>;
        fn overlap(kind: EdgeKind, sets: &[UserSet], after: Option<Id>, limit: usize) -> Result<Overlap>;
        fn counts(kind: EdgeKind, of: &[Id]) -> Result<Vec<Counts>>;
    }
}

impl SuggestionStore for Backing {
    reads! {
        fn candidates(of: Id, bounds: WalkBounds) -> Result<Vec<Suggestion>>;
        fn stored_suggestions(of: Id, max_age: Duration) -> Result<Option<StoredSuggestions>>;
    }

    async fn store_suggestions(&self, computed: Vec<(Id, StoredSuggestions)>) -> Result<()> {
        call!(self, store => store.store_suggestions(computed).await)
    }

    fn compute_suggestions(
        &self,
        request: SuggestionRunRequest,
        watch: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<SuggestionRunReport> {
        call!(self, store => store.compute_suggestions(request, watch))
    }
}

impl ChangeLog for Backing {
    async fn span(&self) -> Result<LogSpan> {
        call!(self, store => store.span().await)
    }

    async fn changes(&self, after: &Frontier, limit: usize) -> Result<LogPage> {
        call!(self, store => store.changes(after, limit).await)
    }

    async fn wait_for_changes(&self, after: &Frontier) -> Result<bool> {
        call!(self, store => store.wait_for_changes(after).await)
    }
}

impl Store for WatchedStore {
    type Suggestions = Self;
    type Content = Absent;

    fn suggestions(self: &Arc<Self>) -> Option<Arc<Self>> {
        Some(Arc::clone(self))
    }

    fn content(self: &Arc<Self>) -> Option<Arc<Absent>> {
        None
    }
}
