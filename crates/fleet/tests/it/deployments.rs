//! Deployments for tests: databases of their own on the server that the environment names, removed in the end.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU16;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kinfolk_conformance::block_on;
use kinfolk_core::{Clock, IdKind};
use kinfolk_fleet::{
    CacheFeed, ChangeSource, FilterSettings, Filtering, Fleet, Kafka, LogSource, NewDeployment, Projection,
    Redis, Relay, Settings, Timeouts, TopicSource,
};
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls};

use crate::kafka::{Topic, brokers};
use crate::late::Late;

/// Names the servers of the catalog and of two hosts, by URLs with commas between them, or one server for all of them. The user
/// must be allowed to create databases.
const SERVERS: &str = "KINFOLK_TEST_POSTGRES";

/// The servers to test with. Without them there is nothing to test, unless `KINFOLK_REQUIRE_POSTGRES` is set.
pub fn servers() -> Option<[String; 3]> {
    let named = std::env::var(SERVERS).ok();
    let is_required = std::env::var_os("KINFOLK_REQUIRE_POSTGRES").is_some();
    assert!(named.is_some() || !is_required, "set {SERVERS} to the URLs of PostgreSQL servers");
    let named = named?;
    let urls: Vec<&str> = named.split(',').collect();
    match urls[..] {
        [one] => Some([one, one, one].map(str::to_owned)),
        [catalog, a, b] => Some([catalog, a, b].map(str::to_owned)),
        _ => panic!("{SERVERS} names one server or three"),
    }
}

/// A number from the environment, for recorded runs.
pub fn asked(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

/// Settings for some nodes of Redis.
pub fn redis(nodes: &str) -> Redis {
    // Machines that are busy with tests are slow.
    Redis { timeout: Duration::from_millis(500), fills_per_second: 5_000, ..Redis::new(nodes.split(',')) }
}

/// How the follower side follows.
#[derive(Clone, Copy, Debug)]
pub enum Projecting {
    /// As fast as it can.
    AtOnce,
    /// Late, twice, and with gaps, as a seed has it.
    Late(u64),
    /// From the topic, by another process that also relays to it.
    ByTopic,
    /// Not at all.
    Never,
}

/// Databases of one deployment: a catalog and two hosts.
pub struct Databases {
    servers: [String; 3],
    names: [String; 3],
    runtime: Runtime,
    /// Whether the servers are those of the test, and go with it.
    are_own: bool,
}

impl Databases {
    pub fn create(servers: &[String; 3]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |part: &str| format!("fleet_{}_{number}_{part}", std::process::id());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let names = ["catalog", "a", "b"].map(name);
        let databases = Self { servers: servers.clone(), names, runtime, are_own: false };
        databases.of_servers("CREATE DATABASE", "");
        databases
    }

    /// On servers that end with the test, and may be away by then: nothing is removed.
    pub fn create_on_own(servers: &[String; 3]) -> Self {
        let mut databases = Self::create(servers);
        databases.are_own = true;
        databases
    }

    /// Runs a statement about each database in a database beside it.
    fn of_servers(&self, statement: &str, options: &str) {
        for (server, name) in self.servers.iter().zip(&self.names) {
            let sql = format!("{statement} {name} {options}");
            self.runtime.block_on(async {
                let client = connect(server.parse().unwrap()).await;
                client.batch_execute(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            });
        }
    }

    /// From now on a database is on another server, which has it already.
    pub fn move_to(&mut self, database: usize, server: &str) {
        server.clone_into(&mut self.servers[database]);
    }

    /// The name of a database.
    pub fn name(&self, database: usize) -> &str {
        &self.names[database]
    }

    /// Runs SQL beside one of the databases, on its server.
    pub fn beside(&self, database: usize, sql: &str) {
        self.runtime.block_on(async {
            let client = connect(self.servers[database].parse().unwrap()).await;
            client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        });
    }

    /// Ends all connections to some databases of a server, and returns when they are gone.
    pub fn disconnect(&self, database: usize, names: &[&str]) {
        let end =
            "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = ANY ($1)";
        self.runtime.block_on(async {
            let client = connect(self.servers[database].parse().unwrap()).await;
            while client.query_one(end, &[&names]).await.unwrap().get::<_, i64>(0) > 0 {}
        });
    }

    /// Runs SQL in one of the databases: 0 is the catalog.
    pub fn execute(&self, database: usize, sql: &str) {
        self.runtime.block_on(async {
            let client = self.client(database).await;
            client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        });
    }

    /// The first column of the first row of a query.
    pub fn number(&self, database: usize, sql: &str) -> i64 {
        self.runtime.block_on(async { self.client(database).await.query_one(sql, &[]).await.unwrap().get(0) })
    }

    async fn client(&self, database: usize) -> Client {
        let mut config: Config = self.url(database).parse().unwrap();
        config.options("-c search_path=kinfolk,kinfolk_catalog -c client_min_messages=warning");
        connect(config).await
    }

    fn url(&self, database: usize) -> String {
        let (server, attributes) =
            self.servers[database].split_once('?').unwrap_or((&self.servers[database], ""));
        let (server, _) = server.rsplit_once('/').unwrap();
        format!("{server}/{}?{attributes}", self.names[database])
    }

    pub fn settings(&self) -> Settings {
        let hosts = [("a".to_owned(), self.url(1)), ("b".to_owned(), self.url(2))];
        Settings { read_connections: 6, write_connections: 4, ..Settings::new(self.url(0), hosts.into()) }
    }

    /// The same with a third host, in the database of the catalog's server that has the catalog.
    pub fn settings_with_third_host(&self) -> Settings {
        let mut settings = self.settings();
        settings.hosts.insert("c".to_owned(), self.url(0));
        settings
    }

    /// A connection to a database with a name of its own, until it is dropped.
    pub fn connection_named(&self, database: usize, name: &str) -> Client {
        let mut config: Config = self.url(database).parse().unwrap();
        config.application_name(name);
        self.runtime.block_on(connect(config))
    }

    /// Empties the deployment and begins a new epoch.
    pub fn reset(&self, epoch: i64) {
        // The marks first: a projection of the store before that is in the middle of something ends before rows are removed,
        // and finds another epoch afterwards.
        let script = format!(
            "BEGIN;
             UPDATE projected SET epoch = {epoch}, sequence = 0;
             UPDATE shards SET epoch = {epoch};
             DELETE FROM followers; DELETE FROM follower_counts;
             DELETE FROM following; DELETE FROM users; DELETE FROM log; DELETE FROM relayed;
             TRUNCATE import, import_progress, staged_edges;
             COMMIT;"
        );
        self.execute(1, &script);
        self.execute(2, &script);
        self.execute(0, &format!("UPDATE deployment SET epoch = {epoch}"));
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        if !self.are_own {
            self.of_servers("DROP DATABASE", "WITH (FORCE)");
        }
    }
}

/// A command that runs one test of this binary as a process of its own, on the same deployment.
pub fn process(settings: &Settings, test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture"])
        .env("CATALOG", &settings.catalog)
        .env("HOST_a", &settings.hosts["a"])
        .env("HOST_b", &settings.hosts["b"]);
    command
}

/// The settings that [`process`] has passed on.
pub fn settings_of_process() -> Settings {
    let setting = |name: &str| std::env::var(name).unwrap();
    let hosts = ["a", "b"].map(|host| (host.to_owned(), setting(&format!("HOST_{host}"))));
    Settings::new(setting("CATALOG"), hosts.into())
}

/// Runs `scripts/stack` for a server in a folder; returns the facts that it prints.
pub fn stack(server: &str, action: &str, folder: &Path, settings: &[&str]) -> BTreeMap<String, String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/stack");
    let output = Command::new(script).args([server, action]).arg(folder).args(settings).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let fact = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    String::from_utf8(output.stdout).unwrap().lines().filter_map(fact).collect()
}

/// Signals a process that this test has started.
pub fn signal(process: i64, signal: Signal) {
    let process = Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    // One that has ended needs no signal.
    _ = kill_process(process, signal);
}

/// The first column of the first row of a query on a server, outside of any deployment.
pub fn server_number(server: &str, sql: &str) -> i64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime
        .block_on(async { connect(server.parse().unwrap()).await.query_one(sql, &[]).await.unwrap().get(0) })
}

async fn connect(config: Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Reads wait longer than usual for a follower side that is recent enough: a busy machine may be late.
pub fn patient(settings: Settings) -> Settings {
    let timeouts = Timeouts { visible: Duration::from_secs(5), ..settings.timeouts };
    Settings { timeouts, ..settings }
}

/// A deployment that is kept for many stores.
struct Kept {
    worker: Option<Worker>,
    databases: Databases,
}

/// Another process of a deployment, as it were: it relays and projects.
struct Worker {
    _relay: Relay,
    _fleet: Fleet,
    topic: Topic,
}

impl Worker {
    fn start(settings: Settings, shards: NonZeroU16) -> Self {
        let brokers = brokers().expect("brokers, where a topic is asked for");
        let topic = Topic::create(&brokers, i32::from(shards.get()));
        let fleet = Fleet::open(settings).unwrap();
        let relay = block_on(Relay::start(&fleet, &topic.settings())).unwrap();
        let source = block_on(TopicSource::start(&fleet, &topic.settings())).unwrap();
        Projection::start(&fleet, &Arc::new(source)).detach();
        Self { _relay: relay, _fleet: fleet, topic }
    }
}

/// Makes stores, one after another, each on an empty deployment. One deployment for each id kind is kept for all of them.
pub struct Stores {
    servers: [String; 3],
    shards: NonZeroU16,
    projecting: Projecting,
    change_settings: Box<dyn Fn(Settings) -> Settings>,
    /// The bytes of each store's filters, if it has any.
    filter_bytes: Option<u64>,
    kept: RefCell<HashMap<&'static str, Kept>>,
    epoch: Cell<i64>,
    /// The kind of ids and the clock of the last store.
    newest: RefCell<Option<(IdKind, Arc<dyn Clock>)>>,
}

impl Stores {
    pub fn new(servers: [String; 3], shards: u16, projecting: Projecting) -> Self {
        let shards = NonZeroU16::new(shards).unwrap();
        Self {
            servers,
            shards,
            projecting,
            change_settings: Box::new(|settings| settings),
            filter_bytes: None,
            kept: RefCell::default(),
            // Later than the epoch of a new deployment, which is the time of its creation in milliseconds.
            epoch: Cell::new(1 << 52),
            newest: RefCell::default(),
        }
    }

    /// Opens stores with other settings than those of the databases.
    pub fn with_settings(self, change: impl Fn(Settings) -> Settings + 'static) -> Self {
        Self { change_settings: Box::new(change), ..self }
    }

    /// Opens stores with filters.
    pub fn with_filters(self, bytes: u64) -> Self {
        Self { filter_bytes: Some(bytes), ..self }
    }

    /// Opens stores with a cache.
    pub fn with_cache(self, nodes: &str) -> Self {
        let redis = redis(nodes);
        let change = self.change_settings;
        let change_settings =
            Box::new(move |settings| Settings { redis: Some(redis.clone()), ..change(settings) });
        Self { change_settings, ..self }
    }

    /// An empty store.
    pub fn make(&self, id_kind: IdKind, clock: Arc<dyn Clock>) -> Fleet {
        let epoch = self.epoch.get() + 1;
        self.epoch.set(epoch);
        self.newest.replace(Some((id_kind, Arc::clone(&clock))));
        self.with_databases(id_kind, |databases| databases.reset(epoch));
        self.open(id_kind, clock)
    }

    /// Closes a store and opens the newest one again.
    pub fn reopen(&self, store: Fleet) -> Fleet {
        drop(store);
        let (id_kind, clock) = self.newest.borrow().clone().unwrap();
        self.open(id_kind, clock)
    }

    /// Another process on the same deployment, which projects late.
    pub fn open_beside(&self, seed: u64) -> Fleet {
        let (id_kind, clock) = self.newest.borrow().clone().unwrap();
        let settings = self.with_databases(id_kind, Databases::settings);
        let fleet = Fleet::open_with_clock(settings, clock).unwrap();
        Projection::start(&fleet, &Arc::new(Late::new(LogSource::new(&fleet), seed))).detach();
        fleet
    }

    fn open(&self, id_kind: IdKind, clock: Arc<dyn Clock>) -> Fleet {
        let settings = self.with_databases(id_kind, Databases::settings);
        let fleet = Fleet::open_with_clock((self.change_settings)(settings), clock).unwrap();
        let log = LogSource::new(&fleet);
        match self.projecting {
            Projecting::AtOnce => self.follow(&fleet, log),
            Projecting::Late(seed) => self.follow(&fleet, Late::new(log, seed)),
            Projecting::ByTopic | Projecting::Never => self.keep_filters(&fleet, &Arc::new(log)),
        }
        fleet
    }

    /// Brings everything to the hosts, the cache and the filters.
    fn follow<S: ChangeSource>(&self, fleet: &Fleet, source: S) {
        let source = Arc::new(source);
        Projection::start(fleet, &source).detach();
        CacheFeed::start(fleet, &source).detach();
        self.keep_filters(fleet, &source);
    }

    fn keep_filters<S: ChangeSource>(&self, fleet: &Fleet, source: &Arc<S>) {
        if let Some(bytes_max) = self.filter_bytes {
            Filtering::start(fleet, source, FilterSettings { bytes_max, folder: None }).detach();
        }
    }

    /// How the topic of a deployment is reached that has one.
    pub fn kafka(&self, id_kind: IdKind) -> Kafka {
        self.kept.borrow()[id_kind.name()].worker.as_ref().unwrap().topic.settings()
    }

    pub fn with_databases<T>(&self, id_kind: IdKind, work: impl FnOnce(&Databases) -> T) -> T {
        let mut kept = self.kept.borrow_mut();
        let kept = kept.entry(id_kind.name()).or_insert_with(|| {
            let databases = Databases::create(&self.servers);
            let settings = databases.settings();
            Fleet::init(&settings, NewDeployment { id_kind, shards: self.shards }).unwrap();
            let by_topic = matches!(self.projecting, Projecting::ByTopic);
            Kept { worker: by_topic.then(|| Worker::start(settings, self.shards)), databases }
        });
        work(&kept.databases)
    }
}
