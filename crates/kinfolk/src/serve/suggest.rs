//! The schedule of suggestions: a thread that computes them for all users when they are due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kinfolk_core::bulk::SuggestionRun;
use kinfolk_core::suggestions::{SuggestionRunReport, SuggestionRunRequest, SuggestionStore};
use kinfolk_core::{Clock, Error, Store, SystemClock, Timestamp};

use crate::profile::OpenStore;

/// The delay of the first computation in a store, to let the server start first.
const FIRST_AFTER: Duration = Duration::from_secs(10 * 60);
/// The delay after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// The running schedule.
pub(crate) struct Schedule {
    is_stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Schedule {
    /// Starts the thread, unless `every` is zero or the profile has no suggestions.
    pub(crate) fn start<S: OpenStore>(
        store: S,
        request: SuggestionRunRequest,
        every: Duration,
    ) -> Result<Option<Self>> {
        let Some(suggestions) = Arc::new(store.clone()).suggestions().filter(|_| !every.is_zero()) else {
            return Ok(None);
        };
        let is_stopped = Arc::new(AtomicBool::new(false));
        let runner = Runner { store, suggestions, request, every, is_stopped: Arc::clone(&is_stopped) };
        let thread = std::thread::Builder::new().name("kinfolk-suggest".to_owned());
        let thread = thread.spawn(move || runner.run()).context("no thread could be started")?;
        Ok(Some(Self { is_stopped, thread }))
    }

    /// Whether the thread has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops a running computation between two users, and waits for the thread to release the store.
    pub(crate) async fn stop(self) -> Result<()> {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let ended = tokio::task::spawn_blocking(move || self.thread.join()).await;
        if !matches!(ended, Ok(Ok(()))) {
            anyhow::bail!("the schedule of suggestions failed");
        }
        Ok(())
    }
}

struct Runner<S: Store> {
    store: S,
    suggestions: Arc<S::Suggestions>,
    request: SuggestionRunRequest,
    every: Duration,
    is_stopped: Arc<AtomicBool>,
}

impl<S: OpenStore> Runner<S> {
    fn run(&self) {
        let mut waiting = Waiting { since: Instant::now(), latest: self.store.suggestion_run() };
        // A run that a restart interrupted resumes at once.
        let mut is_due = waiting.latest.is_some_and(|run| run.finished_at.is_none());
        while !self.is_stopped() {
            if is_due {
                let computed = self.compute();
                is_due = !matches!(computed, Ok(()) | Err(Error::InUse { .. }));
                if computed.is_err() {
                    std::thread::park_timeout(RETRY_AFTER);
                }
                continue;
            }
            waiting.notice(self.store.suggestion_run());
            let left = waiting.left(self.every, SystemClock.now());
            is_due = left.is_zero();
            if !is_due {
                // A spurious wake-up is harmless.
                std::thread::park_timeout(left);
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Computes once, and logs it.
    fn compute(&self) -> kinfolk_core::Result<()> {
        let begin = Instant::now();
        tracing::info!(threads = self.request.threads, "computing suggestions for all users");
        let computed = self.suggestions.compute_suggestions(self.request, &|_, _| !self.is_stopped());
        let seconds = begin.elapsed().as_secs_f64();
        match &computed {
            Ok(SuggestionRunReport { users, suggested, resumed, complete: true }) => {
                tracing::info!(users, suggested, resumed, seconds, "computed suggestions for all users");
            }
            Ok(SuggestionRunReport { users, resumed, .. }) => {
                tracing::info!(
                    users,
                    resumed,
                    seconds,
                    "stopped computing suggestions; the next start resumes"
                );
            }
            Err(Error::InUse { .. }) => {
                tracing::info!("another run is computing suggestions already");
            }
            Err(error) => {
                let retry_after_seconds = RETRY_AFTER.as_secs();
                tracing::error!(%error, retry_after_seconds, "could not compute suggestions");
            }
        }
        computed.map(|_| ())
    }
}

/// The wait for the next computation.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// When the latest run was noticed.
    since: Instant,
    /// The latest run.
    latest: Option<SuggestionRun>,
}

impl Waiting {
    /// Notices the latest run, which a request may have started.
    fn notice(&mut self, latest: Option<SuggestionRun>) {
        if latest != self.latest {
            *self = Self { since: Instant::now(), latest };
        }
    }

    /// The remaining wait.
    fn left(&self, every: Duration, now: Timestamp) -> Duration {
        // Bounds the wait if the clock was far ahead when the latest run started.
        let at_most = every.saturating_sub(self.since.elapsed());
        match self.latest {
            None => FIRST_AFTER.min(every).saturating_sub(self.since.elapsed()),
            Some(SuggestionRun { started_at, .. }) => {
                let due = started_at.millis().saturating_add(every.as_millis() as u64);
                Duration::from_millis(due.saturating_sub(now.millis())).min(at_most)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn left(latest: Option<(u64, Option<u64>)>, every: Duration, now: u64) -> Duration {
        let at = |hour: u64| Timestamp::from_millis(hour * HOUR.as_millis() as u64);
        let latest = latest.map(|(started, finished)| SuggestionRun {
            started_at: at(started),
            finished_at: finished.map(at),
        });
        // Rounded to minutes, because the test takes some time.
        let left = Waiting { since: Instant::now(), latest }.left(every, at(now));
        Duration::from_secs(left.as_secs().div_ceil(60) * 60)
    }

    #[test]
    fn a_schedule_whose_thread_dies_has_failed() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || receiver.recv().expect("no message ever comes"));
        let schedule = Schedule { is_stopped: Arc::default(), thread };
        assert!(!schedule.has_failed());
        drop(sender);
        let deadline = Instant::now() + Duration::from_secs(60);
        while !schedule.has_failed() {
            assert!(Instant::now() < deadline, "it still runs");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_run_is_due_after_the_interval() {
        assert_eq!(left(Some((10, Some(11))), 12 * HOUR, 13), 9 * HOUR);
        assert_eq!(left(Some((10, Some(11))), 12 * HOUR, 22), Duration::ZERO);
        assert_eq!(left(Some((10, Some(11))), 12 * HOUR, 99), Duration::ZERO);
        assert_eq!(left(Some((10, None)), 12 * HOUR, 13), 9 * HOUR, "it was stopped");
    }

    #[test]
    fn the_first_run_waits_for_the_start() {
        assert_eq!(left(None, 12 * HOUR, 5), FIRST_AFTER);
        assert_eq!(left(None, FIRST_AFTER / 2, 5), FIRST_AFTER / 2);
    }

    #[test]
    fn a_clock_that_was_ahead_does_not_delay_runs_forever() {
        assert_eq!(left(Some((10_000, Some(10_001))), 12 * HOUR, 5), 12 * HOUR);
    }
}
