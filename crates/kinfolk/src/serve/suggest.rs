//! The schedule of suggestions: a thread that has them computed for everyone when that is due. How they are computed
//! is the store's business.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kinfolk_core::bulk::SuggestionRun;
use kinfolk_core::suggestions::{SuggestionRunReport, SuggestionRunRequest, SuggestionStore};
use kinfolk_core::{Clock, Error, Store, SystemClock, Timestamp};

use crate::profile::OpenStore;

/// A store that has no suggestions yet gets them so long after the start: what a restart interrupts comes first.
const FIRST_AFTER: Duration = Duration::from_secs(10 * 60);
/// After a failure it is tried again so much later.
const AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The running schedule.
pub struct Schedule {
    is_stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Schedule {
    /// Starts the thread, unless suggestions are never to be computed: `every` is zero, or the profile has none.
    pub fn start<S: OpenStore>(
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

    /// Whether the thread has ended by itself: it has failed.
    pub fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops what is being computed between two users, and waits for the thread to let the store go.
    pub async fn stop(self) -> Result<()> {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let ended = tokio::task::spawn_blocking(move || self.thread.join()).await;
        if !matches!(ended, Ok(Ok(()))) {
            anyhow::bail!("the schedule of suggestions ended badly");
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
        let mut waiting = Waiting { since: Instant::now(), newest: self.store.suggestion_run() };
        // What a restart has interrupted goes on at once.
        let mut is_due = waiting.newest.is_some_and(|run| run.finished_at.is_none());
        while !self.is_stopped() {
            if is_due {
                let computed = self.compute();
                is_due = !matches!(computed, Ok(()) | Err(Error::InUse { .. }));
                if computed.is_err() {
                    std::thread::park_timeout(AGAIN_AFTER);
                }
                continue;
            }
            waiting.look(self.store.suggestion_run());
            let left = waiting.left(self.every, SystemClock.now());
            is_due = left.is_zero();
            if !is_due {
                // A wake-up for no reason only makes it look again.
                std::thread::park_timeout(left);
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Computes once, and says so.
    fn compute(&self) -> kinfolk_core::Result<()> {
        let begin = Instant::now();
        tracing::info!(threads = self.request.threads, "computing suggestions for everyone");
        let computed = self.suggestions.compute_suggestions(self.request, &|_, _| !self.is_stopped());
        let seconds = begin.elapsed().as_secs_f64();
        match &computed {
            Ok(SuggestionRunReport { users, suggested, resumed, complete: true }) => {
                tracing::info!(users, suggested, resumed, seconds, "suggestions were computed for everyone");
            }
            Ok(SuggestionRunReport { users, resumed, .. }) => {
                tracing::info!(
                    users,
                    resumed,
                    seconds,
                    "computing suggestions was stopped; the next start goes on"
                );
            }
            Err(Error::InUse { .. }) => {
                tracing::info!("somebody else is computing suggestions; their run counts");
            }
            Err(error) => {
                let again_after = AGAIN_AFTER.as_secs();
                tracing::error!(%error, again_after, "suggestions could not be computed; it is tried again");
            }
        }
        computed.map(|_| ())
    }
}

/// The wait for the next computation.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Since when nothing has begun.
    since: Instant,
    /// The newest run that is known.
    newest: Option<SuggestionRun>,
}

impl Waiting {
    /// Takes note of the newest run, whoever has begun it.
    fn look(&mut self, newest: Option<SuggestionRun>) {
        if newest != self.newest {
            *self = Self { since: Instant::now(), newest };
        }
    }

    /// How long to wait from now on.
    fn left(&self, every: Duration, now: Timestamp) -> Duration {
        // However far ahead the clock was when the newest run began, it is never waited for longer than this.
        let at_most = every.saturating_sub(self.since.elapsed());
        match self.newest {
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

    fn left(newest: Option<(u64, Option<u64>)>, every: Duration, now: u64) -> Duration {
        let at = |hour: u64| Timestamp::from_millis(hour * HOUR.as_millis() as u64);
        let newest = newest.map(|(started, finished)| SuggestionRun {
            started_at: at(started),
            finished_at: finished.map(at),
        });
        // To whole minutes, as the test takes a moment itself.
        let left = Waiting { since: Instant::now(), newest }.left(every, at(now));
        Duration::from_secs(left.as_secs().div_ceil(60) * 60)
    }

    #[test]
    fn a_schedule_whose_thread_dies_has_failed() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || receiver.recv().expect("nobody sends, so that it dies"));
        let schedule = Schedule { is_stopped: Arc::default(), thread };
        assert!(!schedule.has_failed());
        drop(sender);
        let patience = Instant::now() + Duration::from_secs(60);
        while !schedule.has_failed() {
            assert!(Instant::now() < patience, "it goes on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn it_is_due_so_long_after_the_begin_of_the_run_before() {
        assert_eq!(left(Some((10, Some(11))), 12 * HOUR, 13), 9 * HOUR);
        assert_eq!(left(Some((10, Some(11))), 12 * HOUR, 22), Duration::ZERO);
        assert_eq!(left(Some((10, Some(11))), 12 * HOUR, 99), Duration::ZERO);
        assert_eq!(left(Some((10, None)), 12 * HOUR, 13), 9 * HOUR, "somebody has stopped it");
    }

    #[test]
    fn the_first_run_lets_the_start_pass() {
        assert_eq!(left(None, 12 * HOUR, 5), FIRST_AFTER);
        assert_eq!(left(None, FIRST_AFTER / 2, 5), FIRST_AFTER / 2);
    }

    #[test]
    fn a_clock_that_was_ahead_puts_nothing_off_for_good() {
        assert_eq!(left(Some((10_000, Some(10_001))), 12 * HOUR, 5), 12 * HOUR);
    }
}
