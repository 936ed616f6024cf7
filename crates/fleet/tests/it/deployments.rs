//! Deployments for tests: databases of their own on the server that the environment names, removed in the end.

use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kinfolk_core::{Clock, IdKind};
use kinfolk_fleet::{Fleet, LogSource, NewDeployment, Projection, Settings};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls};

use crate::late::Late;

/// The variable that names a server: a connection string of one who may create databases.
pub const SERVER: &str = "KINFOLK_TEST_POSTGRES";

/// The server to test with. Without one there is nothing to test, unless `KINFOLK_REQUIRE_POSTGRES` is set.
pub fn server() -> Option<String> {
    let server = std::env::var(SERVER).ok();
    assert!(
        server.is_some() || std::env::var_os("KINFOLK_REQUIRE_POSTGRES").is_none(),
        "set {SERVER} to a connection string"
    );
    server
}

/// How the follower side follows.
#[derive(Clone, Copy, Debug)]
pub enum Projecting {
    /// As fast as it can.
    AtOnce,
    /// Late, twice, and with gaps, as a seed has it.
    Late(u64),
    /// Not at all.
    Never,
}

/// Databases of one deployment: a catalog and two hosts.
pub struct Databases {
    server: String,
    names: [String; 3],
    runtime: Runtime,
}

impl Databases {
    pub fn create(server: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |part: &str| format!("fleet_{}_{number}_{part}", std::process::id());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let databases = Self { server: server.to_owned(), names: ["catalog", "a", "b"].map(name), runtime };
        for name in &databases.names {
            databases.execute(None, &format!("CREATE DATABASE {name}"));
        }
        databases
    }

    /// Runs SQL in one of the databases, or beside them.
    pub fn execute(&self, database: Option<usize>, sql: &str) {
        self.runtime.block_on(async {
            let client = self.client(database).await;
            client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        });
    }

    /// The first column of the first row of a query.
    pub fn number(&self, database: usize, sql: &str) -> i64 {
        self.runtime
            .block_on(async { self.client(Some(database)).await.query_one(sql, &[]).await.unwrap().get(0) })
    }

    pub async fn client(&self, database: Option<usize>) -> Client {
        let mut config: Config = self.server.parse().unwrap();
        if let Some(database) = database {
            config.dbname(&self.names[database]);
        }
        config.options("-c search_path=kinfolk,kinfolk_catalog -c client_min_messages=warning");
        let (client, connection) = config.connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    pub fn settings(&self) -> Settings {
        let with_name = |name: &str| {
            let mut config = self.server.clone();
            let end = config.rfind('/').unwrap();
            config.replace_range(end + 1.., name);
            config
        };
        let [catalog, a, b] = &self.names;
        let hosts = [("a", a), ("b", b)].map(|(host, name)| (host.to_owned(), with_name(name)));
        Settings {
            read_connections: 6,
            write_connections: 4,
            ..Settings::new(with_name(catalog), hosts.into())
        }
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
             DELETE FROM following; DELETE FROM users; DELETE FROM log;
             COMMIT;"
        );
        self.execute(Some(1), &script);
        self.execute(Some(2), &script);
        self.execute(Some(0), &format!("UPDATE deployment SET epoch = {epoch}"));
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        for name in self.names.clone() {
            self.execute(None, &format!("DROP DATABASE {name} WITH (FORCE)"));
        }
    }
}

/// Makes stores, one after another, each on an empty deployment. One deployment for each id kind is kept for all of them.
pub struct Stores {
    server: String,
    shards: NonZeroU16,
    projecting: Projecting,
    change_settings: Box<dyn Fn(Settings) -> Settings>,
    kept: RefCell<HashMap<&'static str, Databases>>,
    /// The epoch of the newest store, with its clock and the kind of its ids.
    newest: RefCell<(i64, Option<(IdKind, Arc<dyn Clock>)>)>,
}

impl Stores {
    pub fn new(server: String, shards: u16, projecting: Projecting) -> Self {
        let shards = NonZeroU16::new(shards).unwrap();
        Self {
            server,
            shards,
            projecting,
            change_settings: Box::new(|settings| settings),
            kept: RefCell::default(),
            newest: RefCell::new((1, None)),
        }
    }

    /// Opens stores with other settings than those of the databases.
    pub fn with_settings(self, change: impl Fn(Settings) -> Settings + 'static) -> Self {
        Self { change_settings: Box::new(change), ..self }
    }

    /// An empty store.
    pub fn make(&self, id_kind: IdKind, clock: Arc<dyn Clock>) -> Fleet {
        let epoch = {
            let mut newest = self.newest.borrow_mut();
            newest.0 += 1;
            newest.1 = Some((id_kind, Arc::clone(&clock)));
            newest.0
        };
        self.with_databases(id_kind, |databases| databases.reset(epoch));
        self.open(id_kind, clock)
    }

    /// Closes a store and opens the newest one again.
    pub fn reopen(&self, store: Fleet) -> Fleet {
        drop(store);
        let (id_kind, clock) = self.newest.borrow().1.clone().unwrap();
        self.open(id_kind, clock)
    }

    /// Another process on the same deployment, which projects late.
    pub fn open_beside(&self, _store: &Fleet, seed: u64) -> Fleet {
        let (id_kind, clock) = self.newest.borrow().1.clone().unwrap();
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
            Projecting::AtOnce => Projection::start(&fleet, &Arc::new(log)).detach(),
            Projecting::Late(seed) => Projection::start(&fleet, &Arc::new(Late::new(log, seed))).detach(),
            Projecting::Never => {}
        }
        fleet
    }

    pub fn with_databases<T>(&self, id_kind: IdKind, work: impl FnOnce(&Databases) -> T) -> T {
        let mut kept = self.kept.borrow_mut();
        let databases = kept.entry(id_kind.name()).or_insert_with(|| {
            let databases = Databases::create(&self.server);
            Fleet::init(&databases.settings(), NewDeployment { id_kind, shards: self.shards }).unwrap();
            databases
        });
        work(databases)
    }
}
