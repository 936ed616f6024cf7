//! A wall clock that is not followed where it can't be right. While a store is open the wall clock is compared with one that only
//! counts; when a store is opened, with the newest time that the store has given out.
//!
//! Times that a store has given out never go back, so one that is far ahead would stay: everything written later would carry it.

use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::{Clock, Timestamp};
use parking_lot::Mutex;

/// How often it is said that a clock is not followed.
const SAY_EVERY: Duration = Duration::from_secs(60 * 60);

/// How far ahead of what is expected a wall clock is still followed; zero for however far.
#[derive(Clone, Copy, Debug)]
pub struct ClockLimits {
    /// While a store is open.
    pub jump_max: Duration,
    /// When it is opened, after the newest time that it has given out.
    pub gap_max: Duration,
}

impl Default for ClockLimits {
    fn default() -> Self {
        Self { jump_max: Duration::from_secs(60 * 60), gap_max: Duration::from_secs(1_000 * 24 * 60 * 60) }
    }
}

/// A wall clock, followed as far as it is plausible. Where it is not, time goes on from where it was.
pub struct GuardedClock {
    wall: Arc<dyn Clock>,
    limits: ClockLimits,
    state: Mutex<State>,
}

impl GuardedClock {
    /// Guards a wall clock.
    pub fn new(wall: Arc<dyn Clock>, limits: ClockLimits) -> Self {
        Self { wall, limits, state: Mutex::default() }
    }
}

impl Clock for GuardedClock {
    fn now(&self) -> Timestamp {
        let (wall, steady) = (self.wall.now(), steady());
        self.state.lock().judge(wall, steady, self.limits)
    }

    fn begin(&self, newest: Timestamp) {
        *self.state.lock() = State::begin(newest, steady(), self.limits);
    }

    fn ahead(&self) -> Duration {
        self.now();
        self.state.lock().refused.map_or(Duration::ZERO, |refused| refused.ahead)
    }
}

/// A clock that only counts. It goes on while the machine sleeps, as a wall clock does.
#[cfg(target_os = "linux")]
fn steady() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
fn steady() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

/// What is believed. It starts with nothing, and then believes the first time that it is shown.
#[derive(Debug, Default)]
struct State {
    anchor: Option<Anchor>,
    refused: Option<Refused>,
}

/// A time that was believed, and when.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    time: Timestamp,
    steady: Duration,
    /// How far ahead a later time may be.
    slack: Duration,
}

/// A time that is not believed.
#[derive(Clone, Copy, Debug)]
struct Refused {
    ahead: Duration,
    said: Duration,
}

impl State {
    /// A store that has given out a time is opened.
    fn begin(newest: Timestamp, steady: Duration, limits: ClockLimits) -> Self {
        let anchor = Anchor { time: newest, steady, slack: limits.gap_max };
        Self { anchor: (newest > Timestamp::MIN).then_some(anchor), refused: None }
    }

    /// The time to go by, where the wall clock shows one and the steady clock has come so far.
    fn judge(&mut self, wall: Timestamp, steady: Duration, limits: ClockLimits) -> Timestamp {
        let followed = Anchor { time: wall, steady, slack: limits.jump_max };
        let Some(anchor) = self.anchor else {
            self.anchor = Some(followed);
            return wall;
        };
        let expected = plus(anchor.time, steady.saturating_sub(anchor.steady));
        if !anchor.slack.is_zero() && wall > plus(expected, anchor.slack) {
            self.refuse(Duration::from_millis(wall.millis() - expected.millis()), wall, steady);
            return expected;
        }
        if self.refused.take().is_some() {
            tracing::info!(clock = %wall, "the system's clock is plausible again, and followed");
        }
        // A clock that is far behind may be set right: that is no jump. Until then there is no better one.
        if plus(wall, limits.jump_max) >= expected {
            self.anchor = Some(followed);
        }
        wall
    }

    fn refuse(&mut self, ahead: Duration, wall: Timestamp, steady: Duration) {
        let said = self.refused.map(|refused| refused.said).filter(|&said| steady < said + SAY_EVERY);
        if said.is_none() {
            tracing::error!(
                clock = %wall,
                ahead_seconds = ahead.as_secs(),
                "the system's clock is too far ahead to be right, and is not followed: set it; if it is right, restart with a \
                 longer clock.jump_max or clock.gap_max"
            );
        }
        self.refused = Some(Refused { ahead, said: said.unwrap_or(steady) });
    }
}

fn plus(time: Timestamp, duration: Duration) -> Timestamp {
    time.plus_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 60 * 60;
    const YEAR: u64 = 365 * 24 * HOUR;
    const NOW: u64 = 57 * YEAR;

    /// Judges times in seconds, the steady clock's first.
    struct Judge(State);

    impl Judge {
        fn opened(newest: u64) -> Self {
            let newest = Timestamp::from_millis(newest * 1_000);
            Self(State::begin(newest, Duration::ZERO, ClockLimits::default()))
        }

        fn shows(&mut self, steady: u64, wall: u64) -> u64 {
            let wall = Timestamp::from_millis(wall * 1_000);
            self.0.judge(wall, Duration::from_secs(steady), ClockLimits::default()).millis() / 1_000
        }
    }

    #[test]
    fn a_jump_is_not_followed_and_the_way_back_is() {
        let mut judge = Judge::opened(NOW);
        assert_eq!(judge.shows(0, NOW + 5), NOW + 5);
        assert_eq!(judge.shows(10, NOW + 10 * YEAR), NOW + 15);
        assert_eq!(judge.0.refused.unwrap().ahead, Duration::from_secs(10 * YEAR - 15));
        assert_eq!(judge.shows(3 * HOUR, NOW + 10 * YEAR), NOW + 5 + 3 * HOUR, "time goes on");
        assert_eq!(judge.shows(3 * HOUR + 1, NOW + 3 * HOUR), NOW + 3 * HOUR);
        assert!(judge.0.refused.is_none());
        assert_eq!(
            judge.shows(3 * HOUR + 2, NOW + 3 * HOUR + 50 * 60),
            NOW + 3 * HOUR + 50 * 60,
            "a small one"
        );
    }

    #[test]
    fn a_store_may_have_been_closed_for_long_but_not_for_ever() {
        assert_eq!(Judge::opened(NOW).shows(0, NOW + YEAR), NOW + YEAR);
        let mut judge = Judge::opened(NOW);
        assert_eq!(judge.shows(7, NOW + 70 * YEAR), NOW + 7);
        assert_eq!(judge.shows(9, NOW + YEAR), NOW + YEAR);
        assert_eq!(judge.shows(10, NOW + 2 * YEAR), NOW + YEAR + 1, "now it is a jump");
    }

    #[test]
    fn a_new_store_believes_the_first_time() {
        let mut judge = Judge::opened(0);
        assert_eq!(judge.shows(0, NOW), NOW);
        assert_eq!(judge.shows(1, NOW + YEAR), NOW + 1);
    }

    #[test]
    fn a_clock_that_is_behind_may_be_set_right_at_any_time() {
        let mut judge = Judge::opened(NOW);
        assert_eq!(judge.shows(0, 5), 5, "the machine has just started and knows nothing better");
        assert_eq!(judge.shows(2 * HOUR, NOW + HOUR), NOW + HOUR);
        assert_eq!(judge.shows(2 * HOUR, 7), 7);
        assert_eq!(judge.shows(3 * HOUR, NOW + 2 * HOUR), NOW + 2 * HOUR);
        assert_eq!(judge.shows(3 * HOUR, NOW + YEAR), NOW + 2 * HOUR);
    }

    #[test]
    fn no_limit_is_no_limit() {
        let limits = ClockLimits { jump_max: Duration::ZERO, gap_max: Duration::ZERO };
        let mut state = State::begin(Timestamp::from_millis(1), Duration::ZERO, limits);
        for wall in [Timestamp::MAX, Timestamp::from_millis(5), Timestamp::MAX] {
            assert_eq!(state.judge(wall, Duration::from_secs(1), limits), wall);
        }
    }
}
