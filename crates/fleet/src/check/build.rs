//! Makes filters: notes the position, reads the edges of the shard, and follows its log. And looks after them: one that is worn, stuck or
//! found to deny an edge that exists is made again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::{Id, IdKind, Position, Sequence, Shard};
use tokio::time::{Instant, sleep};
use tokio_postgres::types::ToSql;

use super::feed::FilterSettings;
use super::filter::{Filter, Followed};
use super::saved;
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::log::LogReader;
use crate::postgres::{Failure, Host, IdValue, Pooled, Query, id_min};
use crate::project::edge_of_row;
use crate::write::NetEdge;

/// Edges or users that are read at once.
const PAGE: i64 = 5_000;

/// Changes that are read at once.
const CHANGES: usize = 5_000;

/// How often the filters are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A filter that stands still behind its shard for so long is made again: nobody brings what follows on it.
const STUCK_MAX: Duration = Duration::from_secs(10);

/// A shard whose filter would be too large, or could not be made, is tried again after so long.
const TOO_LARGE_PAUSE: Duration = Duration::from_secs(10 * 60);
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// How often a filter is compared with some edges of its shard, and with how many.
const COMPARE_EVERY: Duration = Duration::from_secs(5);
const COMPARED: i64 = 200;

/// How often the filters are saved.
const SAVE_EVERY: Duration = Duration::from_secs(10 * 60);

/// Makes the filters that are missing or worn, one after another, until the store is dropped.
pub(super) async fn keep_filters(shared: Arc<Shared>, settings: FilterSettings) {
    let mut keeper =
        Keeper { shared, settings, stuck: BTreeMap::new(), not_before: BTreeMap::new(), turn: 0 };
    let (mut compared, mut saved) = (Instant::now(), Instant::now());
    loop {
        keeper.make_missing().await;
        keeper.shared.filters.note_made();
        if compared.elapsed() >= COMPARE_EVERY {
            keeper.compare_next().await;
            compared = Instant::now();
        }
        if saved.elapsed() >= SAVE_EVERY {
            keeper.save();
            saved = Instant::now();
        }
        sleep(LOOK_EVERY).await;
    }
}

struct Keeper {
    shared: Arc<Shared>,
    settings: FilterSettings,
    /// Where filters that are behind stand, and since when.
    stuck: BTreeMap<Shard, (Sequence, Instant)>,
    /// When a filter that could not be made is tried again.
    not_before: BTreeMap<Shard, Instant>,
    /// Which filter is compared next.
    turn: usize,
}

impl Keeper {
    async fn make_missing(&mut self) {
        let topology = self.shared.topology();
        // Drops those of another epoch.
        self.shared.filters.positions(topology.epoch);
        for shard in topology.shards() {
            let filter = self.shared.filters.get(topology.epoch, shard);
            let is_fine =
                filter.is_some_and(|filter| !filter.is_worn() && !self.is_stuck(&topology, shard, &filter));
            let is_too_early = self.not_before.get(&shard).is_some_and(|moment| Instant::now() < *moment);
            if is_fine || is_too_early {
                continue;
            }
            let pause = match self.make(&topology, shard).await {
                Ok(Some(filter)) => {
                    self.shared.filters.put(topology.epoch, shard, filter);
                    self.not_before.remove(&shard);
                    continue;
                }
                Ok(None) => TOO_LARGE_PAUSE,
                Err(failure) => {
                    tracing::debug!(shard = shard.0, ?failure, "a filter could not be made");
                    FAILURE_PAUSE
                }
            };
            self.not_before.insert(shard, Instant::now() + pause);
        }
    }

    /// Whether a filter stands still although its shard has gone on.
    fn is_stuck(&mut self, topology: &Topology, shard: Shard, filter: &Filter) -> bool {
        let position = filter.position();
        if position >= self.shared.staleness.newest_of(topology.epoch, shard) {
            self.stuck.remove(&shard);
            return false;
        }
        let (stood, since) = *self.stuck.entry(shard).or_insert_with(|| (position, Instant::now()));
        if stood != position {
            self.stuck.insert(shard, (position, Instant::now()));
            return false;
        }
        since.elapsed() > STUCK_MAX && self.stuck.remove(&shard).is_some()
    }

    /// A filter of a shard as it was saved, or a new one. None if it would take too much memory.
    async fn make(&self, topology: &Topology, shard: Shard) -> Result<Option<Filter>, Failure> {
        let is_missing = self.shared.filters.get(topology.epoch, shard).is_none();
        if let Some(folder) = self.settings.folder.as_ref().filter(|_| is_missing)
            && let Some(filter) = saved::load(folder, topology, shard)
            && filter.bytes() + self.shared.filters.bytes_without(shard) <= self.settings.bytes_max
            && is_of_log(&self.shared, topology, shard, &filter).await?
            && catch_up(&self.shared, topology, shard, &filter).await.is_ok()
            && !filter.is_worn()
        {
            tracing::info!(shard = shard.0, "a filter was read from its file");
            return Ok(Some(filter));
        }
        let filter = build(&self.shared, topology, shard, self.settings.bytes_max).await?;
        if let (Some(folder), Some(filter)) = (&self.settings.folder, &filter) {
            saved::save(folder, topology, shard, filter);
        }
        Ok(filter)
    }

    /// Compares a filter with some edges of its shard. One that denies an edge is out at once.
    async fn compare_next(&mut self) {
        let topology = self.shared.topology();
        let shards: Vec<Shard> = topology.shards().collect();
        self.turn += 1;
        let shard = shards[self.turn % shards.len()];
        let Some(filter) = self.shared.filters.get(topology.epoch, shard) else { return };
        match denied(&self.shared, &topology, shard, &filter).await {
            Ok(0) => {}
            Ok(edges) => {
                tracing::error!(
                    shard = shard.0,
                    edges,
                    "a filter denies edges that exist, and is made again"
                );
                self.shared.filters.note_damage();
                self.shared.filters.remove(shard);
                if let Some(folder) = &self.settings.folder {
                    saved::remove(folder, &topology, shard);
                }
            }
            Err(failure) => tracing::debug!(shard = shard.0, ?failure, "a filter could not be compared"),
        }
    }

    fn save(&self) {
        if let Some(folder) = &self.settings.folder {
            saved::save_all(&self.shared, folder);
        }
    }
}

/// How many of some edges of a shard, from a random one on, its filter denies although it should know them.
async fn denied(
    shared: &Shared,
    topology: &Topology,
    shard: Shard,
    filter: &Filter,
) -> Result<usize, Failure> {
    // What was there before the edges are read is theirs to know.
    let position = filter.position();
    let host = &topology.hosts[topology.host_of(shard)];
    let connection = host.reader().await?;
    let reader = EdgeReader { shared, host, connection: &connection, shard, page: COMPARED };
    let id_min = id_min(topology.id_kind);
    let after = EdgeKey { kind: 1, follower: random_id(topology.id_kind), followee: id_min };
    let mut edges = reader.edges_after(after).await?;
    if edges.is_empty() {
        edges = reader.edges_after(EdgeKey { kind: 0, follower: id_min, followee: id_min }).await?;
    }
    let is_denied = |edge: &&NetEdge| edge.sequence <= position && !filter.may_have(edge.kind, edge.edge);
    Ok(edges.iter().filter(is_denied).count())
}

/// An id to begin at. Ids may be small: of every size, some are tried.
fn random_id(kind: IdKind) -> Id {
    let random = getrandom::u64().unwrap_or_default();
    match kind {
        IdKind::Integer => Id::Integer(random >> (1 + random % 63)),
        IdKind::Uuid => Id::Uuid(u128::from(random) << 64),
    }
}

/// A filter of a shard's edges, unless, with the other filters, it takes more than so many bytes.
async fn build(
    shared: &Shared,
    topology: &Topology,
    shard: Shard,
    bytes_max: u64,
) -> Result<Option<Filter>, Failure> {
    let host = &topology.hosts[topology.host_of(shard)];
    // Position and edges by one connection: with two, the position might come from a new primary and the edges from an old one,
    // and edges below the position would be missing. An old primary alone shows an earlier state; the log supplies the rest.
    let connection = host.writer().await?;
    let span = LogReader { shared, topology }.span_by(&connection, shard).await?;
    let reader = EdgeReader { shared, host, connection: &connection, shard, page: PAGE };
    let edges = reader.count(topology.id_kind).await?;
    if Filter::bytes_for(edges) + shared.filters.bytes_without(shard) > bytes_max {
        return Ok(None);
    }
    let filter = Filter::new(edges, span.newest());
    let id_min = id_min(topology.id_kind);
    let mut after = EdgeKey { kind: 0, follower: id_min, followee: id_min };
    loop {
        let edges = reader.edges_after(after).await?;
        edges.iter().for_each(|edge| filter.insert(edge.kind, edge.edge));
        let Some(last) = edges.last().filter(|_| edges.len() as i64 == PAGE) else { break };
        let (kind, edge) = (last.kind.number().into(), last.edge);
        after = EdgeKey { kind, follower: edge.follower, followee: edge.followee };
    }
    // Still here: the rows of a shard that was moved meanwhile are removed.
    LogReader { shared, topology }.span_by(&connection, shard).await?;
    drop(connection);
    catch_up(shared, topology, shard, &filter).await?;
    Ok(Some(filter))
}

/// Where reading edges goes on.
#[derive(Clone, Copy)]
struct EdgeKey {
    kind: i16,
    follower: Id,
    followee: Id,
}

/// Reads a shard by one connection.
struct EdgeReader<'a> {
    shared: &'a Shared,
    host: &'a Host,
    connection: &'a Pooled,
    shard: Shard,
    page: i64,
}

impl EdgeReader<'_> {
    async fn edges_after(&self, after: EdgeKey) -> Result<Vec<NetEdge>, Failure> {
        let (follower, followee) = (IdValue(after.follower), IdValue(after.followee));
        let number = self.shard.0 as i16;
        let parameters: [&(dyn ToSql + Sync); 5] = [&number, &after.kind, &follower, &followee, &self.page];
        let rows = self.query(Query::EdgesOfShard, &parameters).await?;
        rows.iter().map(edge_of_row).collect()
    }

    /// How many edges there are, by the counts of the users, page by page: no statement takes long.
    async fn count(&self, id_kind: IdKind) -> Result<u64, Failure> {
        let number = self.shard.0 as i16;
        let (mut after, mut edges) = ((0_i16, IdValue(id_min(id_kind))), 0);
        loop {
            let parameters: [&(dyn ToSql + Sync); 4] = [&number, &after.0, &after.1, &self.page];
            let rows = self.query(Query::UserCounts, &parameters).await?;
            edges += rows.iter().map(|row| row.get::<_, i64>(2) as u64).sum::<u64>();
            let Some(last) = rows.last().filter(|_| rows.len() as i64 == self.page) else { return Ok(edges) };
            after = (last.get(0), last.get(1));
        }
    }

    async fn query(
        &self,
        query: Query,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<tokio_postgres::Row>, Failure> {
        self.host.query_by(self.connection, &self.shared.statements, query, parameters).await
    }
}

/// Whether the log of its shard has a filter's position: one that is ahead knows a history that is lost.
async fn is_of_log(
    shared: &Shared,
    topology: &Topology,
    shard: Shard,
    filter: &Filter,
) -> Result<bool, Failure> {
    let connection = topology.hosts[topology.host_of(shard)].writer().await?;
    let span = LogReader { shared, topology }.span_by(&connection, shard).await?;
    Ok(filter.position() <= span.newest())
}

/// Follows the log to its end.
async fn catch_up(
    shared: &Shared,
    topology: &Topology,
    shard: Shard,
    filter: &Filter,
) -> Result<(), Failure> {
    loop {
        let after: Position = filter.position().on(shard);
        let changes = LogReader { shared, topology }.durable_changes(&[after], CHANGES).await?;
        match filter.follow(&changes) {
            Followed::Changes(_) if changes.len() < CHANGES => return Ok(()),
            Followed::Changes(_) => {}
            // The log was trimmed, or a change was lost.
            Followed::Gap(_) | Followed::Unknown => return Err(Failure::Moved),
        }
    }
}
