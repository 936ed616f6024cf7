//! What one caller may still do: a leaky bucket in one atomic number. It knows no caller and keeps no list.
//!
//! The number is the moment at which the budget will be full again (the theoretical arrival time of the generic
//! cell rate algorithm). Taking moves it into the future; time passing is the refill, so nothing has to run.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kinfolk_core::{Error, Result};

use super::Rate;
use super::shared::Sharing;

/// What one caller may still do. Cheap to ask: no look-up, no lock.
#[derive(Debug)]
pub struct Budget {
    /// Nanoseconds until one more request is allowed; 0 is no limit.
    interval: AtomicU64,
    /// How many may come at once.
    burst: AtomicU32,
    /// When all of the burst is there again, in nanoseconds of [`monotonic`].
    full_at: AtomicU64,
    /// How other processes learn what is taken, if they do.
    sharing: Option<Box<Sharing>>,
}

/// A limit and what is left of it, as the `RateLimit-*` headers say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateState {
    /// How many may come at once.
    pub limit: u32,
    /// How many are left of it now.
    pub remaining: u32,
    /// How long until all of it is there again.
    pub reset: Duration,
}

impl RateState {
    /// The time to the reset in whole seconds, rounded up, as the header wants it.
    pub fn reset_seconds(&self) -> u64 {
        self.reset.as_secs() + u64::from(self.reset.subsec_nanos() > 0)
    }
}

impl Budget {
    /// No limit.
    pub fn unlimited() -> Self {
        Self::new(None)
    }

    /// A full budget.
    pub fn new(rate: Option<Rate>) -> Self {
        Self::with_sharing(rate, None)
    }

    /// A full budget, perhaps a shared one.
    pub(super) fn with_sharing(rate: Option<Rate>, sharing: Option<Box<Sharing>>) -> Self {
        let budget = Self { interval: 0.into(), burst: 1.into(), full_at: 0.into(), sharing };
        budget.set_rate(rate);
        budget
    }

    /// Another rate from now on; what was taken stays taken.
    pub(crate) fn set_rate(&self, rate: Option<Rate>) {
        let interval = rate.map_or(0, |rate| (rate.interval().as_nanos() as u64).max(1));
        self.burst.store(rate.map_or(1, Rate::burst), Ordering::Relaxed);
        self.interval.store(interval, Ordering::Relaxed);
    }

    /// Takes `cost` requests out of the budget, or says when they will be allowed.
    ///
    /// A pipeline may cost more than the budget can ever hold. It is let through once the budget is full, and all of
    /// it is charged: the caller then waits for as long as it would have, had it sent one request after the other.
    pub fn take(&self, cost: u32) -> Result<()> {
        if self.interval.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.take_at(cost, monotonic())
    }

    pub(super) fn take_at(&self, cost: u32, now: u64) -> Result<()> {
        let interval = self.interval.load(Ordering::Relaxed);
        let burst = self.burst.load(Ordering::Relaxed);
        let held = u64::from(burst).saturating_mul(interval);
        let needed = u64::from(cost.min(burst)).saturating_mul(interval);
        let charge = u64::from(cost).saturating_mul(interval);
        let mut full_at = self.full_at.load(Ordering::Relaxed);
        loop {
            let start = full_at.max(now);
            let wait = (start - now).saturating_add(needed).saturating_sub(held);
            if wait > 0 && cost > 0 {
                return Err(Error::RateLimited { retry_after: Duration::from_nanos(wait) });
            }
            let taken = start.saturating_add(charge);
            match self.full_at.compare_exchange_weak(full_at, taken, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    self.count(i64::from(cost));
                    return Ok(());
                }
                Err(newer) => full_at = newer,
            }
        }
    }

    /// Gives back what was taken and then not used.
    pub fn give_back(&self, cost: u32) {
        let charge = u64::from(cost).saturating_mul(self.interval.load(Ordering::Relaxed));
        // A moment that is past is as good as now: more than a full budget is not to be had.
        let _ = self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
            Some(full_at.saturating_sub(charge))
        });
        if charge > 0 {
            self.count(-i64::from(cost));
        }
    }

    fn count(&self, cost: i64) {
        if let Some(sharing) = &self.sharing {
            sharing.count(cost);
        }
    }

    /// Makes this a copy of a shared budget, which lacked so much at a moment, without what was taken here since then.
    pub(super) fn copy_from(&self, moment: u64, missing: Duration) {
        let interval = self.interval();
        let missing = u64::try_from(missing.as_nanos()).unwrap_or(u64::MAX);
        let shared = moment.saturating_add(missing);
        let _ = self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |_| {
            let since = self.sharing.as_ref().map_or(0, |sharing| sharing.spent());
            let charge = since.unsigned_abs().saturating_mul(interval);
            Some(if since < 0 { shared.saturating_sub(charge) } else { shared.saturating_add(charge) })
        });
    }

    /// The limit and what is left of it; nothing if there is no limit.
    pub fn state(&self) -> Option<RateState> {
        self.state_at(monotonic())
    }

    pub(super) fn state_at(&self, now: u64) -> Option<RateState> {
        let interval = self.interval.load(Ordering::Relaxed);
        if interval == 0 {
            return None;
        }
        let limit = self.burst.load(Ordering::Relaxed);
        let missing = self.full_at.load(Ordering::Relaxed).saturating_sub(now);
        let taken = u32::try_from(missing.div_ceil(interval)).unwrap_or(u32::MAX);
        let reset = Duration::from_nanos(missing);
        Some(RateState { limit, remaining: limit.saturating_sub(taken), reset })
    }

    /// Whether less than half of the burst is left.
    pub(super) fn is_low_at(&self, now: u64) -> bool {
        let held = u64::from(self.burst.load(Ordering::Relaxed)).saturating_mul(self.interval());
        self.full_at().saturating_sub(now) > held / 2
    }

    /// Nanoseconds until one more request is allowed; 0 is no limit.
    pub(super) fn interval(&self) -> u64 {
        self.interval.load(Ordering::Relaxed)
    }

    pub(super) fn sharing(&self) -> Option<&Sharing> {
        self.sharing.as_deref()
    }

    /// When all of the budget is there again. The later, the less is left.
    pub(super) fn full_at(&self) -> u64 {
        self.full_at.load(Ordering::Relaxed)
    }
}

/// Nanoseconds of a clock that never goes back.
pub(super) fn monotonic() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn budget(rate: Rate) -> Budget {
        Budget::new(Some(rate))
    }

    fn wait(result: Result<()>) -> Duration {
        match result.unwrap_err() {
            Error::RateLimited { retry_after } => retry_after,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn a_burst_then_the_rate() {
        let budget = budget(Rate::per_second(10).with_burst(3));
        for _ in 0..3 {
            budget.take_at(1, SECOND).unwrap();
        }
        assert_eq!(wait(budget.take_at(1, SECOND)), Duration::from_millis(100));
        assert_eq!(wait(budget.take_at(1, SECOND + 40_000_000)), Duration::from_millis(60));
        budget.take_at(1, SECOND + 100_000_000).unwrap();
        assert!(budget.take_at(1, SECOND + 100_000_000).is_err());
    }

    #[test]
    fn a_refusal_costs_nothing() {
        let budget = budget(Rate::per_second(10).with_burst(1));
        budget.take_at(1, 0).unwrap();
        for _ in 0..100 {
            assert_eq!(wait(budget.take_at(1, 0)), Duration::from_millis(100));
        }
    }

    #[test]
    fn what_is_given_back_can_be_taken_again_and_no_more() {
        let budget = budget(Rate::per_second(10).with_burst(2));
        budget.take_at(2, SECOND).unwrap();
        budget.give_back(1);
        budget.take_at(1, SECOND).unwrap();
        assert_eq!(wait(budget.take_at(1, SECOND)), Duration::from_millis(100));
        budget.give_back(100);
        budget.take_at(2, SECOND).unwrap();
        assert!(budget.take_at(1, SECOND).is_err());
        Budget::unlimited().give_back(1);
    }

    #[test]
    fn more_than_the_burst_waits_for_a_full_budget_and_is_charged_in_full() {
        let budget = budget(Rate::per_second(10).with_burst(5));
        budget.take_at(1, SECOND).unwrap();
        assert_eq!(wait(budget.take_at(50, SECOND)), Duration::from_millis(100));
        budget.take_at(50, SECOND + 100_000_000).unwrap();
        // 50 taken, 5 of them from the burst: 45 must come in before the budget is at its bottom again.
        assert_eq!(wait(budget.take_at(1, SECOND + 100_000_000)), Duration::from_millis(4_600));
    }

    #[test]
    fn the_state_is_what_headers_say() {
        let budget = budget(Rate::per_second(10).with_burst(5));
        let full = RateState { limit: 5, remaining: 5, reset: Duration::ZERO };
        assert_eq!(budget.state_at(SECOND), Some(full));
        budget.take_at(2, SECOND).unwrap();
        let state = budget.state_at(SECOND + 50_000_000).unwrap();
        assert_eq!(state, RateState { limit: 5, remaining: 3, reset: Duration::from_millis(150) });
        assert_eq!(state.reset_seconds(), 1);
        assert_eq!(Budget::unlimited().state(), None);
    }

    #[test]
    fn a_new_rate_applies_at_once() {
        let budget = budget(Rate::per_second(1));
        budget.take_at(1, 0).unwrap();
        assert!(budget.take_at(1, 0).is_err());
        budget.set_rate(None);
        budget.take(1_000).unwrap();
        budget.set_rate(Some(Rate::per_second(1)));
        assert!(budget.take_at(1, 0).is_err());
    }

    #[test]
    fn threads_together_take_no_more_than_is_there() {
        let budget = budget(Rate::per_hour(1).with_burst(1_000));
        let taken = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        if budget.take_at(1, 5).is_ok() {
                            taken.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(taken.into_inner(), 1_000);
    }

    proptest! {
        /// In any stretch of time no more is granted than the burst and what came in meanwhile.
        #[test]
        fn no_stretch_grants_more_than_burst_and_rate(
            count in 1u32..200,
            burst in 1u32..50,
            steps in prop::collection::vec((0u64..200_000_000, 1u32..5), 1..200),
        ) {
            let budget = budget(Rate::per_second(count).with_burst(burst));
            let interval = SECOND / u64::from(count);
            let mut now = 0;
            let mut granted: Vec<(u64, u64)> = Vec::new();
            for (pause, cost) in steps {
                now += pause;
                let cost = cost.min(burst);
                match budget.take_at(cost, now) {
                    Ok(()) => granted.push((now, u64::from(cost))),
                    Err(Error::RateLimited { retry_after }) => {
                        // What it says is true: then it is allowed, and not a nanosecond earlier.
                        let then = now + retry_after.as_nanos() as u64;
                        prop_assert!(budget.take_at(cost, then - 1).is_err());
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            for (first, &(from, _)) in granted.iter().enumerate() {
                let mut sum = 0;
                for &(at, cost) in &granted[first..] {
                    sum += cost;
                    prop_assert!(sum <= u64::from(burst) + (at - from).div_ceil(interval));
                }
            }
        }

        /// A caller that keeps to the rate is never refused.
        #[test]
        fn whoever_keeps_to_the_rate_is_never_refused(count in 1u32..1_000, burst in 1u32..10) {
            let budget = budget(Rate::per_second(count).with_burst(burst));
            let interval = (SECOND / u64::from(count)) + 1;
            for step in 0..500 {
                prop_assert!(budget.take_at(1, step * interval).is_ok());
            }
        }
    }
}
