//! Brings the changes to the cache, as they are brought to the follower sides of the hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::changes::ChangeBody;
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Epoch, Frontier, Id, Sequence, Shard};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::fills::WATERMARK_KEEP;
use super::keys::{Keys, Part, mark, member, set, watermark};
use super::{Cache, scripts};
use crate::Fleet;
use crate::background::Background;
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::log::LoggedChange;
use crate::postgres::Failure;
use crate::project::{Applied, ChangeSource, Pace, SourceBatch, Target, TargetLoop};
use crate::redis::Command;

/// The watermarks are read so often: other processes move them, too, and a node may have lost some.
const LOOK_EVERY: Duration = Duration::from_millis(400);

/// How long a node may take.
const ANSWER_MAX: Duration = Duration::from_millis(500);

/// A tag that is further behind is given up: reading its sets again costs less.
pub(super) const BEHIND_MAX: u64 = 200_000;

/// What follows on a tag is missing for so long: its log does not have it any more.
const GAP_MAX: Duration = Duration::from_secs(3);

/// Feeds the cache while it is kept. Any number of processes may do so at once.
pub struct CacheFeed {
    _task: Background,
}

impl CacheFeed {
    /// Starts to bring what a source brings to the cache, if the fleet has one.
    pub fn start<S: ChangeSource>(fleet: &Fleet, source: &Arc<S>) -> Self {
        let (shared, source) = (Arc::clone(&fleet.shared), Arc::clone(source));
        let feed = move || {
            let (shared, source) = (Arc::clone(&shared), Arc::clone(&source));
            async move {
                if shared.cache.is_some() {
                    let target = CacheTarget { shared: Arc::clone(&shared), state: Mutex::default() };
                    TargetLoop::new(shared, target).run(&*source).await;
                }
            }
        };
        Self { _task: Background::start(fleet.handle(), "feed of the cache", feed) }
    }

    /// Lets it run until the store is dropped.
    pub fn detach(self) {
        self._task.detach();
    }
}

/// All tags of the deployment.
struct CacheTarget {
    shared: Arc<Shared>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    epoch: Option<Epoch>,
    /// How far every tag of a shard is that is there, as far as this process knows.
    marks: BTreeMap<Shard, Sequence>,
    /// The parts of shards that have a watermark. One that comes later is found by the next look.
    present: BTreeSet<Part>,
    looked_at: Option<Instant>,
    /// Shards whose next changes are missing: after which one, and since when.
    gaps: BTreeMap<Shard, (Sequence, Instant)>,
}

/// The changes of one shard that are sent together.
struct Step {
    shard: Shard,
    from: Sequence,
    to: Sequence,
    changes: Vec<Changed>,
    /// Whether one of them does not say which edges it has changed.
    is_unknown: bool,
}

struct Changed {
    part: Part,
    kind: EdgeKind,
    edge: Edge,
    sequence: Sequence,
    exists: bool,
}

impl Target for CacheTarget {
    const PACE: Pace = Pace {
        idle: Duration::from_millis(50),
        busy: Duration::from_millis(20),
        hears_of_writes: false,
        sweep: None,
    };

    /// Apart from every host.
    fn number(&self) -> usize {
        usize::MAX
    }

    async fn marks(&self, topology: &Topology) -> Result<Frontier, Failure> {
        let is_known = {
            let state = self.state.lock();
            state.epoch == Some(topology.epoch) && state.looked_at.is_some_and(|at| at.elapsed() < LOOK_EVERY)
        };
        if !is_known {
            self.look(topology).await;
        }
        Ok(self.state.lock().marks.iter().map(|(shard, mark)| mark.on(*shard)).collect())
    }

    async fn apply(&self, topology: &Topology, batches: Vec<SourceBatch>) -> Result<Applied, Failure> {
        let mut applied = Applied::default();
        let steps: Vec<Step> = batches
            .into_iter()
            .filter(|batch| batch.epoch == topology.epoch)
            .filter_map(|batch| self.step(topology, batch, &mut applied))
            .collect();
        let keys = Keys::of(topology);
        let parts: Vec<Vec<Part>> = {
            let state = self.state.lock();
            let present =
                |step: &Step| Part::all(step.shard).filter(|part| state.present.contains(part)).collect();
            steps.iter().map(present).collect()
        };
        let of_step = |(step, parts): (&Step, &Vec<Part>)| -> Vec<Command> {
            parts.iter().map(|&part| part_command(&keys.tag(part), step, part)).collect()
        };
        let commands: Vec<Command> = steps.iter().zip(&parts).flat_map(of_step).collect();
        let replies = self.cache().cluster.call(&commands, ANSWER_MAX).await;
        let mut replies = replies.into_iter();
        for (step, parts) in steps.iter().zip(&parts) {
            // A tag that can't be reached is left behind: the next look finds it where it is.
            let own = replies.by_ref().take(parts.len());
            let reached = own.filter_map(|reply| u64::try_from(reply.ok()?.integer()?).ok());
            let lowest = reached.fold(step.to.0, u64::min);
            let reached = if step.is_unknown { step.to } else { Sequence(lowest) };
            if step.is_unknown {
                self.cache().feed.give_up(parts.len() as u64);
            }
            self.state.lock().marks.insert(step.shard, reached);
            applied.changes += reached.0.saturating_sub(step.from.0) as usize;
        }
        Ok(applied)
    }
}

impl CacheTarget {
    fn cache(&self) -> &Cache {
        self.shared.cache.as_ref().expect("there is a feed only where there is a cache")
    }

    /// What follows on the mark of a shard.
    fn step(&self, topology: &Topology, mut batch: SourceBatch, applied: &mut Applied) -> Option<Step> {
        let shard = batch.source;
        let from = *self.state.lock().marks.get(&shard)?;
        batch.changes.sort_by_key(|logged| logged.change.position.sequence);
        let mut step = Step { shard, from, to: from, changes: Vec::new(), is_unknown: false };
        for LoggedChange { change, .. } in &batch.changes {
            let sequence = change.position.sequence;
            if sequence <= step.to {
                continue;
            }
            if sequence != step.to.next() {
                applied.gaps.push(shard);
                break;
            }
            step.to = sequence;
            let (kind, edge, exists) = match change.body {
                ChangeBody::Followed { kind, edge } => (kind, edge, true),
                ChangeBody::Unfollowed { kind, edge, .. } => (kind, edge, false),
                _ => {
                    step.is_unknown = true;
                    continue;
                }
            };
            let part = Part::of(topology, edge.follower);
            step.changes.push(Changed { part, kind, edge, sequence, exists });
        }
        let mut state = self.state.lock();
        if step.to > from {
            state.gaps.remove(&shard);
            return Some(step);
        }
        if !applied.gaps.contains(&shard) {
            return None;
        }
        let known = *state.gaps.entry(shard).or_insert_with(|| (from, Instant::now()));
        if known.0 != from {
            state.gaps.insert(shard, (from, Instant::now()));
        } else if known.1.elapsed() > GAP_MAX && self.shared.staleness.recent(topology.epoch, shard).is_some()
        {
            // Its host answers, and its log does not have it.
            state.gaps.remove(&shard);
            let mut later = batch.changes.iter().map(|logged| logged.change.position.sequence);
            let to = later.find(|&sequence| sequence > from).unwrap_or(from);
            return Some(Step { to, is_unknown: true, ..step });
        }
        None
    }

    /// Reads the watermarks of all tags. Those of nodes that do not answer stay as they are known.
    async fn look(&self, topology: &Topology) {
        let keys = Keys::of(topology);
        let parts: Vec<Part> = topology.shards().flat_map(Part::all).collect();
        let command = |part: &Part| {
            let tag = keys.tag(*part);
            let mut command = Command::named("HGET", &tag);
            command.key(&watermark(&tag));
            command.argument("sequence");
            command
        };
        let commands: Vec<Command> = parts.iter().map(command).collect();
        let replies = self.cache().cluster.call(&commands, ANSWER_MAX).await;
        let (mut lowest, mut present) = (BTreeMap::<Shard, Sequence>::new(), BTreeSet::new());
        let mut given_up = Vec::new();
        let newest = self.shared.staleness.newest(topology.epoch);
        let mut unknown = 0;
        for (part, reply) in parts.iter().zip(replies) {
            let Ok(reply) = reply else {
                // It may be there: what is sent to it is lost, or is not.
                present.insert(*part);
                unknown += 1;
                continue;
            };
            let Some(reached) = reply.integer().and_then(|reached| u64::try_from(reached).ok()) else {
                continue;
            };
            let behind = newest.get(part.shard).map_or(0, |newest| newest.0.saturating_sub(reached));
            if behind > BEHIND_MAX {
                given_up.push(forget(&keys.tag(*part), reached));
                continue;
            }
            present.insert(*part);
            let lowest = lowest.entry(part.shard).or_insert(Sequence(reached));
            *lowest = Sequence(reached).min(*lowest);
        }
        if !given_up.is_empty() {
            tracing::info!(tags = given_up.len(), "tags of the cache are too far behind, and are given up");
            self.cache().feed.give_up(given_up.len() as u64);
            _ = self.cache().cluster.call(&given_up, ANSWER_MAX).await;
        }
        self.cache().feed.note(&lowest, &newest, unknown);
        let mut state = self.state.lock();
        if state.epoch != Some(topology.epoch) {
            *state = State { epoch: Some(topology.epoch), ..State::default() };
        }
        state.looked_at = Some(Instant::now());
        state.present = present;
        for shard in topology.shards() {
            // Where there is nothing, nothing has to be brought: from the newest change on.
            let mark = lowest.get(&shard).copied().or_else(|| newest.get(shard));
            if let Some(mark) = mark {
                state.marks.insert(shard, mark);
            }
        }
    }
}

/// Removes the watermark of a tag that is where it was seen.
fn forget(tag: &str, seen: u64) -> Command {
    let mut command = Command::script(scripts::FORGET, tag);
    command.key(&watermark(tag));
    command.number(seen);
    command
}

/// What a step changes in a part of its shard.
fn part_command(tag: &str, step: &Step, part: Part) -> Command {
    if step.is_unknown {
        let mut command = Command::named("DEL", tag);
        command.key(&watermark(tag));
        return command;
    }
    let changes: Vec<&Changed> = step.changes.iter().filter(|changed| changed.part == part).collect();
    let mut followers: Vec<(EdgeKind, Id)> =
        changes.iter().map(|changed| (changed.kind, changed.edge.follower)).collect();
    followers.sort_unstable();
    followers.dedup();
    let mut command = Command::script(scripts::APPLY, tag);
    command.key(&watermark(tag));
    for &(kind, follower) in &followers {
        command.key(&mark(tag, kind, follower));
        command.key(&set(tag, kind, follower));
    }
    command.number(step.from.0);
    command.number(step.to.0);
    command.number(WATERMARK_KEEP.as_millis() as u64);
    for changed in changes {
        let place = followers.binary_search(&(changed.kind, changed.edge.follower));
        command.number(place.expect("its follower is among them") as u64 + 1);
        command.number(changed.sequence.0);
        command.argument(if changed.exists { "+" } else { "-" });
        command.argument(member(changed.edge.followee));
    }
    command
}
