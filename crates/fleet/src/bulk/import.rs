//! Imports: the whole input is staged first, then applied shard by shard. A run that was stopped goes on where it was.
//!
//! Until the last edge is staged nothing is visible, and what is staged can be dropped. From then on the import happens: it is
//! applied in chunks, and becomes visible chunk by chunk. One import runs at a time.

use std::cell::Cell;
use std::sync::Arc;

use futures_util::future::try_join_all;
use futures_util::{TryStreamExt, stream};
use kinfolk_core::bulk::{ImportOptions, ImportReport, Progress};
use kinfolk_core::graph::Edge;
use kinfolk_core::{Result, Timestamp};

use super::chunk::ShardImport;
use super::staging::{Found, Manifest, Staging};
use crate::Fleet;
use crate::catalog::{Topology, connect_to_host};
use crate::postgres::{Failure, unavailable};
use crate::write::BatchWriter;

/// Edges of the input that are staged together: what a stopped import has to read again.
const STAGED_TOGETHER: u64 = 50_000;

/// Shards of one host that an import is applied to at once. Writes of others need connections, too.
const SHARDS_AT_ONCE: usize = 2;

/// An import that takes edges. Dropped before [`Import::finish`], it can be resumed.
///
/// Its methods wait for the hosts and must not be called on a thread of an async runtime.
pub struct Import {
    fleet: Arc<Fleet>,
    topology: Arc<Topology>,
    /// One for each host, in the order of the topology.
    staged: Vec<Staging>,
    manifest: Manifest,
    /// How many edges of the input were looked at.
    line: u64,
}

impl Fleet {
    /// Starts an import, or resumes a stopped one with the same options. Another one that was stopped is completed first if its
    /// whole input was staged, and dropped otherwise.
    pub fn import(self: &Arc<Self>, options: &ImportOptions) -> Result<Import> {
        let fleet = Arc::clone(self);
        self.handle().block_on(Import::start(fleet, Manifest::of(options)))
    }
}

impl Import {
    async fn start(fleet: Arc<Fleet>, manifest: Manifest) -> Result<Self> {
        let hosts = fleet.shared.topology().hosts.clone();
        let settings = &fleet.shared.settings;
        let mut staged = Vec::new();
        for host in &hosts {
            let client = connect_to_host(&host.name, fleet.shared.catalog(), settings).await?;
            staged.push(Staging::open(&host.name, client).await?);
        }
        // From here on no shard is moved: edges are staged where they will be applied.
        fleet.shared.reload_topology().await.map_err(Failure::into_error)?;
        let topology = fleet.shared.topology();
        if topology.hosts.len() != hosts.len() {
            return Err(unavailable("the fleet", "a host was added"));
        }
        let mut import = Self { fleet, topology, staged, manifest, line: 0 };
        let found = try_join_all(import.staged.iter().map(Staging::found)).await?;
        let is_everywhere = |manifest: &Manifest| {
            found.iter().all(|found| found.as_ref().is_some_and(|found| found.manifest == *manifest))
        };
        if is_everywhere(&import.manifest) {
            for (staged, found) in import.staged.iter_mut().zip(found.iter().flatten()) {
                staged.resume(found);
            }
            import.line = import.taken();
            return Ok(import);
        }
        if let Some(Found { manifest: other, .. }) = found.iter().flatten().next()
            && is_everywhere(other)
            && found.iter().flatten().all(|found| found.is_complete)
        {
            tracing::info!("an import that was stopped is completed first");
            import.apply(&other.options()?, &|_| {}).await?;
        }
        import.clear().await?;
        for (host, staged) in import.staged.iter_mut().enumerate() {
            let shards: Vec<_> = import.topology.shards_on(host).collect();
            staged.begin(&import.manifest, &shards, import.topology.id_kind).await?;
        }
        Ok(import)
    }

    /// The number of edges of the input that an earlier run made durable: skip them.
    pub fn taken(&self) -> u64 {
        self.staged.iter().map(|staged| staged.taken).min().unwrap_or(0)
    }

    /// Adds an edge; without `since` it gets the time at which it is applied. Self-follows are counted and skipped.
    pub fn push(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<()> {
        self.topology.id_kind.require(edge.follower)?;
        self.topology.id_kind.require(edge.followee)?;
        self.line += 1;
        let shard = self.topology.shard_of(edge.follower);
        self.staged[self.topology.host_of(shard)].add(self.line, shard, edge, since);
        if self.line.is_multiple_of(STAGED_TOGETHER) { self.flush() } else { Ok(()) }
    }

    /// Makes all that was pushed durable.
    fn flush(&mut self) -> Result<()> {
        let (runtime, line) = (self.fleet.handle(), self.line);
        let flushed = try_join_all(self.staged.iter_mut().map(|staged| staged.flush(line)));
        runtime.block_on(flushed).map(drop)
    }

    /// Makes the import durable, then visible.
    pub fn finish(mut self, progress: &dyn Fn(Progress)) -> Result<ImportReport> {
        self.flush()?;
        let runtime = self.fleet.handle();
        runtime.block_on(async {
            try_join_all(self.staged.iter().map(Staging::complete)).await?;
            self.apply(&self.manifest.options()?, progress).await?;
            let mut report = ImportReport::default();
            for staged in &self.staged {
                staged.report(&mut report).await?;
            }
            self.clear().await?;
            Ok(report)
        })
    }

    /// Cancels the import and removes its staged edges. Edges that an earlier run has applied stay.
    pub fn abandon(self) -> Result<()> {
        self.fleet.handle().block_on(self.clear())
    }

    async fn clear(&self) -> Result<()> {
        try_join_all(self.staged.iter().map(Staging::clear)).await.map(drop)
    }

    /// Applies what is staged and not applied yet.
    async fn apply(&self, options: &ImportOptions, progress: &dyn Fn(Progress)) -> Result<()> {
        let total: u64 = try_join_all(self.staged.iter().map(Staging::count)).await?.into_iter().sum();
        let done = Cell::new(0);
        let report = |count| {
            done.set(done.get() + count);
            progress(Progress { stage: "applying", done: done.get(), total: Some(total) });
        };
        let shards = stream::iter(self.topology.shards().map(Ok));
        let at_once = SHARDS_AT_ONCE * self.topology.hosts.len();
        shards
            .try_for_each_concurrent(at_once, |shard| {
                let import = ShardImport {
                    writer: BatchWriter::new(Arc::clone(&self.fleet.shared)),
                    shard,
                    kind: options.kind,
                    following_limit: options.following_limit,
                };
                let report = &report;
                async move { import.apply(report).await }
            })
            .await
    }
}
