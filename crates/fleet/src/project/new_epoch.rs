//! A new epoch: what an operator begins after a restore. The follower side is dropped and rebuilt from the truth, before any
//! shard is open again.
//!
//! Run again after an interruption, it starts over: shards stay closed until its last step.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::try_join_all;
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Epoch, Error, Result, Sequence, Shard, Timestamp};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::apply::ProjectedRows;
use crate::Fleet;
use crate::catalog::{Topology, epoch_after};
use crate::fleet::Shared;
use crate::moves::erase;
use crate::postgres::{Failure, Host, IdValue, Query, id_min};
use crate::write::{LOCK_CLASS, NetEdge};

/// Edges that are copied at once.
const PAGE: i64 = 5_000;

/// Waits for the writers of every shard, and keeps later ones out.
const CLOSE: &str = "
    SELECT count(pg_advisory_xact_lock($1::integer, shard))
    FROM (SELECT shard FROM shards WHERE state = 'open' ORDER BY shard OFFSET 0) AS in_order;
";

/// The marks first: their locks wait for projections that are in the middle of something, and later ones find another epoch.
const DROP_FOLLOWERS: &str = "
    UPDATE projected SET epoch = {epoch}, sequence = 0;
    UPDATE shards SET epoch = {epoch};
    DELETE FROM incoming;
    DELETE FROM incoming_marks;
    DELETE FROM outgoing;
    UPDATE relayed SET epoch = {epoch}, sequence = 0;
    TRUNCATE followers, follower_counts";

impl Fleet {
    /// Begins a new epoch: tokens of the old one are refused, and the follower side is rebuilt from the edges as they are now. Moves of
    /// shards that are not over are given up.
    pub async fn begin_epoch(&self) -> Result<Epoch> {
        let shared = Arc::clone(&self.shared);
        self.run(async move { begin(&shared).await.map_err(Failure::into_error) }).await
    }

    /// As [`Fleet::begin_epoch`]. It waits for the hosts and must not be called on a thread of an async runtime.
    pub fn begin_epoch_and_wait(&self) -> Result<Epoch> {
        self.handle().block_on(self.begin_epoch())
    }
}

async fn begin(shared: &Shared) -> std::result::Result<Epoch, Failure> {
    let topology = shared.topology();
    let mut latest = topology.epoch;
    for host in &topology.hosts {
        // The catalog may be a backup from before the latest epoch.
        let rows = host.ask("SELECT max(epoch) FROM shards").await?;
        let known = rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).unwrap_or(0);
        latest = Epoch(latest.0.max(known as u64));
    }
    let epoch = epoch_after(latest);
    // Before anything is closed; and again when nothing is moved any more.
    holders(&topology).await?;
    try_join_all(topology.hosts.iter().map(|host| close(host, epoch))).await?;
    settle_map(shared, &topology).await?;
    shared.reload_topology().await?;
    let topology = shared.topology();
    for source in topology.shards() {
        rebuild(shared, &topology, source, epoch).await?;
    }
    shared.catalog().publish_epoch(epoch).await.map_err(Failure::Final)?;
    let open = |host: &Arc<Host>| {
        let host = Arc::clone(host);
        async move { run(&host, &["UPDATE shards SET state = 'open'".to_owned()]).await }
    };
    try_join_all(topology.hosts.iter().map(open)).await?;
    shared.reload_topology().await?;
    shared.announce_progress();
    Ok(epoch)
}

/// The term and the host of each shard.
type Holders = BTreeMap<Shard, (i64, usize)>;

/// Which host has each shard. One of them may be from before a move: of several that have a shard, the one with the highest term is right.
/// Refused if the catalog knows a later one: what is left of the shard elsewhere is old, or being removed.
async fn holders(topology: &Topology) -> std::result::Result<Holders, Failure> {
    let mut latest: Holders = BTreeMap::new();
    for (index, host) in topology.hosts.iter().enumerate() {
        for row in host.ask_durable("SELECT shard, term FROM shards").await? {
            let (shard, found) = (Shard(row.get::<_, i16>(0) as u16), (row.get::<_, i64>(1), index));
            latest.entry(shard).and_modify(|known| *known = found.max(*known)).or_insert(found);
        }
    }
    let is_missing = |shard: &Shard| {
        let known = topology.assignment(*shard).map_or(0, |assignment| assignment.term);
        latest.get(shard).is_none_or(|&(term, _)| term < known)
    };
    if let Some(shard) = topology.shards().find(is_missing) {
        let (host, number) = (&topology.hosts[topology.host_of(shard)].name, shard.0);
        let detail = format!("host {host} lacks shard {number}: restore it from a backup that has it");
        return Err(Failure::Final(Error::Corrupt { detail }));
    }
    Ok(latest)
}

/// Makes the map agree with the hosts, and removes what others have of their shards.
async fn settle_map(shared: &Shared, topology: &Topology) -> std::result::Result<(), Failure> {
    for (shard, (term, index)) in holders(topology).await? {
        let (number, name) = (shard.0, &topology.hosts[index].name);
        shared.catalog().assign(shard, name, term).await.map_err(Failure::Final)?;
        for (_, other) in topology.hosts.iter().enumerate().filter(|(other, _)| *other != index) {
            erase(other, shard, "true").await?;
            other.change(&format!("DELETE FROM shards WHERE shard = {number}")).await?;
        }
    }
    shared.catalog().forget_moves().await.map_err(Failure::Final)
}

async fn close(host: &Host, epoch: Epoch) -> std::result::Result<(), Failure> {
    let lock = CLOSE.replace("$1", &LOCK_CLASS.to_string());
    let close = "UPDATE shards SET state = 'closed'".to_owned();
    let drop_followers = DROP_FOLLOWERS.replace("{epoch}", &(epoch.0 as i64).to_string());
    run(host, &[lock, close, drop_followers]).await
}

/// Runs scripts as one transaction.
async fn run(host: &Host, scripts: &[String]) -> std::result::Result<(), Failure> {
    let connection = host.writer().await?;
    // A rebuild of a large host takes as long as it takes.
    let script = format!("BEGIN; SET LOCAL statement_timeout = 0; {}; COMMIT", scripts.join(";"));
    // From the first statement to the last in one message: nothing is left open where it succeeds.
    match connection.client().batch_execute(&script).await {
        Ok(()) => Ok(()),
        Err(error) => {
            connection.discard();
            Err(Failure::of_statement(&host.name, &error))
        }
    }
}

/// Copies the edges of one source to the follower side of every host, then sets the source's marks. The source is closed, so
/// that its edges are those of its newest change.
async fn rebuild(
    shared: &Shared,
    topology: &Topology,
    source: Shard,
    epoch: Epoch,
) -> std::result::Result<(), Failure> {
    let number = source.0 as i16;
    let from = &topology.hosts[topology.host_of(source)];
    let mut after = (0_i16, IdValue(id_min(topology.id_kind)), IdValue(id_min(topology.id_kind)));
    loop {
        let parameters: [&(dyn ToSql + Sync); 5] = [&number, &after.0, &after.1, &after.2, &PAGE];
        let rows = from.query_durable(&shared.statements, Query::EdgesOfShard, &parameters).await?;
        let edges: Vec<NetEdge> = rows.iter().map(edge_of_row).collect::<std::result::Result<_, _>>()?;
        for (host, edges) in by_target(topology, &edges) {
            let rows = ProjectedRows::of_edges(topology, edges);
            topology.hosts[host].execute(&shared.statements, Query::Apply, &rows.parameters()).await?;
        }
        let Some(last) = rows.last().filter(|_| rows.len() as i64 == PAGE) else { break };
        after = (last.get(0), last.get(1), last.get(2));
    }
    let newest = from.query(&shared.statements, Query::Span, &[&[number].as_slice()]).await?;
    let newest = newest.first().and_then(|row| row.get::<_, Option<i64>>(5)).unwrap_or(0);
    let (sources, sequences) = ([number], [newest]);
    let of_mark: [&(dyn ToSql + Sync); 2] = [&sources.as_slice(), &sequences.as_slice()];
    tracing::info!(source = number, newest, %epoch, "the follower side of a source was rebuilt");
    let advance = |host: &Arc<Host>| {
        let host = Arc::clone(host);
        async move { host.execute(&shared.statements, Query::AdvanceMarks, &of_mark).await }
    };
    try_join_all(topology.hosts.iter().map(advance)).await.map(drop)
}

/// Edges by the host of their followees.
fn by_target(topology: &Topology, edges: &[NetEdge]) -> BTreeMap<usize, Vec<NetEdge>> {
    let mut by_host: BTreeMap<usize, Vec<NetEdge>> = BTreeMap::new();
    for &edge in edges {
        let host = topology.host_of(topology.shard_of(edge.edge.followee));
        by_host.entry(host).or_default().push(edge);
    }
    by_host
}

/// The kind of edges that a row is about, which is its first column.
pub(crate) fn kind_of(row: &Row) -> std::result::Result<EdgeKind, Failure> {
    let number: i16 = row.get(0);
    let kind = u8::try_from(number).ok().and_then(EdgeKind::from_number);
    let unknown = || Error::Corrupt { detail: format!("a row has the unknown kind {number}") };
    kind.ok_or_else(unknown).map_err(Failure::Final)
}

/// A row of `Query::EdgesOfShard`.
pub(crate) fn edge_of_row(row: &Row) -> std::result::Result<NetEdge, Failure> {
    let kind = kind_of(row)?;
    let (IdValue(follower), IdValue(followee)) = (row.get(1), row.get(2));
    Ok(NetEdge {
        kind,
        edge: Edge { follower, followee },
        since: Some(Timestamp::from_millis(row.get::<_, i64>(3) as u64)),
        sequence: Sequence(row.get::<_, i64>(4) as u64),
    })
}
