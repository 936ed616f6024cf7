//! The loop of a reconciler: all shards, page by page, again and again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kinfolk_core::Shard;
use tokio::time::sleep;

use super::Reconciling;
use super::pace::Pace;
use super::turns::Turns;
use super::waiting::Waiting;
use crate::catalog::Topology;
use crate::compare::{Comparison, Difference, LeftOut, PAGE, Settled, Step, Subject, Thoroughness, Walk};
use crate::fleet::Shared;
use crate::postgres::{Failure, Host};

/// What a page costs at least, in rows: a small one takes as many statements as a large one.
const PAGE_COST_MIN: u64 = 100;

/// Differences that are looked at again at once.
const AGAIN_MAX: usize = 500;

/// The session of a host is kept alive so often.
const RENEW_EVERY: Duration = Duration::from_secs(1);

/// The pause after a failure.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// Which difference was seen before of each subject.
type Earlier = HashMap<Subject, Difference>;

pub(super) struct Run {
    shared: Arc<Shared>,
    pace: Pace,
    page: i64,
    waiting: Waiting,
    left_out: LeftOut,
}

impl Run {
    pub(super) fn new(shared: Arc<Shared>, reconciling: Reconciling) -> Self {
        let rate = reconciling.rows_per_second;
        Self {
            shared,
            pace: Pace::new(rate),
            // At most about a page a second, however slow it is.
            page: i64::from(rate).clamp(1, PAGE),
            waiting: Waiting::new(reconciling.delay),
            left_out: LeftOut::default(),
        }
    }

    pub(super) async fn run(mut self) {
        loop {
            if self.pass().await {
                self.shared.reconciled.passed();
            }
        }
    }

    /// Walks every shard, those of one host after another. Returns whether all were compared, by this process or another.
    async fn pass(&mut self) -> bool {
        let topology = self.shared.topology();
        let mut shards: Vec<Shard> = topology.shards().collect();
        shards.sort_by_key(|&shard| topology.host_of(shard));
        let (mut turns, mut is_whole, left_out) = (None, true, self.left_out.times());
        for shard in shards {
            // As it is now: a shard may have been moved.
            let topology = self.shared.topology();
            let host = &topology.hosts[topology.host_of(shard)];
            if self.left_out.has(host) {
                self.rest(None, PAGE_COST_MIN).await;
                continue;
            }
            if let Err(failure) = self.take_turn(&topology, shard, &mut turns).await {
                is_whole = false;
                turns = None;
                self.failed(host, shard, failure).await;
            }
        }
        is_whole && self.left_out.times() == left_out
    }

    async fn failed(&mut self, host: &Host, shard: Shard, failure: Failure) {
        match failure {
            Failure::Moved => {
                tracing::debug!(shard = shard.0, "a shard was moved while it was compared");
                // Whether or not that succeeds, the next attempt finds out what is wrong.
                _ = self.shared.reload_topology().await;
            }
            Failure::Transient(_) => self.left_out.note(host, &failure),
            Failure::Final(error) => tracing::warn!(shard = shard.0, %error, "a shard can't be compared"),
        }
        sleep(AFTER_FAILURE).await;
        self.look_again().await;
    }

    /// Walks a shard, unless another process is at it.
    async fn take_turn(
        &mut self,
        topology: &Topology,
        shard: Shard,
        turns: &mut Option<Turns>,
    ) -> Result<(), Failure> {
        let host = &topology.hosts[topology.host_of(shard)];
        let session = match turns.take().filter(|turns| turns.host == host.name) {
            Some(session) => session,
            None => Turns::begin(host).await?,
        };
        let session = turns.insert(session);
        if !session.take(host, shard).await? {
            self.rest(Some((&*session, host)), PAGE_COST_MIN).await;
            return Ok(());
        }
        let mut walk = Some(Walk::new(topology.id_kind));
        while let Some(at) = walk {
            session.renew(host).await?;
            let step = self.comparison(topology).step(shard, at, self.page, &|_| false).await?;
            let cost = self.note(&step);
            walk = step.next;
            self.rest(Some((&*session, host)), cost).await;
        }
        self.comparison(topology).require_open(shard).await?;
        session.free(host, shard).await
    }

    fn comparison<'a>(&'a self, topology: &'a Topology) -> Comparison<'a> {
        Comparison { shared: &self.shared, topology, thoroughness: Thoroughness::Bounded(&self.left_out) }
    }

    /// Remembers what a page has shown. Returns what it has cost, in rows.
    fn note(&mut self, step: &Step) -> u64 {
        let reconciled = &self.shared.reconciled;
        reconciled.rows.fetch_add(step.rows, Ordering::Relaxed);
        reconciled.ranges_differed.fetch_add(step.ranges_differed, Ordering::Relaxed);
        for settled in &step.settled {
            self.remember(settled.difference);
        }
        (step.rows + step.settled.len() as u64).max(step.counted).max(PAGE_COST_MIN)
    }

    fn remember(&mut self, difference: Difference) {
        if self.waiting.note(difference) {
            tracing::info!(%difference, "found a difference, which is looked at again");
            self.count(|reconciled| &reconciled.differences);
        }
        let waiting = self.waiting.len() as u64;
        self.shared.reconciled.waiting.store(waiting, Ordering::Relaxed);
    }

    fn count(&self, counter: fn(&super::Reconciled) -> &AtomicU64) {
        counter(&self.shared.reconciled).fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until more may be compared, and keeps the session alive meanwhile.
    async fn rest(&mut self, session: Option<(&Turns, &Host)>, cost: u64) {
        self.pace.spend(cost);
        loop {
            self.look_again().await;
            let wait = self.pace.wait();
            if wait.is_zero() {
                return;
            }
            sleep(wait.min(RENEW_EVERY)).await;
            if let Some((session, host)) = session {
                // If that fails, the next step does, too.
                _ = session.renew(host).await;
            }
        }
    }

    /// Looks again at the differences that are due, and repairs those that are the same.
    async fn look_again(&mut self) {
        while self.waiting.is_due() {
            let topology = self.shared.topology();
            let due = self.waiting.take_due(AGAIN_MAX);
            self.pace.spend(due.len() as u64);
            for (place, differences) in by_place(&topology, due) {
                let earlier: Earlier =
                    differences.iter().map(|difference| (difference.subject(), *difference)).collect();
                match self.settle_again(&topology, place, &earlier).await {
                    Ok(settled) => settled.into_iter().for_each(|settled| self.settled(settled)),
                    Err(failure) => {
                        tracing::debug!(?failure, "differences could not be looked at again");
                        differences.into_iter().for_each(|difference| self.waiting.put_back(difference));
                        if matches!(failure, Failure::Moved) {
                            _ = self.shared.reload_topology().await;
                        }
                    }
                }
            }
            let waiting = self.waiting.len() as u64;
            self.shared.reconciled.waiting.store(waiting, Ordering::Relaxed);
        }
    }

    async fn settle_again(
        &self,
        topology: &Topology,
        place: Place,
        earlier: &Earlier,
    ) -> Result<Vec<Settled>, Failure> {
        let compare = self.comparison(topology);
        let repair_if =
            |now: &Difference| earlier.get(&now.subject()).is_some_and(|earlier| now.is_still(earlier));
        let mut edges = Vec::new();
        let mut settled = Vec::new();
        for subject in earlier.keys() {
            match *subject {
                Subject::Edge(key) => edges.push(key),
                Subject::Count(side, shard, owner) => {
                    settled.extend(compare.settle_count(side, shard, owner, &repair_if).await?);
                }
            }
        }
        settled.extend(compare.settle_edges(place.source, place.target, &edges, &repair_if).await?);
        Ok(settled)
    }

    fn settled(&mut self, Settled { difference, is_repaired }: Settled) {
        if is_repaired {
            tracing::warn!(%difference, "repaired a difference");
            self.count(|reconciled| &reconciled.repaired);
        } else {
            // It is another one than before.
            self.remember(difference);
        }
    }
}

/// Where differences are settled together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    source: Shard,
    /// The index of the host of the follower side.
    target: usize,
}

/// Differences by the source and the host of their edges; counts by their shard and its host.
fn by_place(topology: &Topology, differences: Vec<Difference>) -> BTreeMap<Place, Vec<Difference>> {
    let mut by_place: BTreeMap<Place, Vec<Difference>> = BTreeMap::new();
    for difference in differences {
        let (source, holder) = match difference.subject() {
            Subject::Edge((_, edge)) => (topology.shard_of(edge.follower), topology.shard_of(edge.followee)),
            Subject::Count(_, shard, _) => (shard, shard),
        };
        let target = topology.host_of(holder);
        by_place.entry(Place { source, target }).or_default().push(difference);
    }
    by_place
}
