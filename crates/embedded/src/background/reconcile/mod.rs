//! Compares lists, index, posts and comments with the truth, a few rows a second, all the time, and repairs what has differed
//! for 30 seconds. Writes go on meanwhile, so a difference counts only if it is still there after that time.
//!
//! It goes round and round: all pairs, all rows of both lists, all users of the index, all posts, all comments. A whole round
//! takes as long as the setting makes it take; `verify` does the same at once. What can't be read is counted and passed over:
//! the rest is compared all the same.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc as std_mpsc};
use std::time::{Duration, Instant};

use kinfolk_core::Result;
use tokio::sync::mpsc;

use crate::bulk::verify::{self, Settled};
use crate::engine::store::Store;
use crate::engine::writer::Command;
use crate::projection::{Difference, Findings, Projection, Reconcile, Recount, TOGETHER, Unreadable};

/// How long something must differ before it is repaired.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many differences are held at a time.
const SUSPECTS_MAX: usize = 10_000;
/// Counting is so much cheaper than comparing.
const COUNTED_PER_COMPARED: usize = 16;

/// Counts that are counted again, as the writer has begun them.
enum Recounting {
    Idle,
    Begun(std_mpsc::Receiver<Vec<Recount>>),
    /// All before an index are counted to the end.
    Counting(Vec<Recount>, usize),
}

/// What the writer is to do.
#[derive(Default)]
struct Work {
    /// Look at these again, and repair them.
    overdue: Vec<Difference>,
    /// Correct these.
    counted: Vec<Recount>,
}

/// Something that has seemed to differ. Counts come last: what they count is then repaired.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SuspectKey {
    is_count: bool,
    description: String,
}

struct Suspect {
    difference: Difference,
    since: Instant,
}

/// Goes through all projections, again and again.
pub(crate) struct Reconciler {
    store: Arc<Store>,
    rows_per_step: usize,
    projections: Vec<Box<dyn Reconcile>>,
    /// The one that it is at.
    at: usize,
    /// How often it has been through all of them.
    rounds: u64,
    suspects: BTreeMap<SuspectKey, Suspect>,
    recounting: Recounting,
    unreadable: Option<Unreadable>,
}

impl Reconciler {
    /// Begins with the first row of the first projection.
    pub(crate) fn new(store: Arc<Store>, rows_per_step: usize) -> Self {
        Self {
            projections: store.projections.all().filter_map(Projection::reconcile).collect(),
            store,
            rows_per_step,
            at: 0,
            rounds: 0,
            suspects: BTreeMap::new(),
            recounting: Recounting::Idle,
            unreadable: None,
        }
    }

    /// Compares some rows, and has repaired what has differed for long enough. Never waits for the writer, which may be waiting
    /// for this thread to merge files.
    pub(crate) fn step(&mut self, now: Instant, commands: &mpsc::WeakSender<Command>) {
        if self.rows_per_step == 0 {
            return;
        }
        let Work { overdue, counted } = self.work(now);
        let Some(commands) = commands.upgrade() else { return };
        // A full queue means a busy writer: what differs will be met again.
        if !counted.is_empty() {
            let correct = move |store: &Store| log(verify::correct(store, &counted));
            let _ = commands.try_send(Command::Run(Box::new(move |writer| correct(&writer.store))));
        }
        if !overdue.is_empty() {
            let (begun, recounts) = std_mpsc::channel();
            let repair = Command::Run(Box::new(move |writer| {
                // It has perhaps ended meanwhile, and the whole process with it.
                let _ = begun.send(repair(&writer.store, &overdue));
            }));
            if commands.try_send(repair).is_ok() && matches!(self.recounting, Recounting::Idle) {
                self.recounting = Recounting::Begun(recounts);
            }
        }
    }

    fn work(&mut self, now: Instant) -> Work {
        self.compare_some(now);
        let counted = self.count_some();
        let work = Work { overdue: self.overdue(now), counted };
        if let Some(Unreadable { times, first }) = self.unreadable.take() {
            self.store.counters.unreadable(times);
            tracing::error!(
                times,
                error = %first,
                "rows could not be read and were not compared with the truth; restore from a backup"
            );
        }
        work
    }

    fn compare_some(&mut self, now: Instant) {
        let mut findings = Findings::new(self.rows_per_step, self.store.newest_time());
        if self.projections[self.at].step(&mut findings) {
            self.at = (self.at + 1) % self.projections.len();
            self.rounds += u64::from(self.at == 0);
        }
        self.store.counters.reconciled(findings.rows);
        self.unreadable = findings.unreadable;
        findings.suspected.into_iter().for_each(|difference| self.suspect(difference, now));
    }

    fn suspect(&mut self, difference: Difference, since: Instant) {
        if self.suspects.len() < SUSPECTS_MAX {
            let key =
                SuspectKey { is_count: difference.count().is_some(), description: difference.to_string() };
            self.suspects.entry(key).or_insert(Suspect { difference, since });
        }
    }

    /// What has differed for long enough and does so now. Counts come last, and only while no others are counted again: what they
    /// count is then repaired.
    fn overdue(&mut self, now: Instant) -> Vec<Difference> {
        let is_idle = matches!(self.recounting, Recounting::Idle);
        let due = self.suspects.iter().filter(|(key, suspect)| {
            now.duration_since(suspect.since) >= PATIENCE && (is_idle || !key.is_count)
        });
        let due: Vec<SuspectKey> = due.map(|(key, _)| key.clone()).take(TOGETHER).collect();
        let mut overdue = Vec::new();
        for key in due {
            let Some(Suspect { difference, .. }) = self.suspects.remove(&key) else { continue };
            if key.is_count {
                overdue.push(difference);
            } else {
                let rechecked = difference.recheck(self.store.newest_time());
                overdue.extend(Unreadable::unless_read(&mut self.unreadable, rechecked).flatten());
            }
        }
        overdue
    }

    /// Counts some rows again; returns what is counted to the end.
    fn count_some(&mut self) -> Vec<Recount> {
        if let Recounting::Begun(recounts) = &self.recounting {
            self.recounting = match recounts.try_recv() {
                Ok(recounts) => Recounting::Counting(recounts, 0),
                Err(std_mpsc::TryRecvError::Empty) => return Vec::new(),
                Err(std_mpsc::TryRecvError::Disconnected) => Recounting::Idle,
            };
        }
        let Recounting::Counting(mut recounts, mut at) =
            std::mem::replace(&mut self.recounting, Recounting::Idle)
        else {
            return Vec::new();
        };
        let mut left = self.rows_per_step.saturating_mul(COUNTED_PER_COMPARED);
        while left > 0
            && let Some(recount) = recounts.get_mut(at)
        {
            let counted = recount.count(left);
            match Unreadable::unless_read(&mut self.unreadable, counted) {
                Some(counted) if counted == left => left = 0,
                Some(counted) => (left, at) = (left - counted, at + 1),
                // What can't be counted is not corrected.
                None => drop(recounts.remove(at)),
            }
        }
        if at < recounts.len() {
            self.recounting = Recounting::Counting(recounts, at);
            return Vec::new();
        }
        recounts.retain(|recount| recount.difference().is_some());
        recounts
    }
}

/// Repairs what really differs, and begins to count what may be counted wrongly. Runs on the writer's thread, between two
/// batches.
fn repair(store: &Store, differences: &[Difference]) -> Vec<Recount> {
    match verify::settle(store, differences, true) {
        Ok(Settled { real, recounts }) => {
            if !real.is_empty() {
                log(Ok(real.len()));
                store.snapshotting.wake();
            }
            recounts
        }
        Err(error) => {
            log(Err(error));
            Vec::new()
        }
    }
}

/// Says what was repaired, or why it could not be.
fn log(repaired: Result<usize>) {
    match repaired {
        Ok(0) => {}
        Ok(repaired) => {
            tracing::warn!(repaired, "projections differed from the truth and were repaired");
        }
        Err(error) => tracing::error!(%error, "a difference could not be repaired"),
    }
}

#[cfg(test)]
mod tests;
