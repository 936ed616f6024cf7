//! Fills: sets that were asked for and not there are read from their shards, some at a time, and stored.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kinfolk_core::{EdgeKind, Frontier, Id, Sequence, Shard, names};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};
use tokio_postgres::types::ToSql;

use super::keys::{Keys, Part, mark, member, set, watermark};
use super::layer::SetName;
use super::{Cache, scripts};
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::postgres::{Failure, IdValue, Query};
use crate::read::{GUARD_COLUMNS, Guard};
use crate::redis::{Command, Reply, Unanswered};

/// A larger set is not kept: the limit of a user's follows is the same by default.
const MEMBERS_MAX: usize = 10_000;

/// Followers that wait for their sets to be read; more are not noted.
const WAITING_MAX: usize = 20_000;

/// Sets that one statement reads.
const SETS_MAX: usize = 32;

/// Statements that a process has under way on a host at once for this: they take connections from writes.
const GROUPS_MAX: usize = 2;

/// A set that the watermark has passed while it was read is read again so often.
const ATTEMPTS_MAX: u32 = 3;

/// How often the budget is given out.
const TICK: Duration = Duration::from_millis(20);

/// How long a node may take to store sets.
const STORE_MAX: Duration = Duration::from_millis(500);

/// How long a watermark is kept that nobody moves.
pub(super) const WATERMARK_KEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// What became of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillOutcome {
    /// The set is there now.
    Stored,
    /// A set as new as this one was there already.
    Present,
    /// The watermark had passed it, again and again.
    Stale,
    /// The user follows too many.
    TooLarge,
    /// Its shard or its node did not answer.
    Failed,
    /// Too many were waiting, or its shard's host was busy with others.
    Dropped,
}

names! {
    FillOutcome {
        Stored => "stored",
        Present => "present",
        Stale => "stale",
        TooLarge => "too_large",
        Failed => "failed",
        Dropped => "dropped",
    }
}

/// The fills that wait, each follower once.
pub(crate) struct Fills {
    queue: mpsc::Sender<SetName>,
    /// What the task that fills takes them from.
    requested: tokio::sync::Mutex<mpsc::Receiver<SetName>>,
    waiting: Mutex<HashSet<SetName, foldhash::fast::RandomState>>,
    outcomes: [AtomicU64; FillOutcome::ALL.len()],
    generations: AtomicU64,
}

impl Fills {
    pub(super) fn new() -> Self {
        let (queue, requested) = mpsc::channel(WAITING_MAX);
        Self {
            queue,
            requested: tokio::sync::Mutex::new(requested),
            waiting: Mutex::default(),
            outcomes: Default::default(),
            generations: AtomicU64::new(0),
        }
    }

    /// Asks for a set to be read, unless that was asked already.
    pub(super) fn request(&self, kind: EdgeKind, follower: Id) {
        let name = SetName { kind, follower };
        if self.waiting.lock().insert(name) && self.queue.try_send(name).is_err() {
            self.waiting.lock().remove(&name);
            self.count(FillOutcome::Dropped);
        }
    }

    /// These may be asked for again.
    fn settle(&self, group: &FillGroup) {
        let mut waiting = self.waiting.lock();
        for &follower in &group.followers {
            waiting.remove(&SetName { kind: group.kind, follower });
        }
    }

    fn count(&self, outcome: FillOutcome) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many generations were begun.
    pub(super) fn generations(&self) -> u64 {
        self.generations.load(Ordering::Relaxed)
    }

    pub(crate) fn outcomes(&self) -> [(FillOutcome, u64); FillOutcome::ALL.len()] {
        FillOutcome::ALL.map(|outcome| (outcome, self.outcomes[outcome as usize].load(Ordering::Relaxed)))
    }
}

/// Fills sets as they are asked for, within the budget of the process, until the store is dropped.
pub(crate) async fn fill(shared: Arc<Shared>) {
    let Some(cache) = &shared.cache else { return };
    let mut requested = cache.fills.requested.lock().await;
    // What an earlier task has left in the middle may be asked for again.
    cache.fills.waiting.lock().clear();
    let per_tick = f64::from(cache.settings.fills_per_second) * TICK.as_secs_f64();
    let (mut ticks, mut budget) = (interval(TICK), 0.0);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut names, mut tasks) = (Vec::new(), Tasks::default());
    loop {
        ticks.tick().await;
        budget = (budget + per_tick).min(per_tick.max(SETS_MAX as f64));
        if budget < 1.0 || requested.recv_many(&mut names, budget as usize).await == 0 {
            continue;
        }
        tasks.collect();
        budget -= names.len() as f64;
        let topology = shared.topology();
        for group in groups(&topology, names.drain(..)) {
            tasks.start(&shared, &topology, group);
        }
    }
}

/// Fills that are under way, by host: one that is silent holds up no other.
#[derive(Default)]
struct Tasks {
    running: JoinSet<usize>,
    by_host: BTreeMap<usize, usize>,
}

impl Tasks {
    /// Forgets those that have ended.
    fn collect(&mut self) {
        while let Some(ended) = self.running.try_join_next() {
            match ended {
                Ok(host) => *self.by_host.entry(host).or_default() -= 1,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(_) => {}
            }
        }
    }

    /// Fills a group, unless its host is busy with others.
    fn start(&mut self, shared: &Arc<Shared>, topology: &Arc<Topology>, group: FillGroup) {
        let (shared, topology, host) = (Arc::clone(shared), Arc::clone(topology), group.host);
        let Some(cache) = &shared.cache else { return };
        let running = self.by_host.entry(host).or_default();
        if *running >= GROUPS_MAX {
            group.followers.iter().for_each(|_| cache.fills.count(FillOutcome::Dropped));
            return cache.fills.settle(&group);
        }
        *running += 1;
        self.running.spawn(async move {
            if let Some(cache) = &shared.cache {
                group.clone().fill(&shared, cache, &topology).await;
                cache.fills.settle(&group);
            }
            host
        });
    }
}

/// Sets that one statement can read together.
fn groups(topology: &Topology, names: impl Iterator<Item = SetName>) -> Vec<FillGroup> {
    let mut by_host: BTreeMap<(EdgeKind, usize), Vec<Id>> = BTreeMap::new();
    for name in names {
        let host = topology.host_of(topology.shard_of(name.follower));
        by_host.entry((name.kind, host)).or_default().push(name.follower);
    }
    let group = |((kind, host), followers): ((EdgeKind, usize), Vec<Id>)| -> Vec<FillGroup> {
        let chunk = |followers: &[Id]| FillGroup { kind, host, followers: followers.to_vec() };
        followers.chunks(SETS_MAX).map(chunk).collect()
    };
    by_host.into_iter().flat_map(group).collect()
}

/// Sets of one host.
#[derive(Clone)]
pub(super) struct FillGroup {
    pub(super) kind: EdgeKind,
    pub(super) host: usize,
    pub(super) followers: Vec<Id>,
}

impl FillGroup {
    async fn fill(mut self, shared: &Shared, cache: &Cache, topology: &Topology) {
        for _ in 0..ATTEMPTS_MAX {
            let sets = read_sets(shared, topology, &self).await;
            let sets = sets.inspect_err(|failure| tracing::debug!(?failure, "sets could not be read"));
            let outcomes = match sets {
                Ok(sets) => store(cache, topology, self.kind, &sets.iter().collect::<Vec<_>>(), None).await,
                Err(_) => self.followers.iter().map(|&follower| (follower, FillOutcome::Failed)).collect(),
            };
            self.followers.clear();
            for (follower, outcome) in outcomes {
                match outcome {
                    FillOutcome::Stale => self.followers.push(follower),
                    outcome => cache.fills.count(outcome),
                }
            }
            if self.followers.is_empty() {
                return;
            }
        }
        self.followers.iter().for_each(|_| cache.fills.count(FillOutcome::Stale));
    }
}

/// All that a user follows, at a position of its shard.
pub(super) struct ReadSet {
    pub(super) follower: Id,
    pub(super) position: Sequence,
    pub(super) members: Vec<Id>,
}

/// Reads sets over a connection that shows only what the standby has: a set in the cache outlives a promotion.
pub(super) async fn read_sets(
    shared: &Shared,
    topology: &Topology,
    group: &FillGroup,
) -> Result<Vec<ReadSet>, Failure> {
    let shards: Vec<Shard> = group.followers.iter().map(|&follower| topology.shard_of(follower)).collect();
    let guard = Guard::of_truth(topology, shards.iter().copied(), Frontier::EMPTY);
    let kind = i16::from(group.kind.number());
    let numbers: Vec<i16> = shards.iter().map(|shard| shard.0 as i16).collect();
    let followers: Vec<IdValue> = group.followers.iter().copied().map(IdValue).collect();
    let limit = MEMBERS_MAX as i64;
    let own: [&(dyn ToSql + Sync); 4] = [&kind, &numbers, &followers, &limit];
    let parameters: Vec<&(dyn ToSql + Sync)> = guard.parameters().into_iter().chain(own).collect();
    let host = &topology.hosts[group.host];
    let rows = host.query_durable(&shared.statements, Query::FollowingSets, &parameters).await?;
    if rows.first().is_none_or(|row| row.get::<_, Option<i32>>(0).is_some()) {
        return Err(Failure::Moved);
    }
    let set = |row: &tokio_postgres::Row| -> Option<ReadSet> {
        // Without any user to read, there is a row of nothing.
        let ordinal = row.get::<_, Option<i64>>(GUARD_COLUMNS)?;
        let members: Vec<IdValue> = row.get(GUARD_COLUMNS + 2);
        Some(ReadSet {
            follower: *group.followers.get(usize::try_from(ordinal - 1).ok()?)?,
            position: Sequence(row.get::<_, i64>(GUARD_COLUMNS + 1) as u64),
            members: members.into_iter().map(|member| member.0).collect(),
        })
    };
    Ok(rows.iter().filter_map(set).collect())
}

/// Stores sets that were read at their positions. Where a tag has no watermark, a new one begins at a position before them all, or else
/// at that of the set.
pub(super) async fn store(
    cache: &Cache,
    topology: &Topology,
    kind: EdgeKind,
    sets: &[&ReadSet],
    begins: Option<Sequence>,
) -> Vec<(Id, FillOutcome)> {
    let Ok(generation) = getrandom::u64() else {
        return sets.iter().map(|set| (set.follower, FillOutcome::Failed)).collect();
    };
    let (small, large): (Vec<&ReadSet>, Vec<&ReadSet>) =
        sets.iter().partition(|set| set.members.len() <= MEMBERS_MAX);
    let command = |read: &&ReadSet| {
        let mut command = fill_command(topology, kind, read.follower);
        command.number(read.position.0);
        command.number(begins.unwrap_or(read.position).0);
        command.argument(format!("{generation:016x}"));
        command.number(WATERMARK_KEEP.as_millis() as u64);
        command.number(cache.keep_for(read.follower).as_millis() as u64);
        read.members.iter().for_each(|&id| command.argument(member(id)));
        command
    };
    // Checks use the same connections: what is sent at once is no more than a node takes in a few milliseconds.
    let mut replies = Vec::new();
    let mut rest = &small[..];
    while !rest.is_empty() {
        let mut members = 0;
        let fits = |set: &&&ReadSet| {
            members += set.members.len();
            members <= MEMBERS_MAX
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let commands: Vec<Command> = rest[..count].iter().map(command).collect();
        replies.extend(cache.cluster.call(&commands, STORE_MAX).await);
        rest = &rest[count..];
    }
    let outcome = |reply: Result<Reply, Unanswered>| match reply.map(|reply| reply.integer()) {
        Ok(Some(0)) => FillOutcome::Stale,
        Ok(Some(1)) => FillOutcome::Stored,
        Ok(Some(2)) => FillOutcome::Present,
        Ok(Some(3)) => {
            cache.fills.generations.fetch_add(1, Ordering::Relaxed);
            FillOutcome::Stored
        }
        _ => FillOutcome::Failed,
    };
    let stored = small.iter().zip(replies).map(|(set, reply)| (set.follower, outcome(reply)));
    stored.chain(large.iter().map(|set| (set.follower, FillOutcome::TooLarge))).collect()
}

/// A fill of one follower, with its keys.
fn fill_command(topology: &Topology, kind: EdgeKind, follower: Id) -> Command {
    let tag = Keys::of(topology).tag(Part::of(topology, follower));
    let mut command = Command::script(scripts::FILL, &tag);
    command.key(&watermark(&tag));
    command.key(&mark(&tag, kind, follower));
    command.key(&set(&tag, kind, follower));
    command
}

impl Cache {
    /// How long the set of a follower is kept: up to a tenth less than the setting, so that sets that were filled together do not end
    /// together.
    fn keep_for(&self, follower: Id) -> Duration {
        let number = match follower {
            Id::Integer(value) => value,
            Id::Uuid(value) => value as u64,
        };
        let keep = self.settings.keep;
        keep - keep / 1_000 * (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 57) as u32 * 100 / 128
    }
}
