//! The bound of staleness: a host may answer from its follower side only while it is known to show everything that was committed
//! two seconds before.
//!
//! Each process samples all hosts twice a second: the newest positions of their shards, and their marks. A host whose marks cover
//! the positions of a sample shows everything that was committed before the sample began. The lag alone would not do: a
//! projection that can't reach a source has none of its changes, and seems to have them all. So while a host does not answer,
//! nobody knows what the others lack, and the bound ends for all of them. Checks ask only for the newest positions of one shard, which
//! its own host says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::{Epoch, Error, Frontier, Sequence, Shard};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::log::{LogReader, marks};
use crate::postgres::{Failure, Host, unavailable};

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

/// The newest positions of some shards, and when a host was asked for them.
type Sample = (Instant, Frontier);

/// What the latest samples have found, by the names of the hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sampled {
    epoch: Option<Epoch>,
    pub(super) hosts: BTreeMap<String, SampledHost>,
    /// The newest positions of the shards of all hosts that have answered lately.
    pub(crate) newest: Frontier,
    /// The samples of the last seconds of each host, oldest first.
    recent: Vec<VecDeque<Sample>>,
    /// Shards whose logs hold as much as they may: see [`Settings::log_changes_max`](crate::Settings::log_changes_max).
    full: BTreeSet<Shard>,
    /// Whether a host has another epoch or other shards than this process knows.
    pub(crate) is_moved: bool,
}

/// The latest samples of a process, and who waits for the next.
#[derive(Default)]
pub(crate) struct Staleness(watch::Sender<Sampled>);

impl Staleness {
    pub(crate) fn watch(&self) -> watch::Receiver<Sampled> {
        self.0.subscribe()
    }

    /// A position of a shard that was its newest at most two seconds ago. Who has everything up to it is within the bound.
    pub(crate) fn recent(&self, epoch: Epoch, shard: Shard) -> Option<Sequence> {
        let (sampled, now) = (self.0.borrow(), Instant::now());
        let within_bound = |(began, _): &&Sample| now.duration_since(*began) <= STALENESS_MAX;
        let of_host = |samples: &VecDeque<Sample>| {
            samples.iter().find(within_bound).and_then(|(_, newest)| newest.get(shard))
        };
        sampled.recent.iter().filter(|_| sampled.epoch == Some(epoch)).find_map(of_host)
    }

    /// Whether a host says that the map of this process is old: what was seen in its epoch may be lost.
    pub(crate) fn is_moved(&self, epoch: Epoch) -> bool {
        let sampled = self.0.borrow();
        sampled.epoch == Some(epoch) && sampled.is_moved
    }

    /// The newest positions that the latest samples have found.
    pub(crate) fn newest(&self, epoch: Epoch) -> Frontier {
        let sampled = self.0.borrow();
        if sampled.epoch == Some(epoch) { sampled.newest.clone() } else { Frontier::default() }
    }

    /// The newest position of a shard that the latest samples have found.
    pub(crate) fn newest_of(&self, epoch: Epoch, shard: Shard) -> Sequence {
        let sampled = self.0.borrow();
        let newest = (sampled.epoch == Some(epoch)).then(|| sampled.newest.get(shard)).flatten();
        newest.unwrap_or_default()
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

    /// Everything that was committed before this is in the follower side of a host, as far as anybody knows.
    pub(crate) fn shows_until(&self, epoch: Epoch, host: &str) -> Option<Instant> {
        let sampled = self.0.borrow();
        sampled.hosts.get(host).filter(|_| sampled.epoch == Some(epoch))?.shows_until
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

/// Samples the hosts until the store is dropped, each at its own pace: a host that is silent holds up no other.
pub(crate) async fn sample(shared: Arc<Shared>) {
    let (mut sampler, mut asked, mut tasks) = (Sampler::default(), BTreeSet::new(), JoinSet::new());
    loop {
        for host in 0..shared.topology().hosts.len() {
            if asked.insert(host) {
                tasks.spawn(ask_at(Instant::now(), Arc::clone(&shared), host));
            }
        }
        let sampled = match tasks.join_next().await {
            Some(Ok(sampled)) => sampled,
            // Begun again as a whole.
            Some(Err(error)) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            _ => return,
        };
        let HostSample { topology, host, began, is_moved, answer } = sampled;
        sampler.add(topology.epoch, host, began, answer);
        sampler.note_moved(topology.epoch, host, is_moved);
        if host < topology.hosts.len() {
            tasks.spawn(ask_at(began + SAMPLE_EVERY, Arc::clone(&shared), host));
        } else {
            asked.remove(&host);
        }
        // By the newest map, whichever the sample was taken by.
        let full = sampler.publish(&shared.topology(), &shared.staleness);
        if full > 0 {
            tracing::error!(shards = full, "the logs of shards are full: their writes are refused");
        }
    }
}

/// One sample of a host.
struct HostSample {
    topology: Arc<Topology>,
    host: usize,
    began: Instant,
    /// Whether the host has another epoch or other shards than this process knows.
    is_moved: bool,
    answer: Option<Answer>,
}

/// Asks a host at a moment.
async fn ask_at(moment: Instant, shared: Arc<Shared>, host: usize) -> HostSample {
    sleep_until(moment).await;
    let (topology, began) = (shared.topology(), Instant::now());
    let answer = match topology.hosts.len() {
        hosts if host < hosts => ask(&shared, &topology, host).await,
        _ => Err(Failure::Moved),
    };
    // An old map is left to the reads and writes that are refused because of it: they compare what their callers have seen.
    let is_moved = matches!(answer, Err(Failure::Moved));
    let answer = answer.ok();
    HostSample { topology, host, began, is_moved, answer }
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
    /// By the index of the host.
    hosts: BTreeMap<usize, HostSamples>,
}

#[derive(Default)]
struct HostSamples {
    /// When each sample of the last seconds began, and the newest positions that it has found.
    samples: VecDeque<Sample>,
    /// The last answer. What its follower side shows, it shows from then on.
    last: Option<Answer>,
    /// Whether the last sample was answered.
    answers: bool,
    /// Whether the host has refused it, because the map of this process is old.
    is_moved: bool,
}

impl Sampler {
    /// Adds the answer of a host. Of one that has not answered, nobody knows the positions.
    fn add(&mut self, epoch: Epoch, host: usize, began: Instant, answer: Option<Answer>) {
        if self.epoch.is_some_and(|known| known.0 > epoch.0) {
            // It was asked before the new epoch was known.
            return;
        }
        if self.epoch != Some(epoch) {
            *self = Self { epoch: Some(epoch), ..Self::default() };
        }
        for known in self.hosts.values_mut() {
            known.samples.retain(|(began, _)| began.elapsed() <= STALENESS_MAX);
        }
        let known = self.hosts.entry(host).or_default();
        known.answers = answer.is_some();
        if let Some(answer) = answer {
            known.samples.push_back((began, answer.newest.clone()));
            known.last = Some(answer);
        }
    }

    fn note_moved(&mut self, epoch: Epoch, host: usize, is_moved: bool) {
        if self.epoch == Some(epoch) {
            self.hosts.entry(host).or_default().is_moved = is_moved;
        }
    }

    /// Everything that was committed before this, on any host, is in the follower side of a host. `held` are the shards of each host: a
    /// sample from before a shard has come to its host says nothing about it.
    fn shows_until(&self, host: usize, held: &[Vec<Shard>]) -> Option<Instant> {
        let Answer { marks, .. } = self.hosts.get(&host)?.last.as_ref()?;
        let of_source = |(source, held): (usize, &Vec<Shard>)| {
            let is_proof = |(_, newest): &&Sample| {
                held.iter().all(|&shard| newest.get(shard).is_some()) && marks.covers_all(newest)
            };
            let samples = &self.hosts.get(&source)?.samples;
            samples.iter().rev().find(is_proof).map(|(began, _)| *began)
        };
        held.iter().enumerate().map(of_source).min().flatten()
    }

    /// Makes known what the samples say, once every host was asked. Returns how many logs are full, when that was not so before.
    fn publish(&self, topology: &Topology, staleness: &Staleness) -> usize {
        let count = topology.hosts.len();
        if self.hosts.len() < count {
            return 0;
        }
        let held: Vec<Vec<Shard>> = (0..count).map(|host| topology.shards_on(host).collect()).collect();
        let of_host = |(index, host): (usize, &Arc<Host>)| {
            let known = self.hosts.get(&index);
            let clock_lead =
                known.filter(|known| known.answers).and_then(|known| Some(known.last.as_ref()?.clock_lead));
            (host.name.clone(), SampledHost { shows_until: self.shows_until(index, &held), clock_lead })
        };
        let latest = || {
            self.hosts
                .values()
                .filter(|known| !known.samples.is_empty())
                .filter_map(|known| known.last.as_ref())
        };
        let sampled = Sampled {
            epoch: self.epoch,
            hosts: topology.hosts.iter().enumerate().map(of_host).collect(),
            newest: latest().flat_map(|answer| answer.newest.iter()).collect(),
            recent: self.hosts.values().map(|known| known.samples.clone()).collect(),
            full: latest().flat_map(|answer| answer.full.iter().copied()).collect(),
            is_moved: self.hosts.values().any(|known| known.is_moved),
        };
        let full = sampled.full.len();
        let before = staleness.0.send_replace(sampled).full;
        if before.is_empty() { full } else { 0 }
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

    fn shown(sampler: &Sampler) -> [Option<Instant>; 2] {
        let held = [vec![Shard(0)], vec![Shard(1)]];
        [0, 1].map(|host| sampler.shows_until(host, &held))
    }

    #[test]
    fn a_host_shows_the_newest_sample_that_its_marks_cover() {
        let (mut sampler, first) = (Sampler::default(), Instant::now());
        let [second, third] = [1, 2].map(|millis| first + Duration::from_millis(millis));
        sampler.add(Epoch(1), 0, first, answer(5, [5, 7], 0));
        sampler.add(Epoch(1), 1, second, answer(7, [4, 7], 1));
        assert_eq!(shown(&sampler), [Some(first), None]);
        sampler.add(Epoch(1), 0, third, answer(6, [5, 7], 0));
        sampler.add(Epoch(1), 1, third, answer(7, [5, 7], 1));
        assert_eq!(shown(&sampler), [Some(first), Some(first)]);
        sampler.add(Epoch(1), 0, third, answer(6, [6, 7], 0));
        sampler.add(Epoch(1), 1, third, None);
        assert_eq!(shown(&sampler), [Some(third), Some(first)], "a silent host's marks only grow");
    }

    #[test]
    fn a_sample_from_before_a_move_proves_nothing_about_the_shard() {
        let (mut sampler, now) = (Sampler::default(), Instant::now());
        sampler.add(Epoch(1), 0, now, answer(5, [5, 7], 0));
        sampler.add(Epoch(1), 1, now, answer(7, [5, 7], 1));
        assert_eq!(shown(&sampler), [Some(now), Some(now)]);
        let moved = [vec![Shard(0), Shard(1)], vec![]];
        assert_eq!(sampler.shows_until(0, &moved), None);
    }

    #[test]
    fn a_silent_host_proves_nothing_and_an_epoch_starts_afresh() {
        let (mut sampler, now) = (Sampler::default(), Instant::now());
        sampler.add(Epoch(1), 0, now, answer(0, [0, 0], 0));
        sampler.add(Epoch(1), 1, now, None);
        assert_eq!(shown(&sampler), [None, None]);
        sampler.add(Epoch(1), 1, now, answer(0, [0, 0], 1));
        assert_eq!(shown(&sampler), [Some(now), Some(now)]);
        sampler.add(Epoch(2), 0, now, None);
        assert_eq!(shown(&sampler), [None, None]);
    }
}
