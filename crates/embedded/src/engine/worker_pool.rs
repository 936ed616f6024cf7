//! Threads for work in a request that takes longer than a protocol's thread may wait: walks, large overlaps, feeds.
//!
//! There are as many as the machine has cores, and each does one job at a time: requests that come meanwhile wait in
//! order, without a thread. Of the requests about one user only one is in that line, so that many requests for
//! one does not keep others waiting. The threads run at a low priority, so that checks and writes come first.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use foldhash::fast::RandomState;
use kinfolk_core::{Error, Id, Result};
use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::edges::index::Scratch;
use crate::runtime::health::Health;
use crate::runtime::signal;
use crate::stats::Stats;

/// How many callers may wait for their turn.
const WAITING_MAX: u64 = 1_024;
/// When to try again, where more do.
const RETRY_AFTER: Duration = Duration::from_secs(1);

type Job = Box<dyn FnOnce(&mut Scratch) + Send>;

/// The threads, and what they are to do.
pub(crate) struct WorkerPool {
    /// As many as there are threads: so many jobs are under way.
    turns: Arc<Semaphore>,
    threads: usize,
    /// For each user that somebody asks about, one slot in the line.
    slots: Mutex<HashMap<Id, Arc<Semaphore>, RandomState>>,
    jobs: Mutex<Jobs>,
    added: Condvar,
    counters: Counters,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    stopping: bool,
}

/// What was done.
#[derive(Debug, Default)]
struct Counters {
    waiting: AtomicU64,
    done: AtomicU64,
    given_up: AtomicU64,
}

impl WorkerPool {
    /// WorkerPool without their threads.
    pub(crate) fn new() -> Arc<Self> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Arc::new(Self {
            turns: Arc::new(Semaphore::new(threads)),
            threads,
            slots: Mutex::default(),
            jobs: Mutex::default(),
            added: Condvar::new(),
            counters: Counters::default(),
        })
    }

    /// Starts the threads.
    pub(crate) fn start(self: &Arc<Self>, health: &Arc<Health>) -> Result<Vec<JoinHandle<()>>> {
        let start = |_| {
            let pool = Arc::clone(self);
            health.spawn("kinfolk-worker", move || pool.work())
        };
        (0..self.threads).map(start).collect()
    }

    /// Ends the threads once they have done what they are at.
    pub(crate) fn stop(&self) {
        self.turns.close();
        let mut jobs = self.jobs.lock();
        jobs.stopping = true;
        jobs.waiting.clear();
        self.added.notify_all();
    }

    /// Adds the state of the pool.
    pub(crate) fn stats(&self, stats: Stats) -> Stats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            walks_running: (self.threads - self.turns.available_permits().min(self.threads)) as u64,
            walks_waiting: of(&self.counters.waiting),
            walks: of(&self.counters.done),
            walks_given_up: of(&self.counters.given_up),
            ..stats
        }
    }

    /// Runs a job about a user on a thread of the pool. The job can ask whether its caller has gone.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        about: Id,
        work: impl FnOnce(&mut Scratch, &dyn Fn() -> bool) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let waiting = Waiting::new(self)?;
        let _slot = self.slot(about).await?;
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| Error::Closed)?;
        drop(waiting);
        let (reply, result) = oneshot::channel();
        let pool = Arc::clone(self);
        let job = move |scratch: &mut Scratch| {
            let outcome = work(scratch, &|| reply.is_closed());
            // Before the reply: its caller may read the statistics.
            drop(turn);
            let counters = &pool.counters;
            counters.done.fetch_add(1, Ordering::Relaxed);
            if reply.send(outcome).is_err() {
                counters.given_up.fetch_add(1, Ordering::Relaxed);
            }
        };
        self.add(Box::new(job));
        result.await.map_err(|_| Error::Closed)?
    }

    /// Waits until nobody else who asks about a user is in the line.
    async fn slot(&self, about: Id) -> Result<QueueSlot<'_>> {
        let slot = Arc::clone(self.slots.lock().entry(about).or_insert_with(|| Arc::new(Semaphore::new(1))));
        // Also one that stops waiting leaves nothing behind.
        let mut slot = QueueSlot { pool: self, about, slot, taken: None };
        slot.taken = Some(Arc::clone(&slot.slot).acquire_owned().await.map_err(|_| Error::Closed)?);
        Ok(slot)
    }

    /// Hands a job to a thread; where the threads are about to end it is dropped, which its caller notices.
    fn add(&self, job: Job) {
        let mut jobs = self.jobs.lock();
        if !jobs.stopping {
            jobs.waiting.push_back(job);
            self.added.notify_one();
        }
    }

    fn work(&self) {
        signal::lower_priority();
        let mut scratch = Scratch::default();
        loop {
            let mut jobs = self.jobs.lock();
            while jobs.waiting.is_empty() && !jobs.stopping {
                self.added.wait(&mut jobs);
            }
            let Some(job) = jobs.waiting.pop_front() else { return };
            drop(jobs);
            // A job that panics takes neither its thread with it nor what it has left half-done.
            if std::panic::catch_unwind(AssertUnwindSafe(|| job(&mut scratch))).is_err() {
                scratch = Scratch::default();
            }
        }
    }
}

/// A slot in the line, taken or waited for.
struct QueueSlot<'a> {
    pool: &'a WorkerPool,
    about: Id,
    slot: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.taken = None;
        let mut slots = self.pool.slots.lock();
        // One for the map and one for this: nobody else waits for it.
        if Arc::strong_count(&self.slot) == 2 {
            slots.remove(&self.about);
        }
    }
}

/// Counts a caller as long as it waits for its turn, also one that stops waiting.
struct Waiting<'a>(&'a WorkerPool);

impl<'a> Waiting<'a> {
    fn new(pool: &'a WorkerPool) -> Result<Self> {
        let before = pool.counters.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting = Self(pool);
        if before < WAITING_MAX { Ok(waiting) } else { Err(Error::Overloaded { retry_after: RETRY_AFTER }) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.counters.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use kinfolk_conformance::block_on;

    use super::*;

    const ABOUT: Id = Id::Integer(1);

    #[test]
    fn of_those_who_ask_about_one_user_one_is_in_the_line() {
        let pool = WorkerPool::new();
        let waker = std::task::Waker::noop();
        let mut context = std::task::Context::from_waker(waker);
        let ask = |about| {
            let pool = Arc::clone(&pool);
            Box::pin(async move { pool.run(Id::Integer(about), move |_, _| Ok(about)).await })
        };
        // No thread runs yet: each takes its slot, and the first of a user the turn.
        let mut calls: Vec<_> = [1, 1, 1, 2].map(ask).into();
        for call in &mut calls {
            assert!(call.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(pool.jobs.lock().waiting.len(), 2.min(pool.threads));
        drop(calls);
        assert!(pool.slots.lock().is_empty());
        assert_eq!(pool.stats(Stats::default()).walks_waiting, 0);
    }

    #[test]
    fn work_is_done_elsewhere_and_answered() {
        let pool = WorkerPool::new();
        let threads = pool.start(&Arc::default()).unwrap();
        let name =
            block_on(pool.run(ABOUT, |_, _| Ok(std::thread::current().name().map(str::to_owned)))).unwrap();
        assert_eq!(name.as_deref(), Some("kinfolk-worker"));
        pool.stop();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(matches!(block_on(pool.run(ABOUT, |_, _| Ok(()))), Err(Error::Closed)));
        let stats = pool.stats(Stats::default());
        assert_eq!((stats.walks, stats.walks_waiting), (1, 0));
    }

    #[test]
    fn work_sees_that_its_caller_has_gone() {
        let pool = WorkerPool::new();
        let threads = pool.start(&Arc::default()).unwrap();
        let (started, has_started) = mpsc::channel();
        let (seen, was_seen) = mpsc::channel();
        let mut call = Box::pin(pool.run(ABOUT, move |_, is_given_up| {
            started.send(()).unwrap();
            while !is_given_up() {
                std::thread::yield_now();
            }
            seen.send(()).unwrap();
            Ok(())
        }));
        let waker = std::task::Waker::noop();
        assert!(call.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
        has_started.recv().unwrap();
        drop(call);
        was_seen.recv().unwrap();
        pool.stop();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(pool.stats(Stats::default()).walks_given_up, 1);
    }
}
