//! The store: its runtime, its knowledge of the deployment, and the tasks that work for it.

use std::future::Future;
use std::sync::Arc;

use kinfolk_core::{
    Absent, Clock, Deployment, Epoch, Error, Id, IdKind, Keyring, Result, Store, SystemClock, Timestamp,
};
use parking_lot::RwLock;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::background::Background;
use crate::cache::{Cache, fill, report};
use crate::catalog::{Catalog, Topology};
use crate::check::{Filters, Layers, ShardCounts};
use crate::hot::Hot;
use crate::postgres::{Failure, Query, Statements, unavailable};
use crate::read::{Acknowledged, Staleness, sample};
use crate::reconcile::Reconciled;
use crate::write::Writers;
use crate::{FleetStatus, Initialized, NewDeployment, Settings};

/// Walks for suggestions that run at once.
const WALKS_MAX: usize = 2;

/// What all tasks of a store share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) statements: Statements,
    catalog: Catalog,
    topology: RwLock<Arc<Topology>>,
    /// When the catalog was last asked for a newer map, and whether it has answered.
    reloaded: Mutex<Option<(Instant, Result<()>)>>,
    /// Walks for suggestions take turns, so that they leave connections to others.
    pub(crate) walks: Semaphore,
    /// What every host must show.
    pub(crate) acknowledged: Acknowledged,
    /// How old the follower side of each host may be.
    pub(crate) staleness: Staleness,
    /// Which edges certainly do not exist.
    pub(crate) filters: Filters,
    /// The following sets in Redis, if there are any.
    pub(crate) cache: Option<Cache>,
    /// What the shards have said of checks.
    pub(crate) shard_counts: ShardCounts,
    /// Answers about accounts that are read often.
    pub(crate) hot: Hot,
    /// What the reconciler of this process has done.
    pub(crate) reconciled: Reconciled,
    /// Changes when this process has committed or projected something: a read that waits looks again.
    progress: watch::Sender<u64>,
}

impl Shared {
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(crate) fn topology(&self) -> Arc<Topology> {
        Arc::clone(&self.topology.read())
    }

    /// Reads the catalog again, after a host has refused a shard. Those who ask at once share one answer.
    pub(crate) async fn reload_topology(&self) -> std::result::Result<(), Failure> {
        let asked = Instant::now();
        let mut latest = self.reloaded.lock().await;
        if let Some((_, outcome)) = latest.as_ref().filter(|(began, _)| *began >= asked) {
            return outcome.clone().map_err(Failure::Transient);
        }
        let (began, known) = (Instant::now(), self.topology());
        let newer = known.reload(&self.catalog, &self.settings).await;
        let outcome = newer.map(|newer| newer.into_iter().for_each(|newer| self.replace_topology(newer)));
        // The reason is for operators: the caller of a read may be anybody.
        let outcome = outcome.map_err(|error| unavailable("the catalog", error));
        *latest = Some((began, outcome.clone()));
        outcome.map_err(Failure::Transient)
    }

    /// Reads the catalog again for shards that were moved. A new epoch is left to the reads and writes that are refused because of it: they
    /// compare what their callers have seen.
    pub(crate) async fn reload_moved_shards(&self) -> std::result::Result<(), Failure> {
        let known = self.topology();
        let newer = known.reload(&self.catalog, &self.settings).await;
        let newer = newer.map_err(|error| Failure::Transient(unavailable("the catalog", error)))?;
        newer
            .into_iter()
            .filter(|newer| newer.epoch == known.epoch)
            .for_each(|newer| self.replace_topology(newer));
        Ok(())
    }

    fn replace_topology(&self, newer: Topology) {
        let mut topology = self.topology.write();
        if newer.is_newer_than(&topology) {
            *topology = Arc::new(newer);
        }
    }

    pub(crate) fn announce_progress(&self) {
        self.progress.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(crate) fn watch_progress(&self) -> watch::Receiver<u64> {
        self.progress.subscribe()
    }
}

/// The store of a fleet. It runs its work on threads of its own; callers only wait for it, on whatever runtime they have.
/// Clones share it; it ends with the last of them.
#[derive(Clone)]
pub struct Fleet {
    pub(crate) shared: Arc<Shared>,
    pub(crate) writers: Arc<Writers>,
    pub(crate) layers: Arc<Layers>,
    keyring: Keyring,
    runtime: Arc<StoreRuntime>,
}

/// The threads of a store.
struct StoreRuntime(
    /// Not there only while it is dropped.
    Option<Runtime>,
);

impl Fleet {
    /// Creates a deployment: see [`Catalog::init`].
    pub fn init(settings: &Settings, new: NewDeployment) -> Result<Initialized> {
        runtime(1)?.block_on(Catalog::init(settings, new))
    }

    /// Opens the store of a deployment.
    pub fn open(settings: Settings) -> Result<Self> {
        Self::open_with_clock(settings, Arc::new(SystemClock))
    }

    /// Opens the store of a deployment with a clock.
    pub fn open_with_clock(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self> {
        let runtime = runtime(settings.threads)?;
        let catalog = Catalog::new(&settings)?;
        let topology = runtime.block_on(Topology::open(&catalog, &settings))?;
        let keyring = runtime.block_on(catalog.keys())?;
        Self::assemble(settings, clock, runtime, Known { catalog, topology, keyring })
    }

    /// The state of a deployment, whether or not its hosts answer or are what the catalog says.
    pub fn inspect(settings: Settings) -> Result<FleetStatus> {
        let runtime = runtime(settings.threads)?;
        let catalog = Catalog::new(&settings)?;
        let (topology, refused) = runtime.block_on(Topology::inspect(&catalog, &settings))?;
        let keyring = runtime.block_on(catalog.keys())?;
        let handle = runtime.handle().clone();
        let fleet =
            Self::assemble(settings, Arc::new(SystemClock), runtime, Known { catalog, topology, keyring })?;
        let mut status = handle.block_on(fleet.status())?;
        if let Some(cache) = &fleet.shared.cache {
            status.checks = handle.block_on(cache.reports(fleet.shared.topology().identity));
        }
        for host in &mut status.hosts {
            if let Some(error) = refused.get(&host.name) {
                host.condition = Err(error.to_string());
            }
        }
        Ok(status)
    }

    fn assemble(settings: Settings, clock: Arc<dyn Clock>, runtime: Runtime, known: Known) -> Result<Self> {
        let Known { catalog, topology, keyring } = known;
        let open = |redis| Cache::open(redis, runtime.handle());
        let cache = settings.redis.as_ref().map(open).transpose()?;
        let shared = Arc::new(Shared {
            hot: Hot::new(settings.hot_reads),
            settings,
            clock,
            statements: Statements::new(topology.id_kind),
            catalog,
            walks: Semaphore::new(WALKS_MAX),
            acknowledged: Acknowledged::default(),
            staleness: Staleness::default(),
            filters: Filters::default(),
            cache,
            shard_counts: ShardCounts::default(),
            reconciled: Reconciled::default(),
            progress: watch::Sender::new(0),
            topology: RwLock::new(Arc::new(topology)),
            reloaded: Mutex::default(),
        });
        keep(&runtime, &shared, "samples of the hosts", sample);
        if shared.cache.is_some() {
            keep(&runtime, &shared, "fills of the cache", fill);
            keep(&runtime, &shared, "reports of checks", report);
        }
        let writers = Arc::new(Writers::new(Arc::clone(&shared), runtime.handle()));
        let layers = Arc::new(Layers::stack(&shared, runtime.handle()));
        Ok(Self { shared, writers, layers, keyring, runtime: Arc::new(StoreRuntime(Some(runtime))) })
    }

    /// The keys that sign tokens and cursors, as they were when the store was opened.
    pub fn keyring(&self) -> Keyring {
        self.keyring.clone()
    }

    /// The time of the store.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// The deployment's catalog.
    pub fn catalog(&self) -> &Catalog {
        &self.shared.catalog
    }

    pub(crate) fn handle(&self) -> &Handle {
        self.runtime.0.as_ref().expect("the runtime is there until the store is dropped").handle()
    }

    /// Runs a read on the store's threads. A caller that stops waiting ends it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        run_on(self.handle(), work).await
    }

    /// The plan that the first host makes for a statement.
    pub async fn explain(&self, query: Query) -> Result<String> {
        let shared = Arc::clone(&self.shared);
        self.run(async move {
            let host = Arc::clone(&shared.topology().hosts[0]);
            host.explain(shared.statements.text(query)).await.map_err(Failure::into_error)
        })
        .await
    }

    /// The shard of a user, for tools and tests.
    pub fn shard_of(&self, id: Id) -> kinfolk_core::Shard {
        self.shared.topology().shard_of(id)
    }
}

/// Starts work that goes on until the store is dropped.
fn keep<F: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    shared: &Arc<Shared>,
    name: &'static str,
    work: fn(Arc<Shared>) -> F,
) {
    let shared = Arc::clone(shared);
    Background::start(runtime.handle(), name, move || work(Arc::clone(&shared))).detach();
}

/// Runs work on a runtime. A caller that stops waiting ends it.
pub(crate) async fn run_on<T: Send + 'static>(
    runtime: &Handle,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    /// Ends the task of a caller that has gone.
    struct AbortOnDrop(AbortHandle);
    impl Drop for AbortOnDrop {
        fn drop(&mut self) {
            self.0.abort();
        }
    }
    let task = runtime.spawn(work);
    let _guard = AbortOnDrop(task.abort_handle());
    match task.await {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Error::Closed),
    }
}

fn runtime(threads: usize) -> Result<Runtime> {
    let built = Builder::new_multi_thread().worker_threads(threads).thread_name("fleet").enable_all().build();
    built.map_err(|error| Error::Storage { detail: format!("no threads for the store: {error}") })
}

/// What the catalog has told about a deployment.
struct Known {
    catalog: Catalog,
    topology: Topology,
    keyring: Keyring,
}

impl Drop for StoreRuntime {
    fn drop(&mut self) {
        // Not by waiting: the store may be dropped where nothing may block.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Deployment for Fleet {
    fn id_kind(&self) -> IdKind {
        self.shared.topology().id_kind
    }

    fn epoch(&self) -> Epoch {
        self.shared.topology().epoch
    }
}

impl Store for Fleet {
    type Suggestions = Self;
    type Content = Absent;

    fn suggestions(self: &Arc<Self>) -> Option<Arc<Self>> {
        Some(Arc::clone(self))
    }

    fn content(self: &Arc<Self>) -> Option<Arc<Absent>> {
        None
    }
}
