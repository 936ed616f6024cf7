//! The settings of a process: where the databases of its fleet are, and how long it waits for them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::Redis;

/// Where a fleet is, and how a process uses it.
#[derive(Clone)]
pub struct Settings {
    /// What the process does, as hosts show it to operators: see [`ProcessStatus`](crate::ProcessStatus).
    pub role: String,
    /// The connection string of the catalog's database.
    pub catalog: String,
    /// The connection string of each host, by the name that the catalog has for it.
    pub hosts: BTreeMap<String, String>,
    /// The file of the authorities whose certificates the databases show, as PEM. With it, connections are encrypted, unless their
    /// string says `sslmode=disable`.
    pub authorities: Option<PathBuf>,
    /// Connections for reads, to each host.
    pub read_connections: usize,
    /// Connections for writes and projection, to each host.
    pub write_connections: usize,
    /// Threads that run the store's work.
    pub threads: usize,
    /// A shard refuses writes while its log has so many changes: what reads it is away, and trimming waits for that.
    pub log_changes_max: u64,
    /// An account whose first page of followers or whose counts are read so often in a second is hot: they are kept for a moment. None
    /// is, without a number.
    pub hot_reads: Option<u32>,
    /// Where following sets are cached, if they are.
    pub redis: Option<Redis>,
    /// How long things may take.
    pub timeouts: Timeouts,
}

impl Settings {
    /// The usual settings for some databases.
    pub fn new(catalog: impl Into<String>, hosts: BTreeMap<String, String>) -> Self {
        Self {
            role: "all".to_owned(),
            catalog: catalog.into(),
            hosts,
            authorities: None,
            read_connections: 8,
            write_connections: 8,
            threads: 2,
            log_changes_max: 10_000_000,
            hot_reads: Some(8),
            redis: None,
            timeouts: Timeouts::default(),
        }
    }
}

/// Without the connection strings, which may hold passwords.
impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<&String> = self.hosts.keys().collect();
        out.debug_struct("Settings").field("role", &self.role).field("hosts", &hosts).finish_non_exhaustive()
    }
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// To connect to a host.
    pub connect: Duration,
    /// A write waits so long for the lock of its shard.
    pub lock: Duration,
    /// One statement.
    pub statement: Duration,
    /// A host ends a transaction whose process is silent for so long, which frees the shard.
    pub idle_in_transaction: Duration,
    /// A read waits so long for what it must show.
    pub visible: Duration,
    /// A write is tried again for so long, as long as nothing can have happened.
    pub write: Duration,
    /// A commit whose reply was lost is looked for so long.
    pub settle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            lock: Duration::from_secs(2),
            statement: Duration::from_secs(3),
            idle_in_transaction: Duration::from_secs(2),
            visible: Duration::from_secs(1),
            write: Duration::from_secs(5),
            settle: Duration::from_secs(5),
        }
    }
}
