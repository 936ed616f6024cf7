//! What the benchmarks share: servers of their own with their durability on, and how figures are printed.

use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kinfolk_fleet::Settings;
use tokio_postgres::{Client, NoTls};

/// Logical shards of the fleet, over two hosts.
pub fn shards() -> NonZeroU16 {
    let named = std::env::var("KINFOLK_BENCH_SHARDS").ok().and_then(|shards| shards.parse().ok());
    named.unwrap_or(const { NonZeroU16::new(32).unwrap() })
}

/// Enough memory and log that no checkpoint is forced. Durability stays on.
pub const SERVER_SETTINGS: &[&str] = &[
    "fsync=on",
    "synchronous_commit=on",
    "shared_buffers=512MB",
    "max_wal_size=4GB",
    "checkpoint_timeout=15min",
    "max_connections=400",
];

pub fn print(what: &str, figure: &str) {
    println!("{what:<52} {figure}");
}

/// The middle of some rates.
pub fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// Times of many operations.
pub struct Times(pub Vec<Duration>);

impl std::fmt::Display for Times {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut times = self.0.clone();
        times.sort_unstable();
        let percentile = |share: usize| times[times.len() * share / 100];
        write!(out, "p50 {:.2?}, p99 {:.2?}", percentile(50), percentile(99))
    }
}

/// Servers, until they are dropped: the catalog and two hosts of a fleet, or a broker of Kafka.
pub struct Servers {
    name: &'static str,
    folder: PathBuf,
    pub urls: Vec<String>,
}

impl Servers {
    fn stack(name: &str, action: &str, folder: &Path, settings: &[&str]) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/stack");
        let output = Command::new(script).args([name, action]).arg(folder).args(settings).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn start() -> Self {
        Self::start_one("fleet", SERVER_SETTINGS, "KINFOLK_TEST_POSTGRES=")
    }

    pub fn start_one(name: &'static str, settings: &[&str], fact: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("{name}-bench-{}", std::process::id()));
        let facts = Self::stack(name, "start", &folder, settings);
        let urls = facts.lines().find_map(|line| line.strip_prefix(fact)).unwrap();
        Self { name, urls: urls.split(',').map(str::to_owned).collect(), folder }
    }

    pub fn settings(&self) -> Settings {
        let hosts = [("a".to_owned(), self.urls[1].clone()), ("b".to_owned(), self.urls[2].clone())];
        Settings { write_connections: 16, ..Settings::new(self.urls[0].clone(), hosts.into()) }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        Self::stack(self.name, "stop", &self.folder, &[]);
    }
}

pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
