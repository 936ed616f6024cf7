//! How fresh an answer is: what a host must have before it may answer, and waiting for it.
//!
//! The conditions travel with each statement and are checked in its own snapshot: see `sql/guard.sql`.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::{Epoch, Error, Frontier, Id, Result, Sequence, Shard};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::staleness::beyond_bound;
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::postgres::{Failure, Query};

/// How many columns of an answer belong to the guard.
pub(crate) const GUARD_COLUMNS: usize = 3;

/// The longest pause before a read that is too early looks again, if this process hears of no progress.
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// What a host must have before it may answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    epoch: i64,
    shards: Vec<i16>,
    terms: Vec<i64>,
    sequences: Vec<i64>,
    sources: Vec<i16>,
    marks: Vec<i64>,
    /// Whether its follower side is read, which must then be within the bound of staleness.
    reads_followers: bool,
}

impl Guard {
    /// The host has these shards, with their truth as far as the frontier says.
    pub(crate) fn of_truth(
        topology: &Topology,
        shards: impl IntoIterator<Item = Shard>,
        at_least: &Frontier,
    ) -> Self {
        let mut guard = Self { epoch: topology.epoch.0 as i64, ..Self::default() };
        let mut shards: Vec<Shard> = shards.into_iter().collect();
        shards.sort_unstable();
        shards.dedup();
        for shard in shards {
            guard.shards.push(shard.0 as i16);
            guard.terms.push(topology.assignment(shard).map_or(0, |assignment| assignment.term));
            guard.sequences.push(at_least.get(shard).unwrap_or_default().0 as i64);
        }
        guard
    }

    /// And its follower side shows everything that the frontier has seen.
    pub(crate) fn and_followers(mut self, at_least: &Frontier) -> Self {
        self.reads_followers = true;
        for position in at_least.iter().filter(|position| position.sequence > Sequence::START) {
            // A shard that no deployment can have is as far as the lowest: it is never visible.
            self.sources.push(i16::try_from(position.shard.0).unwrap_or(i16::MAX));
            self.marks.push(position.sequence.0 as i64);
        }
        self
    }

    /// As [`Guard::of_truth`] and [`Guard::and_followers`], where the rows read are only those of the follower side.
    pub(crate) fn of_followers(
        topology: &Topology,
        shards: impl IntoIterator<Item = Shard>,
        at_least: &Frontier,
    ) -> Self {
        Self::of_truth(topology, shards, Frontier::EMPTY).and_followers(at_least)
    }

    pub(crate) fn parameters(&self) -> [&(dyn ToSql + Sync); 6] {
        [&self.epoch, &self.shards, &self.terms, &self.sequences, &self.sources, &self.marks]
    }
}

/// Why a host did not answer.
enum Refusal {
    Moved,
    /// It has not got so far.
    Behind {
        shard: Shard,
        current: Sequence,
        /// Whether the truth is behind, or else the follower side.
        is_truth: bool,
    },
}

impl Refusal {
    fn of(row: &Row) -> Option<Self> {
        let reason: Option<i32> = row.get(0);
        let behind = || Self::Behind {
            shard: Shard(row.get::<_, i16>(1) as u16),
            current: Sequence(row.get::<_, i64>(2) as u64),
            is_truth: reason == Some(2),
        };
        reason.map(|reason| if reason == 1 { Self::Moved } else { behind() })
    }
}

/// A read, with the deployment as it was known when the read began.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) shared: Arc<Shared>,
    pub(crate) topology: Arc<Topology>,
    pub(crate) at_least: Frontier,
    /// When waiting ends.
    deadline: Instant,
    /// Whether the map was read again for it.
    has_reloaded: bool,
}

impl Reader {
    /// Runs a read, and again with the newest map where a host does not have a shard any more.
    pub(crate) async fn run<T, F: Future<Output = std::result::Result<T, Failure>>>(
        shared: Arc<Shared>,
        at_least: Frontier,
        read: impl Fn(Self) -> F,
    ) -> Result<T> {
        let epoch = shared.topology().epoch;
        Self::run_in(shared, epoch, at_least, read).await
    }

    /// As [`Reader::run`], where the frontier was seen in an epoch: in another one it means nothing.
    pub(crate) async fn run_in<T, F: Future<Output = std::result::Result<T, Failure>>>(
        shared: Arc<Shared>,
        epoch: Epoch,
        at_least: Frontier,
        read: impl Fn(Self) -> F,
    ) -> Result<T> {
        let deadline = Instant::now() + shared.settings.timeouts.visible;
        let attempt = |has_reloaded| {
            let topology = shared.topology();
            // What was seen in another epoch may be lost; its positions may be those of other changes now.
            if topology.epoch != epoch && !at_least.is_empty() {
                return Err(Error::TokenFromOtherEpoch);
            }
            let (shared, at_least) = (Arc::clone(&shared), at_least.clone());
            Ok(read(Self { shared, topology, at_least, deadline, has_reloaded }))
        };
        let (mut pause, mut has_failed, mut has_reloaded) = (Duration::from_millis(2), false, false);
        loop {
            match attempt(has_reloaded)?.await {
                Err(Failure::Moved) => {
                    shared.reload_topology().await.map_err(Failure::into_error)?;
                    has_reloaded = true;
                }
                // Reads change nothing: a connection that broke is worth another attempt.
                Err(Failure::Transient(Error::Unavailable { .. })) if !has_failed => {
                    has_failed = true;
                    continue;
                }
                other => return other.map_err(Failure::into_error),
            }
            // For a moment, a shard that is moved is on neither host, or on one that the catalog does not name yet.
            if Instant::now() + pause >= deadline {
                return attempt(has_reloaded)?.await.map_err(Failure::into_error);
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// The same read, which must show at least another frontier.
    pub(crate) fn showing(self, at_least: Frontier) -> Self {
        Self { at_least, ..self }
    }

    /// Asks a host until it may answer, for as long as reads wait.
    pub(crate) async fn ask(
        &self,
        host: usize,
        query: Query,
        guard: &Guard,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> std::result::Result<Vec<Row>, Failure> {
        let guard = self.with_acknowledged(guard);
        let all: Vec<&(dyn ToSql + Sync)> =
            guard.parameters().into_iter().chain(parameters.iter().copied()).collect();
        let host = &self.topology.hosts[host];
        let (mut progress, mut samples) = (self.shared.watch_progress(), self.shared.staleness.watch());
        let mut pause = Duration::from_millis(1);
        loop {
            progress.mark_unchanged();
            samples.mark_unchanged();
            // Before it is asked: what the host is known to show now, its answer shows, too.
            let is_recent =
                !guard.reads_followers || self.shared.staleness.is_recent(self.topology.epoch, &host.name);
            let rows = host.query(&self.shared.statements, query, &all).await?;
            match rows.first().and_then(Refusal::of) {
                None if is_recent => return Ok(rows),
                // The map of this process may be old, so that it samples the wrong hosts.
                None if !self.has_reloaded && self.shared.staleness.is_moved(self.topology.epoch) => {
                    return Err(Failure::Moved);
                }
                None => {
                    let next = timeout(self.time_left().unwrap_or_default(), samples.changed()).await;
                    next.map_err(|_| Failure::Final(beyond_bound(&host.name))).map(drop)?;
                }
                Some(Refusal::Moved) => return Err(Failure::Moved),
                Some(Refusal::Behind { shard, current, is_truth }) => {
                    let shown = if is_truth {
                        self.shared.acknowledged.require(host, self.topology.epoch, current.on(shard))
                    } else {
                        Ok(())
                    };
                    let Some(left) = self.time_left() else {
                        return shown
                            .and_then(|()| Err(Failure::Final(self.not_yet_visible(shard, current))));
                    };
                    // Woken early or not, the host is asked again.
                    _ = timeout(pause.min(left), progress.changed()).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// The same guard, which also asks for what was acknowledged: an old primary does not have it.
    fn with_acknowledged(&self, guard: &Guard) -> Guard {
        let mut guard = guard.clone();
        for (shard, sequence) in guard.shards.iter().zip(&mut guard.sequences) {
            let acknowledged = self.shared.acknowledged.get(self.topology.epoch, Shard(*shard as u16));
            *sequence = (*sequence).max(acknowledged.0 as i64);
        }
        guard
    }

    /// Whether the map was read again for it: a host that still refuses a shard does not have it at the moment.
    pub(crate) fn has_reloaded(&self) -> bool {
        self.has_reloaded
    }

    /// How long the read may still wait.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    pub(crate) fn not_yet_visible(&self, shard: Shard, current: Sequence) -> Error {
        let asked = self.at_least.iter().find(|asked| asked.shard.min(Shard(i16::MAX as u16)) == shard);
        let current = current.on(shard);
        Error::NotYetVisible { asked: asked.unwrap_or(current), current }
    }

    /// Groups what is asked by the hosts that can answer: `held_by` is the user on whose shard each is.
    pub(crate) fn by_host<T: Copy>(&self, asked: &[T], held_by: impl Fn(T) -> Id) -> Vec<HostPart<T>> {
        let mut parts: BTreeMap<usize, HostPart<T>> = BTreeMap::new();
        for (index, &one) in asked.iter().enumerate() {
            let shard = self.topology.shard_of(held_by(one));
            let host = self.topology.host_of(shard);
            let part = parts.entry(host).or_insert_with(|| HostPart {
                host,
                indexes: Vec::new(),
                shards: Vec::new(),
                asked: Vec::new(),
            });
            part.indexes.push(index);
            part.shards.push(shard);
            part.asked.push(one);
        }
        parts.into_values().collect()
    }
}

/// What one host is asked.
pub(crate) struct HostPart<T> {
    pub(crate) host: usize,
    /// Where each stands in the whole question.
    indexes: Vec<usize>,
    /// The shard of each.
    pub(crate) shards: Vec<Shard>,
    pub(crate) asked: Vec<T>,
}

impl<T> HostPart<T> {
    /// The shard of each, as a parameter.
    pub(crate) fn shard_numbers(&self) -> Vec<i16> {
        self.shards.iter().map(|shard| shard.0 as i16).collect()
    }

    /// Where the subject of a row stands in the whole question. Statements answer with its ordinality, which counts from 1.
    pub(crate) fn index_of(&self, row: &Row) -> Option<usize> {
        let ordinality: Option<i64> = row.get(GUARD_COLUMNS);
        self.indexes.get(ordinality? as usize - 1).copied()
    }
}
