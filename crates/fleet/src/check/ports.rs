//! The port of checks: one layer after another.

use kinfolk_core::graph::{CheckStore, Edge, EdgeStore};
use kinfolk_core::{EdgeKind, Frontier, Result};

use super::filters::{Asked, Verdict};
use crate::Fleet;

impl Fleet {
    /// What the filters say of an edge.
    fn judge(&self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Verdict {
        let topology = self.shared.topology();
        let (epoch, shard) = (topology.epoch, topology.shard_of(edge.follower));
        let recent = self.shared.staleness.recent(epoch, shard);
        // What was written through this process is visible at once, as it is on the shard.
        let own = self.shared.acknowledged.get(epoch, shard);
        let at_least = at_least.get(shard).unwrap_or_default().max(own);
        self.shared.filters.judge(&Asked { epoch, shard, kind, edge, recent, at_least })
    }

    /// How often the filters have said what.
    pub fn filter_counts(&self) -> [(Verdict, u64); Verdict::ALL.len()] {
        self.shared.filters.counts()
    }
}

impl CheckStore for Fleet {
    async fn contains(&self, kind: EdgeKind, edges: &[Edge], at_least: &Frontier) -> Result<Vec<bool>> {
        let mut exists = vec![false; edges.len()];
        let may_exist = |&index: &usize| {
            let verdict = self.judge(kind, edges[index], at_least);
            self.shared.filters.count(verdict);
            verdict != Verdict::No
        };
        let left: Vec<usize> = (0..edges.len()).filter(may_exist).collect();
        if left.is_empty() {
            return Ok(exists);
        }
        let asked: Vec<Edge> = left.iter().map(|&index| edges[index]).collect();
        let since = self.since(kind, &asked, at_least).await?;
        left.into_iter().zip(since).for_each(|(index, since)| exists[index] = since.is_some());
        Ok(exists)
    }

    fn contains_now(&self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Option<bool> {
        let is_excluded = self.judge(kind, edge, at_least) == Verdict::No;
        if is_excluded {
            self.shared.filters.count(Verdict::No);
        }
        is_excluded.then_some(false)
    }
}
