//! The cache as a layer of checks: it answers for followers whose sets are there and show enough.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use kinfolk_core::histogram::{Histogram, HistogramSnapshot};
use kinfolk_core::{EdgeKind, Id, Result, Sequence, names};

use super::keys::{Keys, Part, mark, member, set, watermark};
use super::{Cache, scripts};
use crate::check::{CheckLayer, Checks};
use crate::fleet::Shared;
use crate::redis::{Command, Reply, Unanswered};

/// What the cache says of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheVerdict {
    /// The edge exists.
    Yes,
    /// It does not exist.
    No,
    /// The set of the follower is not there.
    Absent,
    /// The set lacks what the check must show, or nobody knows what that is.
    Behind,
    /// The node is left out, because it has failed before.
    LeftOut,
    /// The node took too long.
    TimedOut,
    /// There is no connection to the node, or nobody knows which node has the slot.
    Unreachable,
    /// The slot is being moved, or the cluster does not serve it.
    Moved,
    /// The node has refused the command.
    Refused,
}

names! {
    CacheVerdict {
        Yes => "yes",
        No => "no",
        Absent => "absent",
        Behind => "behind",
        LeftOut => "left_out",
        TimedOut => "timed_out",
        Unreachable => "unreachable",
        Moved => "moved",
        Refused => "refused",
    }
}

impl CacheVerdict {
    fn answer(self) -> Option<bool> {
        match self {
            Self::Yes => Some(true),
            Self::No => Some(false),
            _ => None,
        }
    }
}

impl From<Unanswered> for CacheVerdict {
    fn from(reason: Unanswered) -> Self {
        match reason {
            Unanswered::LeftOut => Self::LeftOut,
            Unanswered::TimedOut => Self::TimedOut,
            Unanswered::Unreachable => Self::Unreachable,
            Unanswered::Moved => Self::Moved,
            Unanswered::Refused => Self::Refused,
        }
    }
}

/// What a cache has said so far, and how long it took.
#[derive(Default)]
pub(crate) struct CacheCounts {
    verdicts: [AtomicU64; CacheVerdict::ALL.len()],
    times: Histogram,
}

impl CacheCounts {
    pub(crate) fn verdicts(&self) -> [(CacheVerdict, u64); CacheVerdict::ALL.len()] {
        CacheVerdict::ALL.map(|verdict| (verdict, self.verdicts[verdict as usize].load(Ordering::Relaxed)))
    }

    pub(crate) fn times(&self) -> HistogramSnapshot {
        let mut snapshot = HistogramSnapshot::default();
        self.times.add_to(&mut snapshot);
        snapshot
    }
}

/// Asks the cache first.
pub(crate) struct CacheLayer<N> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) next: N,
}

impl<N: CheckLayer> CheckLayer for CacheLayer<N> {
    async fn contains(&self, checks: Checks) -> Result<Vec<bool>> {
        let Some(cache) = &self.shared.cache else { return self.next.contains(checks).await };
        let began = Instant::now();
        let verdicts = cache.judge(&checks).await;
        cache.counts.times.observe(verdicts.len() as u64, began.elapsed());
        for &verdict in &verdicts {
            cache.counts.verdicts[verdict as usize].fetch_add(1, Ordering::Relaxed);
        }
        let absent =
            checks.asked.iter().zip(&verdicts).filter(|(_, verdict)| **verdict == CacheVerdict::Absent);
        absent.for_each(|(asked, _)| cache.fills.request(checks.kind, asked.edge.follower));
        let answers = verdicts.into_iter().map(CacheVerdict::answer).collect();
        checks.pass_on(answers, &self.next).await
    }
}

/// Checks of one follower: where they stand in the question.
type ByFollower = BTreeMap<Id, Vec<usize>>;

impl Cache {
    /// What the sets say: one command for each tag, all commands of a node at once.
    async fn judge(&self, checks: &Checks) -> Vec<CacheVerdict> {
        let mut verdicts = vec![CacheVerdict::Behind; checks.asked.len()];
        let mut parts: BTreeMap<Part, ByFollower> = BTreeMap::new();
        for (index, asked) in checks.asked.iter().enumerate().filter(|(_, asked)| asked.needed.is_some()) {
            let followers = parts.entry(Part::of(&checks.topology, asked.edge.follower)).or_default();
            followers.entry(asked.edge.follower).or_default().push(index);
        }
        let keys = Keys::of(&checks.topology);
        let commands: Vec<Command> =
            parts.iter().map(|(part, followers)| command(&keys.tag(*part), checks, followers)).collect();
        let replies = self.cluster.call(&commands, self.settings.timeout).await;
        for (followers, reply) in parts.values().zip(replies) {
            let found = reply.map(|reply| read(checks, followers, &reply));
            for (index, verdict) in match found {
                Ok(found) => found,
                Err(reason) => followers.values().flatten().map(|&index| (index, reason.into())).collect(),
            } {
                verdicts[index] = verdict;
            }
        }
        verdicts
    }
}

fn command(tag: &str, checks: &Checks, followers: &ByFollower) -> Command {
    let mut command = Command::script(scripts::CHECK, tag);
    command.key(&watermark(tag));
    for &follower in followers.keys() {
        command.key(&mark(tag, checks.kind, follower));
        command.key(&set(tag, checks.kind, follower));
    }
    for indexes in followers.values() {
        command.number(indexes.len() as u64);
        indexes.iter().for_each(|&index| command.argument(member(checks.asked[index].edge.followee)));
    }
    command
}

/// What a reply says of the checks of some followers. What it does not say is absent.
fn read(checks: &Checks, followers: &ByFollower, reply: &Reply) -> Vec<(usize, CacheVerdict)> {
    let mut numbers = reply.list().unwrap_or_default().iter().map(Reply::integer);
    let mut found = Vec::new();
    for indexes in followers.values() {
        let shown = numbers.next().flatten().and_then(|shown| u64::try_from(shown).ok()).map(Sequence);
        for &index in indexes {
            let verdict = match shown {
                None => CacheVerdict::Absent,
                Some(shown) => {
                    let is_member = numbers.next().flatten();
                    let is_enough = checks.asked[index].needed.is_some_and(|needed| shown >= needed);
                    match is_member {
                        _ if !is_enough => CacheVerdict::Behind,
                        Some(1) => CacheVerdict::Yes,
                        Some(0) => CacheVerdict::No,
                        _ => CacheVerdict::Absent,
                    }
                }
            };
            found.push((index, verdict));
        }
    }
    found
}

/// A follower's set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SetName {
    pub(super) kind: EdgeKind,
    pub(super) follower: Id,
}
