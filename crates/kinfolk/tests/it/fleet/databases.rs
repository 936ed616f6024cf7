//! Databases of a fleet, created for one test on the servers that the environment names, and removed in the end.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::runtime::Runtime;
use tokio_postgres::NoTls;

use crate::support::Sandbox;

/// Names the servers of the catalog and of two hosts, by URLs with commas between them, or one server for all of them.
const SERVERS: &str = "KINFOLK_TEST_POSTGRES";

/// The databases of one fleet: a catalog and two hosts.
pub struct Databases {
    servers: [String; 3],
    names: [String; 3],
    runtime: Runtime,
}

impl Databases {
    /// Empty databases. None if the environment names no servers, unless `KINFOLK_REQUIRE_POSTGRES` is set.
    pub fn create() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let named = std::env::var(SERVERS).ok();
        let is_required = std::env::var_os("KINFOLK_REQUIRE_POSTGRES").is_some();
        assert!(named.is_some() || !is_required, "set {SERVERS} to the URLs of PostgreSQL servers");
        let named = named?;
        let urls: Vec<&str> = named.split(',').collect();
        let servers = match urls[..] {
            [one] => [one; 3],
            [catalog, a, b] => [catalog, a, b],
            _ => panic!("{SERVERS} names one server or three"),
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |part: &str| format!("binary_{}_{number}_{part}", std::process::id());
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let databases =
            Self { servers: servers.map(str::to_owned), names: ["catalog", "a", "b"].map(name), runtime };
        databases.on_servers("CREATE DATABASE", "");
        Some(databases)
    }

    fn on_servers(&self, statement: &str, options: &str) {
        for (server, name) in self.servers.iter().zip(&self.names) {
            self.execute_at(server, &format!("{statement} {name} {options}"));
        }
    }

    fn execute_at(&self, url: &str, sql: &str) {
        self.runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
            tokio::spawn(connection);
            client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        });
    }

    /// Runs SQL in one of the databases: 0 is the catalog.
    pub fn execute(&self, database: usize, sql: &str) {
        self.execute_at(&self.url(database), sql);
    }

    /// Runs SQL beside one of the databases, on its server.
    pub fn beside(&self, database: usize, sql: &str) {
        self.execute_at(&self.servers[database], sql);
    }

    /// The name of one of the databases.
    pub fn name(&self, database: usize) -> &str {
        &self.names[database]
    }

    /// The columns of the one row of a query.
    pub fn numbers<const N: usize>(&self, database: usize, sql: &str) -> [i64; N] {
        self.runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(&self.url(database), NoTls).await.unwrap();
            tokio::spawn(connection);
            let row = client.query_one(sql, &[]).await.unwrap();
            std::array::from_fn(|column| row.get(column))
        })
    }

    /// The connection string of one of the databases.
    pub fn url(&self, database: usize) -> String {
        let (server, _) = self.servers[database].rsplit_once('/').unwrap();
        format!("{server}/{}", self.names[database])
    }

    /// A configuration that names the databases. Nothing balances the load of most tests, so that a process need not be drained; and
    /// nothing is reconciled: repairs would hide what a test looks for.
    pub fn configuration(&self) -> String {
        let [catalog, a, b] = [0, 1, 2].map(|database| self.url(database));
        format!(
            "[server]\ndrain = \"0 s\"\n[fleet]\ncatalog = \"{catalog}\"\nhosts = {{ a = \"{a}\", b = \"{b}\" }}\nreconcile_rows = 0\n"
        )
    }

    /// A sandbox with that configuration. Nothing is created yet.
    pub fn sandbox(&self) -> Sandbox {
        Sandbox::configured(&self.configuration())
    }

    /// A sandbox with a fleet of four shards.
    pub fn fleet(&self) -> Sandbox {
        let sandbox = self.sandbox();
        sandbox.ok("fleet init --shards 4");
        sandbox
    }
}

impl Drop for Databases {
    fn drop(&mut self) {
        self.on_servers("DROP DATABASE", "WITH (FORCE)");
    }
}
