//! The bound of staleness: a host may answer from its follower side only while it is known to show everything that was committed
//! two seconds before.
//!
//! Each process samples all hosts twice a second: the newest positions of their shards, and their marks. A host whose marks cover
//! the positions of a sample shows everything that was committed before the sample began. The lag alone would not do: a
//! projection that can't reach a source has none of its changes, and seems to have them all. So while a host does not answer,
//! nobody knows what the others lack, and the bound ends for all of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use kinfolk_core::{Epoch, Error, Frontier, Sequence, Shard};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::log::{LogReader, marks};
use crate::postgres::{Failure, unavailable};

/// What the follower side shows is at most so old.
pub(crate) const STALENESS_MAX: Duration = Duration::from_secs(2);

const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// What the latest sample has found of a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct SampledHost {
    /// Everything that was committed before this is in its follower side.
    pub(super) shows_until: Option<Instant>,
    /// How far this process's clock is ahead of the host's. None of a host that did not answer.
    pub(super) clock_lead: Option<Duration>,
}

impl SampledHost {
    /// Whether its follower side is within the bound.
    pub(super) fn is_recent(&self) -> bool {
        self.shows_until.is_some_and(|moment| moment.elapsed() <= STALENESS_MAX)
    }
}

/// What the latest sample has found, by the names of the hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampled {
    epoch: Option<Epoch>,
    pub(super) hosts: BTreeMap<String, SampledHost>,
    /// The newest positions of the shards of all hosts that have answered.
    pub(crate) newest: Frontier,
    /// When the samples of the last seconds began, and what they have found to be the newest positions, oldest first.
    recent: VecDeque<(Instant, Frontier)>,
    /// Shards whose logs hold as much as they may: see [`Settings::log_changes_max`](crate::Settings::log_changes_max).
    full: BTreeSet<Shard>,
}

/// The latest sample of a process, and who waits for the next.
#[derive(Default)]
pub(crate) struct Staleness(watch::Sender<Sampled>);

impl Staleness {
    pub(crate) fn watch(&self) -> watch::Receiver<Sampled> {
        self.0.subscribe()
    }

    /// A position of a shard that was its newest at most two seconds ago. Who has everything up to it is within the bound.
    pub(crate) fn recent(&self, epoch: Epoch, shard: Shard) -> Option<Sequence> {
        let sampled = self.0.borrow();
        let within_bound = |(began, _): &&(Instant, Frontier)| began.elapsed() <= STALENESS_MAX;
        let mut recent = sampled.recent.iter().filter(|_| sampled.epoch == Some(epoch)).filter(within_bound);
        recent.find_map(|(_, newest)| newest.get(shard))
    }

    /// Returns an error if the log of a shard holds as much as it may.
    pub(crate) fn require_room(&self, shard: Shard) -> Result<(), Error> {
        if !self.0.borrow().full.contains(&shard) {
            return Ok(());
        }
        let what = format!(
            "the log of shard {}, which is full because its changes are not relayed or projected",
            shard.0
        );
        Err(unavailable(&what, "nobody takes its changes"))
    }

    /// How many shards have full logs.
    pub(crate) fn full(&self) -> usize {
        self.0.borrow().full.len()
    }

    /// Whether the follower side of a host is within the bound.
    pub(super) fn is_recent(&self, epoch: Epoch, host: &str) -> bool {
        let sampled = self.0.borrow();
        sampled.epoch == Some(epoch) && sampled.hosts.get(host).is_some_and(SampledHost::is_recent)
    }
}

/// The error of a read that needs a follower side beyond the bound.
pub(super) fn beyond_bound(host: &str) -> Error {
    unavailable(
        &format!("a follower side of host {host} that is at most two seconds old"),
        "it is behind, or a host does not answer",
    )
}

/// Samples the hosts until the store is dropped.
pub(crate) async fn sample(shared: Arc<Shared>) {
    let mut sampler = Sampler::default();
    let (mut recent, mut recent_epoch) = (VecDeque::new(), shared.topology().epoch);
    let mut ticks = interval(SAMPLE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let topology = shared.topology();
        let began = Instant::now();
        let hosts = 0..topology.hosts.len();
        let answers = join_all(hosts.map(|host| ask(&shared, &topology, host))).await;
        // An old map is left to the reads and writes that are refused because of it: they compare what their callers have seen.
        let answers: Vec<_> = answers.into_iter().map(Result::ok).collect();
        sampler.add(topology.epoch, began, &answers);
        let hosts = topology.hosts.iter().zip(&answers).enumerate();
        let sampled = hosts.map(|(index, (host, answer))| {
            let shows_until = sampler.shows_until.get(&index).copied();
            let clock_lead = answer.as_ref().map(|answer| answer.clock_lead);
            (host.name.clone(), SampledHost { shows_until, clock_lead })
        });
        let answered = || answers.iter().flatten();
        let newest: Frontier = answered().flat_map(|answer| answer.newest.iter()).collect();
        recent.retain(|(began, _): &(Instant, Frontier)| {
            began.elapsed() <= STALENESS_MAX && recent_epoch == topology.epoch
        });
        recent_epoch = topology.epoch;
        recent.push_back((began, newest.clone()));
        let sampled = Sampled {
            epoch: Some(topology.epoch),
            hosts: sampled.collect(),
            newest,
            recent: recent.clone(),
            full: answered().flat_map(|answer| answer.full.iter().copied()).collect(),
        };
        let full = sampled.full.clone();
        let before = shared.staleness.0.send_replace(sampled).full;
        if !full.is_empty() && before.is_empty() {
            tracing::error!(shards = full.len(), "the logs of shards are full: their writes are refused");
        }
    }
}

/// What a host has answered to a sample.
struct Answer {
    /// The newest positions of its own shards.
    newest: Frontier,
    /// Those of its shards whose logs hold as much as they may.
    full: Vec<Shard>,
    /// How far its follower side shows all shards.
    marks: Frontier,
    clock_lead: Duration,
}

/// An answer that takes longer than the bound proves nothing any more.
async fn ask(shared: &Shared, topology: &Topology, host: usize) -> Result<Answer, Failure> {
    let log = LogReader { shared, topology };
    let target = &topology.hosts[host];
    let answer = async {
        let spans = log.spans_on(host).await?;
        let newest = spans.iter().map(|(shard, span)| span.newest().on(*shard)).collect();
        let most = shared.settings.log_changes_max;
        let full = spans.iter().filter(|(_, span)| span.len() >= most).map(|(shard, _)| *shard).collect();
        let sources: Vec<Shard> = topology.shards().collect();
        let marks = marks(shared, target, topology.epoch, &sources).await?;
        let asked = Instant::now();
        let lead = target.clock_lead(&*shared.clock).await?;
        // The clock was read when the answer came. So late it was at most.
        Ok(Answer { newest, full, marks, clock_lead: lead.saturating_sub(asked.elapsed()) })
    };
    let late = |_| Err(Failure::Transient(unavailable(&target.name, "it did not answer in time")));
    timeout(STALENESS_MAX, answer).await.unwrap_or_else(late)
}

/// Compares the marks of hosts with the samples of the last seconds.
#[derive(Default)]
struct Sampler {
    epoch: Option<Epoch>,
    /// When each complete sample began, and the newest positions that it has found.
    samples: VecDeque<(Instant, Frontier)>,
    /// By the index of the host.
    shows_until: BTreeMap<usize, Instant>,
}

impl Sampler {
    /// Adds the answers of all hosts, in their order. Of one that has not answered, nobody knows the positions.
    fn add(&mut self, epoch: Epoch, began: Instant, answers: &[Option<Answer>]) {
        if self.epoch != Some(epoch) {
            *self = Self { epoch: Some(epoch), ..Self::default() };
        }
        self.samples.retain(|(began, _)| began.elapsed() <= STALENESS_MAX);
        if answers.iter().all(Option::is_some) {
            let newest = answers.iter().flatten().flat_map(|answer| answer.newest.iter()).collect();
            self.samples.push_back((began, newest));
        }
        for (host, answer) in answers.iter().enumerate() {
            let Some(Answer { marks, .. }) = answer else { continue };
            let covered = self.samples.iter().rev().find(|(_, newest)| marks.covers_all(newest));
            if let Some((began, _)) = covered {
                self.shows_until.insert(host, *began);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(newest: u64, marks: [u64; 2], shard: u16) -> Option<Answer> {
        let marks = marks.into_iter().zip(0..).map(|(mark, shard)| Sequence(mark).on(Shard(shard)));
        let newest = Sequence(newest).on(Shard(shard)).into();
        Some(Answer { newest, full: Vec::new(), marks: marks.collect(), clock_lead: Duration::ZERO })
    }

    #[test]
    fn a_host_shows_the_newest_sample_that_its_marks_cover() {
        let (mut sampler, first) = (Sampler::default(), Instant::now());
        let second = first + Duration::from_millis(1);
        sampler.add(Epoch(1), first, &[answer(5, [5, 7], 0), answer(7, [4, 7], 1)]);
        assert_eq!(sampler.shows_until, BTreeMap::from([(0, first)]));
        sampler.add(Epoch(1), second, &[answer(6, [5, 7], 0), answer(7, [5, 7], 1)]);
        assert_eq!(sampler.shows_until, BTreeMap::from([(0, first), (1, first)]));
        sampler.add(Epoch(1), second, &[answer(6, [6, 7], 0), None]);
        assert_eq!(sampler.shows_until, BTreeMap::from([(0, second), (1, first)]));
    }

    #[test]
    fn a_silent_host_proves_nothing_and_an_epoch_starts_afresh() {
        let (mut sampler, now) = (Sampler::default(), Instant::now());
        sampler.add(Epoch(1), now, &[answer(0, [0, 0], 0), None]);
        assert_eq!(sampler.shows_until, BTreeMap::new());
        sampler.add(Epoch(1), now, &[answer(0, [0, 0], 0), answer(0, [0, 0], 1)]);
        sampler.add(Epoch(2), now, &[None, None]);
        assert_eq!(sampler.shows_until, BTreeMap::new());
    }
}
