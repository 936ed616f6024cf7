//! What a layer of checks is, and how layers are stacked.

use std::future::Future;
use std::sync::Arc;

use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Frontier, Result, Sequence, Shard};

use super::filters::FilterLayer;
use super::shard::ShardLayer;
use crate::Fleet;
use crate::cache::CacheLayer;
use crate::catalog::Topology;
use crate::fleet::{Shared, run_on};
use tokio::runtime::Handle;

/// All layers, the fastest first.
pub(crate) type Layers = FilterLayer<OnRuntime<CacheLayer<ShardLayer>>>;

impl Layers {
    /// Stacks the layers.
    pub(crate) fn stack(shared: &Arc<Shared>, runtime: &Handle) -> Self {
        let shard = ShardLayer::new(Arc::clone(shared));
        let cache = CacheLayer { shared: Arc::clone(shared), next: shard };
        let on_runtime = OnRuntime { runtime: runtime.clone(), next: Arc::new(cache) };
        Self { shared: Arc::clone(shared), next: on_runtime }
    }
}

/// Takes checks from the threads of callers to those of the store.
pub(crate) struct OnRuntime<N> {
    runtime: Handle,
    next: Arc<N>,
}

impl<N: CheckLayer> CheckLayer for OnRuntime<N> {
    async fn contains(&self, checks: Checks) -> Result<Vec<bool>> {
        let next = Arc::clone(&self.next);
        run_on(&self.runtime, async move { next.contains(checks).await }).await
    }
}

/// A layer of checks, with the ones behind it.
pub(crate) trait CheckLayer: Send + Sync + 'static {
    /// Whether each edge exists.
    fn contains(&self, checks: Checks) -> impl Future<Output = Result<Vec<bool>>> + Send;
}

/// Checks that are made together.
#[derive(Clone)]
pub(crate) struct Checks {
    /// The deployment as it was known when they began.
    pub(crate) topology: Arc<Topology>,
    pub(crate) kind: EdgeKind,
    /// What the caller has seen.
    pub(crate) at_least: Frontier,
    pub(crate) asked: Vec<Asked>,
}

/// An edge that is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) edge: Edge,
    /// The shard of its follower.
    pub(crate) shard: Shard,
    /// What an answer must show, unless it comes from the shard itself. None if nobody knows: the shard has to be asked.
    pub(crate) needed: Option<Sequence>,
}

impl Checks {
    /// Leaves what is not answered yet to the next layer.
    pub(crate) async fn pass_on(
        mut self,
        answers: Vec<Option<bool>>,
        next: &impl CheckLayer,
    ) -> Result<Vec<bool>> {
        let mut left = answers.iter().map(Option::is_none);
        self.asked.retain(|_| left.next().unwrap_or(true));
        let asked = self.asked.len();
        let found = if asked == 0 { Vec::new() } else { next.contains(self).await? };
        assert_eq!(found.len(), asked, "a layer answers every check");
        let mut found = found.into_iter();
        Ok(answers.into_iter().map(|answer| answer.or_else(|| found.next()).unwrap_or_default()).collect())
    }
}

impl Fleet {
    /// What a layer is told of a check.
    pub(super) fn asked(&self, topology: &Topology, edge: Edge, at_least: &Frontier) -> Asked {
        let shard = topology.shard_of(edge.follower);
        let recent = self.shared.staleness.recent(topology.epoch, shard);
        // While the shard does not answer, a caller with a token is content with what it has seen; not if it answers that there is
        // another epoch.
        let seen = at_least
            .get(shard)
            .filter(|_| recent.is_some() || !self.shared.staleness.is_moved(topology.epoch));
        // What was written through this process is visible at once, as it is on the shard.
        let own = self.shared.acknowledged.get(topology.epoch, shard);
        let needed = recent.max(seen).map(|needed| needed.max(own));
        Asked { edge, shard, needed }
    }
}
