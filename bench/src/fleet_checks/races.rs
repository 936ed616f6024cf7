//! Checks that race with writes and with lost keys: pairs are toggled, the same pairs are checked, and keys are deleted from the cache at
//! random, as eviction does. Counts the answers that no state of the last two seconds allows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use tokio::time::{MissedTickBehavior, interval};

use super::graph::{Expected, Graph};
use super::memory::text;
use super::store::Store;
use crate::client::Client;
use crate::random::Random;

/// How old an answer may be.
const STALENESS_MAX: Duration = Duration::from_secs(2);

/// Followers whose pairs are toggled, and pairs of each: half of them edges of the graph.
const FOLLOWERS: usize = 500;
const PAIRS_EACH: usize = 4;

/// Each pair is toggled once in this time, longer than an answer may be old.
const TOGGLE_EVERY: Duration = Duration::from_secs(5);

/// Workers that write, each its own pairs, and workers that check.
pub const WRITERS: usize = 16;
pub const READERS: usize = 16;

/// Keys that are deleted in a second.
const DELETED_PER_SECOND: u32 = 100;

/// When a write began and when it was acknowledged, from the start of the run on, and the state that it left.
#[derive(Clone, Copy, Debug)]
struct Written {
    began: Duration,
    acknowledged: Duration,
    exists: bool,
}

/// A check and its answer.
#[derive(Clone, Copy, Debug)]
struct Seen {
    pair: usize,
    began: Duration,
    ended: Duration,
    exists: bool,
}

/// The states of a pair. It has one writer, so that its writes follow one another.
#[derive(Clone, Debug)]
struct History {
    at_first: bool,
    writes: Vec<Written>,
}

impl History {
    /// Whether the pair can have been in the state that was seen, at some moment from two seconds before the check to its end. A write
    /// takes effect at some moment from its beginning to its acknowledgement.
    fn allows(&self, seen: &Seen) -> bool {
        let from = seen.began.saturating_sub(STALENESS_MAX);
        let states = std::iter::once((Duration::ZERO, self.at_first))
            .chain(self.writes.iter().map(|write| (write.began, write.exists)));
        let ends = self.writes.iter().map(|write| write.acknowledged).chain([Duration::MAX]);
        states
            .zip(ends)
            .any(|((began, exists), ended)| exists == seen.exists && began <= seen.ended && ended >= from)
    }
}

/// What a run found.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub checks: u64,
    pub wrong: u64,
    pub writes: u64,
    pub deleted: u64,
    pub per_second: f64,
}

/// The pairs of a run, in a random order. The first ones of each writer are different followers'.
pub fn pairs(graph: &Graph, random: &mut Random) -> Arc<[Expected]> {
    let mut followers: Vec<u64> =
        graph.followers.iter().copied().filter(|&user| graph.following(user).len() >= PAIRS_EACH).collect();
    random.shuffle(&mut followers);
    let mut pairs = Vec::new();
    for &follower in followers.iter().take(FOLLOWERS) {
        let mut followees = graph.following(follower).to_vec();
        random.shuffle(&mut followees);
        for followee in followees.into_iter().take(PAIRS_EACH / 2) {
            pairs.push(Expected { pair: crate::survey::Pair { follower, followee }, exists: true });
        }
        let before = pairs.len();
        while pairs.len() < before + PAIRS_EACH / 2 {
            let absent = Expected { pair: graph.absent_of(follower, random), exists: false };
            if !pairs[before..].contains(&absent) {
                pairs.push(absent);
            }
        }
    }
    random.shuffle(&mut pairs);
    pairs.into()
}

/// Runs writers and readers for a time while keys are deleted on some nodes; then brings every pair back to its first state.
pub async fn run<S: Store>(
    workers: Vec<S>,
    pairs: &Arc<[Expected]>,
    nodes: Vec<Client>,
    time: Duration,
) -> Result<Outcome> {
    let began = Instant::now();
    let deleter = Deleter::start(nodes);
    let mut workers = workers.into_iter();
    let writers: Vec<_> = (0..WRITERS)
        .zip(workers.by_ref())
        .map(|(number, store)| tokio::spawn(write_for(store, number, Arc::clone(pairs), began, time)))
        .collect();
    let readers: Vec<_> = (0..READERS)
        .zip(workers)
        .map(|(number, store)| tokio::spawn(read_for(store, number as u64, Arc::clone(pairs), began, time)))
        .collect();
    let mut seen = Vec::new();
    for reader in readers {
        seen.extend(reader.await??);
    }
    let elapsed = began.elapsed();
    let at_first = |check: &Expected| History { at_first: check.exists, writes: Vec::new() };
    let mut histories: Vec<History> = pairs.iter().map(at_first).collect();
    for writer in writers {
        for (pair, write) in writer.await?? {
            histories[pair].writes.push(write);
        }
    }
    Ok(Outcome {
        checks: seen.len() as u64,
        wrong: seen.iter().filter(|seen| !histories[seen.pair].allows(seen)).count() as u64,
        writes: histories.iter().map(|history| history.writes.len() as u64).sum(),
        deleted: deleter.stop()?,
        per_second: seen.len() as f64 / elapsed.as_secs_f64(),
    })
}

/// Toggles the pairs of one writer in turn.
async fn write_for<S: Store>(
    mut store: S,
    number: usize,
    pairs: Arc<[Expected]>,
    began: Instant,
    time: Duration,
) -> Result<Vec<(usize, Written)>> {
    let own: Vec<usize> = (number..pairs.len()).step_by(WRITERS).collect();
    let mut states: Vec<bool> = own.iter().map(|&pair| pairs[pair].exists).collect();
    let mut writes = Vec::new();
    let mut ticks = interval(TOGGLE_EVERY / own.len().max(1) as u32);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for at in (0..own.len()).cycle() {
        ticks.tick().await;
        if began.elapsed() >= time {
            break;
        }
        states[at] = !states[at];
        let begun = began.elapsed();
        store.write(pairs[own[at]].pair, states[at]).await?;
        let written = Written { began: begun, acknowledged: began.elapsed(), exists: states[at] };
        writes.push((own[at], written));
    }
    for (&pair, state) in own.iter().zip(states) {
        let Expected { pair, exists } = pairs[pair];
        if state != exists {
            store.write(pair, exists).await?;
        }
    }
    Ok(writes)
}

/// Checks pairs at random, one at a time.
async fn read_for<S: Store>(
    mut store: S,
    seed: u64,
    pairs: Arc<[Expected]>,
    began: Instant,
    time: Duration,
) -> Result<Vec<Seen>> {
    let (mut random, mut seen) = (Random::new(seed), Vec::new());
    loop {
        let pair = random.below(pairs.len() as u64) as usize;
        let begun = began.elapsed();
        if begun >= time {
            return Ok(seen);
        }
        let exists = store.check(pairs[pair].pair).await?;
        seen.push(Seen { pair, began: begun, ended: began.elapsed(), exists });
    }
}

/// Deletes random keys of some nodes until it is stopped.
struct Deleter {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64>>,
}

impl Deleter {
    fn start(mut nodes: Vec<Client>) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut deleted = 0;
            let count = nodes.len();
            for number in 0.. {
                if until.load(Ordering::Relaxed) {
                    break;
                }
                let node = &mut nodes[number % count];
                if let Some(key) = text(node.command("RANDOMKEY")?) {
                    node.command(&format!("DEL {key}"))?;
                    deleted += 1;
                }
                thread::sleep(Duration::from_secs(1) / DELETED_PER_SECOND);
            }
            Ok(deleted)
        });
        Self { is_over, thread }
    }

    fn stop(self) -> Result<u64> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("deleting keys panicked"))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_answer_may_be_two_seconds_old_and_no_older() {
        let write = |began, acknowledged, exists| Written {
            began: at(began),
            acknowledged: at(acknowledged),
            exists,
        };
        let history = History { at_first: false, writes: vec![write(10, 11, true), write(20, 20, false)] };
        let allows = |began, ended, exists| {
            history.allows(&Seen { pair: 0, began: at(began), ended: at(ended), exists })
        };
        assert!(allows(5, 6, false) && !allows(5, 6, true), "before the first write");
        assert!(allows(5, 10, true), "the write may have taken effect when it began");
        assert!(allows(13, 14, false), "acknowledged two seconds ago");
        assert!(!allows(14, 15, false), "acknowledged three seconds ago");
        assert!(allows(14, 15, true) && allows(22, 23, true) && !allows(23, 24, true));
        assert!(allows(15, 20, false), "a later write that has begun");
    }
}
