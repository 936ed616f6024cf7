//! Exports: all edges in the order of their keys, merged from pages of every shard.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Frontier, Result, Shard, Timestamp};
use tokio_postgres::Row;

use crate::Fleet;
use crate::postgres::{Failure, IdValue, Query, id_min};
use crate::read::{GUARD_COLUMNS, Guard, Reader};

/// Edges of all pages together, about: each shard has one in memory.
const EDGES_IN_MEMORY: usize = 131_072;

/// The fewest edges of a page, however many shards there are.
const PAGE_MIN: usize = 256;

/// First pages that are read at once.
const PAGES_AT_ONCE: usize = 8;

/// An edge and since when it exists.
type DatedEdge = (Edge, Timestamp);

/// All edges of a kind by (follower, followee).
///
/// Every edge that exists from the first call to the last is in it exactly once, with the time that it had when its page was
/// read. An edge that is made or removed meanwhile may be in it or not. It is not a snapshot: one that is held for hours would
/// keep every host from removing old rows. Each follower's edges come from consecutive pages of one shard.
///
/// It waits for the hosts and must not be used on a thread of an async runtime.
pub struct Edges {
    pages: Pages,
    shards: Vec<ShardEdges>,
    /// The next edge of every shard that has one, with the shard's index.
    next: BinaryHeap<Reverse<(Edge, usize)>>,
    has_failed: bool,
}

/// What is left of a shard.
struct ShardEdges {
    shard: Shard,
    page: VecDeque<DatedEdge>,
    /// The last edge of the page, unless nothing follows on it.
    more_after: Option<Edge>,
}

/// Reads pages.
#[derive(Clone)]
struct Pages {
    fleet: Arc<Fleet>,
    kind: EdgeKind,
    limit: usize,
}

impl Fleet {
    /// All edges of a kind.
    pub fn edges(self: &Arc<Self>, kind: EdgeKind) -> Result<Edges> {
        let topology = self.shared.topology();
        let limit = (EDGES_IN_MEMORY / topology.shards().len()).max(PAGE_MIN);
        let pages = Pages { fleet: Arc::clone(self), kind, limit };
        let start = Edge { follower: id_min(topology.id_kind), followee: id_min(topology.id_kind) };
        let first = stream::iter(topology.shards()).map(|shard| pages.read(shard, start));
        let shards: Vec<ShardEdges> = self.handle().block_on(first.buffered(PAGES_AT_ONCE).try_collect())?;
        let first = |(index, shard): (usize, &ShardEdges)| Some(Reverse((shard.page.front()?.0, index)));
        let next = shards.iter().enumerate().filter_map(first).collect();
        Ok(Edges { pages, shards, next, has_failed: false })
    }
}

impl Pages {
    async fn read(&self, shard: Shard, after: Edge) -> Result<ShardEdges> {
        let (kind, limit) = (self.kind, self.limit);
        let read = move |reader: Reader| async move { reader.edges_page(kind, shard, after, limit).await };
        let page = self.fleet.read(Frontier::EMPTY, read).await?;
        let more_after = page.back().filter(|_| page.len() == limit).map(|&(edge, _)| edge);
        Ok(ShardEdges { shard, page, more_after })
    }
}

impl Reader {
    async fn edges_page(
        &self,
        kind: EdgeKind,
        shard: Shard,
        after: Edge,
        limit: usize,
    ) -> std::result::Result<VecDeque<DatedEdge>, Failure> {
        let guard = Guard::of_truth(&self.topology, [shard], &self.at_least);
        let (number, kind) = (shard.0 as i16, i16::from(kind.number()));
        let (follower, followee) = (IdValue(after.follower), IdValue(after.followee));
        let host = self.topology.host_of(shard);
        let limit = limit as i64;
        let rows =
            self.ask(host, Query::EdgesPage, &guard, &[&number, &kind, &follower, &followee, &limit]).await?;
        let edge = |row: &Row| {
            let IdValue(follower) = row.get::<_, Option<IdValue>>(GUARD_COLUMNS)?;
            let IdValue(followee) = row.get(GUARD_COLUMNS + 1);
            let since: i64 = row.get(GUARD_COLUMNS + 2);
            Some((Edge { follower, followee }, Timestamp::from_millis(since as u64)))
        };
        let mut edges: Vec<DatedEdge> = rows.iter().filter_map(edge).collect();
        // They come in this order; the join around the page does not promise it.
        edges.sort_unstable();
        Ok(edges.into())
    }
}

impl Edges {
    /// The next edge of a shard, which has one.
    fn take(&mut self, index: usize) -> Result<Option<DatedEdge>> {
        let shard = &mut self.shards[index];
        let taken = shard.page.pop_front();
        if let Some(after) = shard.more_after.filter(|_| shard.page.is_empty()) {
            *shard = self.pages.fleet.handle().block_on(self.pages.read(shard.shard, after))?;
        }
        self.next.extend(shard.page.front().map(|&(edge, _)| Reverse((edge, index))));
        Ok(taken)
    }
}

impl Iterator for Edges {
    type Item = Result<DatedEdge>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let Reverse((_, index)) = self.next.pop()?;
        let taken = self.take(index);
        self.has_failed = taken.is_err();
        taken.transpose()
    }
}
