//! Makes filters: notes the position, reads the edges of the shard, and follows its log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::{Position, Sequence, Shard};
use tokio::time::{Instant, sleep};
use tokio_postgres::types::ToSql;

use super::filter::{Filter, Followed};
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::log::LogReader;
use crate::postgres::{Failure, IdValue, Query, id_min};
use crate::project::edge_of_row;

/// Edges that are read at once.
const PAGE: i64 = 5_000;

/// Changes that are read at once.
const CHANGES: usize = 5_000;

/// How often the filters are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A filter that is behind for so long is made again: nobody brings what follows on it.
const BEHIND_MAX: Duration = Duration::from_secs(10);

/// A shard whose filter would be too large is measured again after so long.
const TOO_LARGE_PAUSE: Duration = Duration::from_secs(10 * 60);

/// Makes the filters that are missing or worn, one after another, until the store is dropped.
pub(super) async fn keep_filters(shared: Arc<Shared>, bytes_max: u64) {
    let (mut behind, mut too_large) = (Behind::default(), BTreeMap::new());
    loop {
        let topology = shared.topology();
        let positions = shared.filters.positions(topology.epoch);
        for shard in topology.shards() {
            let filter = shared.filters.get(topology.epoch, shard);
            let newest = shared.staleness.recent(topology.epoch, shard);
            let is_stuck = behind.look(shard, positions.get(shard), newest);
            let was_too_large =
                too_large.get(&shard).is_some_and(|since: &Instant| since.elapsed() < TOO_LARGE_PAUSE);
            if was_too_large || filter.is_some_and(|filter| !filter.is_worn()) && !is_stuck {
                continue;
            }
            match build(&shared, &topology, shard, bytes_max).await {
                Ok(Some(filter)) => shared.filters.put(topology.epoch, shard, filter),
                Ok(None) => _ = too_large.insert(shard, Instant::now()),
                Err(failure) => {
                    tracing::debug!(shard = shard.0, ?failure, "a filter could not be made");
                    break;
                }
            }
        }
        sleep(LOOK_EVERY).await;
    }
}

/// Since when filters are behind.
#[derive(Default)]
struct Behind(BTreeMap<Shard, Instant>);

impl Behind {
    /// Whether the filter of a shard has been behind for too long.
    fn look(&mut self, shard: Shard, position: Option<Sequence>, newest: Option<Sequence>) -> bool {
        if position.zip(newest).is_none_or(|(position, newest)| position >= newest) {
            self.0.remove(&shard);
            return false;
        }
        let since = *self.0.entry(shard).or_insert_with(Instant::now);
        let is_stuck = since.elapsed() > BEHIND_MAX;
        if is_stuck {
            self.0.remove(&shard);
        }
        is_stuck
    }
}

/// A filter of a shard's edges, unless, with the other filters, it takes more than so many bytes.
async fn build(
    shared: &Shared,
    topology: &Topology,
    shard: Shard,
    bytes_max: u64,
) -> Result<Option<Filter>, Failure> {
    let (number, host) = (shard.0 as i16, &topology.hosts[topology.host_of(shard)]);
    let statements = &shared.statements;
    // Position and edges by one connection: with two, the position might come from a new primary and the edges from an old one,
    // and edges below the position would be missing. An old primary alone shows an earlier state; the log supplies the rest.
    let connection = host.writer().await?;
    let span = LogReader { shared, topology }.span_by(&connection, shard).await?;
    let size = host.query_by(&connection, statements, Query::SizeOfShard, &[&number]).await?;
    let edges = size.first().map_or(0, |row| row.get::<_, i64>(0)) as u64;
    if Filter::bytes_for(edges) + shared.filters.bytes_without(shard) > bytes_max {
        return Ok(None);
    }
    let filter = Filter::new(edges, span.newest());
    let mut after = (0_i16, IdValue(id_min(topology.id_kind)), IdValue(id_min(topology.id_kind)));
    loop {
        let parameters: [&(dyn ToSql + Sync); 5] = [&number, &after.0, &after.1, &after.2, &PAGE];
        let rows = host.query_by(&connection, statements, Query::EdgesOfShard, &parameters).await?;
        for row in &rows {
            let edge = edge_of_row(row)?;
            filter.insert(edge.kind, edge.edge);
        }
        let Some(last) = rows.last().filter(|_| rows.len() as i64 == PAGE) else { break };
        after = (last.get(0), last.get(1), last.get(2));
    }
    drop(connection);
    catch_up(shared, topology, shard, &filter).await?;
    Ok(Some(filter))
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
