//! A fleet on servers of its own: two hosts and a catalog with their durability on, a Redis Cluster of three masters and three replicas.

use std::fs;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kinfolk_core::IdKind;
use kinfolk_core::bulk::ImportOptions;
use kinfolk_core::graph::{CheckStore, Edge};
use kinfolk_core::{Frontier, Id};
use kinfolk_fleet::{
    CacheFeed, CacheVerdict, FilterSettings, Filtering, Fleet, LogSource, NewDeployment, Projection, Redis,
    Settings, ShardVerdict,
};
use tokio::runtime::Runtime;

use super::graph::Graph;
use crate::client::Client;
use crate::dataset::{KIND, edge};
use crate::stack::Stack;

/// Logical shards, over two hosts.
pub const SHARDS: u16 = 32;

/// Memory for the filters of a process, more than they need.
pub const FILTER_BYTES: u64 = 64 << 20;

/// Enough memory and log that no checkpoint is forced. Durability stays on.
const POSTGRES: &[&str] = &[
    "fsync=on",
    "synchronous_commit=on",
    "shared_buffers=512MB",
    "max_wal_size=4GB",
    "checkpoint_timeout=15min",
    "max_connections=400",
];

/// Sets of integers stay arrays up to the size of the largest set that is cached.
const REDIS: &[&str] = &["set-max-intset-entries=10000"];

/// Sets a second that are filled while nothing is measured. A process fills 500 by default.
const FILLS_WHEN_WARMING: u32 = 50_000;

/// Followers that are asked for at once while the cache is filled, and fills that wait at most: a process forgets more than 20,000.
const WARMED_AT_ONCE: usize = 500;
const WAITING_MAX: u64 = 2_000;

/// Filling the cache takes no longer.
const FILL_MAX: Duration = Duration::from_secs(120);

/// The servers of a fleet.
pub struct Deployment {
    databases: Stack,
    cluster: Stack,
    folder: PathBuf,
}

impl Deployment {
    /// Starts the servers and creates an empty fleet.
    pub fn start(folder: &Path) -> Result<Self> {
        eprintln!("starting three PostgreSQL servers and a Redis Cluster");
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let databases = Stack::start("fleet", &folder.join("databases"), POSTGRES)?;
        let cluster = Stack::start("cluster", &folder.join("cluster"), REDIS)?;
        let deployment = Self { databases, cluster, folder: folder.to_owned() };
        let shards = NonZeroU16::new(SHARDS).context("a fleet has shards")?;
        Fleet::init(&deployment.settings("init")?, NewDeployment { id_kind: IdKind::Integer, shards })?;
        Ok(deployment)
    }

    /// The connection strings of the catalog and of the hosts.
    fn urls(&self) -> Result<[&str; 3]> {
        let urls: Vec<&str> = self.databases.fact("KINFOLK_TEST_POSTGRES")?.split(',').collect();
        urls[..].try_into().context("a fleet has three servers")
    }

    /// The connection string of a host.
    pub fn host(&self) -> Result<&str> {
        Ok(self.urls()?[1])
    }

    /// The nodes, the masters first.
    fn nodes(&self) -> Result<&str> {
        self.cluster.fact("KINFOLK_TEST_REDIS_CLUSTER")
    }

    /// A connection to each master.
    pub fn masters(&self) -> Result<Vec<Client>> {
        self.nodes()?.split(',').take(3).map(|node| Client::resp(node.parse()?, None)).collect()
    }

    /// Empties the cache.
    pub fn flush_cache(&self) -> Result<()> {
        self.masters()?.iter_mut().try_for_each(|master| master.command("FLUSHALL SYNC").map(drop))
    }

    /// The settings of a process without a cache.
    pub fn settings(&self, role: &str) -> Result<Settings> {
        let [catalog, a, b] = self.urls()?;
        let hosts = [("a".to_owned(), a.to_owned()), ("b".to_owned(), b.to_owned())];
        Ok(Settings { role: role.into(), ..Settings::new(catalog, hosts.into()) })
    }

    /// The settings of a process with a cache.
    pub fn settings_with_cache(&self, role: &str) -> Result<Settings> {
        Ok(Settings { redis: Some(Redis::new(self.nodes()?.split(','))), ..self.settings(role)? })
    }

    /// Writes the configuration of the binary.
    pub fn configuration(&self) -> Result<PathBuf> {
        let ([catalog, a, b], nodes) = (self.urls()?, self.nodes()?);
        let file = self.folder.join("fleet.toml");
        let text = format!(
            "[fleet]\ncatalog = \"{catalog}\"\nhosts = {{ a = \"{a}\", b = \"{b}\" }}\n\n[redis]\nnodes = \"{nodes}\"\n"
        );
        fs::write(&file, text)?;
        Ok(file)
    }

    /// Imports a graph, and returns once all of it is projected.
    pub fn import(&self, graph: &Graph, runtime: &Runtime) -> Result<()> {
        eprintln!("importing {} edges", graph.edges.len());
        let fleet = Arc::new(Fleet::open(self.settings("all")?)?);
        let projection = Projection::start(&fleet, &Arc::new(LogSource::new(&fleet)));
        let fingerprint = "ego-twitter".to_owned();
        let options = ImportOptions { kind: KIND, following_limit: None, fingerprint, sort_memory: 64 << 20 };
        let mut import = fleet.import(&options)?;
        graph.edges.iter().try_for_each(|&pair| import.push(edge(pair), None))?;
        let added = import.finish(&|_| {})?.added;
        if added != graph.edges.len() as u64 {
            bail!("{added} edges were imported, not {}", graph.edges.len());
        }
        while !runtime
            .block_on(fleet.status())?
            .shards
            .iter()
            .all(|shard| shard.projection_behind() == Some(0))
        {
            sleep(Duration::from_millis(100));
        }
        drop(projection);
        Ok(())
    }

    /// Has the sets of some followers read into the cache, by a process of its own.
    pub fn fill_cache(&self, followers: &[u64], runtime: &Runtime) -> Result<()> {
        eprintln!("filling the cache with {} sets", followers.len());
        let mut settings = self.settings_with_cache("warm")?;
        if let Some(redis) = &mut settings.redis {
            redis.fills_per_second = FILLS_WHEN_WARMING;
            redis.timeout = Duration::from_secs(1);
        }
        let fleet = Fleet::open(settings)?;
        let waiting = || -> u64 {
            let Some(cache) = fleet.layer_states().cache else { return 0 };
            let absent = cache.verdicts.iter().filter(|(verdict, _)| *verdict == CacheVerdict::Absent);
            let requested: u64 = absent.map(|(_, count)| count).sum();
            requested.saturating_sub(cache.fills.iter().map(|(_, count)| count).sum())
        };
        let began = Instant::now();
        for followers in followers.chunks(WARMED_AT_ONCE) {
            warm(&fleet, followers, runtime)?;
            while waiting() > WAITING_MAX && began.elapsed() < FILL_MAX {
                sleep(Duration::from_millis(5));
            }
        }
        // Those that have failed are asked for again; sets that are there are found.
        while began.elapsed() < FILL_MAX {
            let before = asked_shards(&fleet);
            for followers in followers.chunks(WARMED_AT_ONCE) {
                warm(&fleet, followers, runtime)?;
            }
            if asked_shards(&fleet) == before {
                return Ok(());
            }
            sleep(Duration::from_millis(500));
        }
        bail!("the cache could not be filled: {:?}", fleet.layer_states());
    }
}

/// Asks for a followee that nobody has, so that the sets of some followers are filled.
fn warm(fleet: &Fleet, followers: &[u64], runtime: &Runtime) -> Result<()> {
    let nobody = Id::Integer(u64::MAX >> 1);
    let asked = |&follower: &u64| Edge { follower: Id::Integer(follower), followee: nobody };
    let edges: Vec<Edge> = followers.iter().map(asked).collect();
    runtime.block_on(fleet.contains(KIND, &edges, Frontier::EMPTY))?;
    Ok(())
}

/// How many checks the shards have answered for a process.
pub fn asked_shards(fleet: &Fleet) -> u64 {
    let counts = fleet.layer_states().shards.into_iter();
    counts.filter(|(verdict, _)| *verdict != ShardVerdict::Failed).map(|(_, count)| count).sum()
}

/// A process that projects and feeds the cache, as it were, until it is dropped.
pub struct Projecting {
    _projection: Projection,
    _feed: CacheFeed,
    _fleet: Fleet,
}

impl Projecting {
    pub fn start(deployment: &Deployment) -> Result<Self> {
        let fleet = Fleet::open(deployment.settings_with_cache("project")?)?;
        let source = Arc::new(LogSource::new(&fleet));
        let (projection, feed) = (Projection::start(&fleet, &source), CacheFeed::start(&fleet, &source));
        Ok(Self { _projection: projection, _feed: feed, _fleet: fleet })
    }
}

/// A process that serves, with all layers, until it is dropped.
pub struct Serving {
    _filtering: Filtering,
    pub fleet: Fleet,
}

impl Serving {
    /// Opens it, and returns once every shard has a filter.
    pub fn start(deployment: &Deployment) -> Result<Self> {
        let fleet = Fleet::open(deployment.settings_with_cache("api")?)?;
        let settings = FilterSettings { bytes_max: FILTER_BYTES, folder: None };
        let filtering = Filtering::start(&fleet, &Arc::new(LogSource::new(&fleet)), settings);
        let covered = || fleet.layer_states().filters.map_or(0, |filters| filters.shards);
        while covered() < usize::from(SHARDS) {
            sleep(Duration::from_millis(50));
        }
        Ok(Self { _filtering: filtering, fleet })
    }
}
