//! Leaves out a node that fails too often, and tries it again with one call at a time.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A failure counts for so much, a success takes one off: a node is left out when more than a third of the calls fail.
const FAILURE: u32 = 2;
const FAILURES_MAX: u32 = 10;

/// How long a node is left out at first, and at most. Each failed probe doubles it.
const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(4);

#[derive(Debug)]
enum State {
    Closed {
        failures: u32,
    },
    /// Left out until a moment; then one call goes through.
    Open {
        until: Instant,
        pause: Duration,
    },
    /// One call is on its way. If nothing is heard of it, another may go at the moment.
    Probing {
        until: Instant,
        pause: Duration,
    },
}

/// Whether a node is asked.
#[derive(Debug)]
pub(super) struct Breaker(Mutex<State>);

impl Default for Breaker {
    fn default() -> Self {
        Self(Mutex::new(State::Closed { failures: 0 }))
    }
}

impl Breaker {
    /// Whether a call may be made now.
    pub(super) fn admits(&self) -> bool {
        self.admits_at(Instant::now())
    }

    fn admits_at(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        match *state {
            State::Closed { .. } => true,
            State::Open { until, pause } | State::Probing { until, pause } if now >= until => {
                *state = State::Probing { until: now + PAUSE_MAX, pause };
                true
            }
            State::Open { .. } | State::Probing { .. } => false,
        }
    }

    /// A call has succeeded.
    pub(super) fn succeeded(&self) {
        let mut state = self.0.lock();
        *state = match *state {
            State::Closed { failures } => State::Closed { failures: failures.saturating_sub(1) },
            // A call from before says nothing about the node now.
            State::Open { until, pause } => State::Open { until, pause },
            State::Probing { .. } => State::Closed { failures: 0 },
        };
    }

    /// A call has failed. Returns whether the node is left out from now on.
    pub(super) fn failed(&self) -> bool {
        self.failed_at(Instant::now())
    }

    fn failed_at(&self, now: Instant) -> bool {
        let mut state = self.0.lock();
        let (next, is_opened) = match *state {
            State::Closed { failures } if failures + FAILURE < FAILURES_MAX => {
                (State::Closed { failures: failures + FAILURE }, false)
            }
            State::Closed { .. } => (State::Open { until: now + PAUSE_MIN, pause: PAUSE_MIN }, true),
            State::Open { until, pause } => (State::Open { until, pause }, false),
            State::Probing { pause, .. } => {
                let pause = (pause * 2).min(PAUSE_MAX);
                (State::Open { until: now + pause, pause }, true)
            }
        };
        *state = next;
        is_opened
    }

    /// Whether the node is left out.
    pub(super) fn is_open(&self) -> bool {
        !matches!(*self.0.lock(), State::Closed { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_fails_is_left_out_and_probed_by_one_call_at_a_time() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        let opened: Vec<bool> = (0..5).map(|_| breaker.failed_at(now)).collect();
        assert_eq!(opened, [false, false, false, false, true]);
        assert!(!breaker.admits_at(now) && breaker.is_open());
        let later = now + PAUSE_MIN;
        assert!(breaker.admits_at(later));
        assert!(!breaker.admits_at(later), "one probe is enough");
        assert!(breaker.failed_at(later));
        assert!(!breaker.admits_at(later + PAUSE_MIN), "the pause has doubled");
        assert!(breaker.admits_at(later + PAUSE_MIN * 2));
        breaker.succeeded();
        assert!(breaker.admits_at(later) && !breaker.is_open());
    }

    #[test]
    fn a_probe_that_nobody_hears_of_is_followed_by_another() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        (0..5).for_each(|_| _ = breaker.failed_at(now));
        assert!(breaker.admits_at(now + PAUSE_MIN));
        assert!(breaker.admits_at(now + PAUSE_MIN + PAUSE_MAX));
    }

    #[test]
    fn some_failures_among_many_calls_are_fine() {
        let breaker = Breaker::default();
        for _ in 0..1_000 {
            assert!(!breaker.failed());
            (0..2).for_each(|_| breaker.succeeded());
        }
        assert!(breaker.admits());
        let opened = (0..100).any(|_| {
            breaker.succeeded();
            breaker.failed()
        });
        assert!(opened, "every other call fails");
    }
}
