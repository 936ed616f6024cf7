//! How many threads serve connections, and which connections move from one to another. Decides only; [`super::listener`] has the
//! threads.
//!
//! Where the machine is full, one thread that always finds another connection to serve does more than two that go to sleep after
//! every reply, and leaves the other cores to other work. Where cores are idle, several threads answer sooner: a thread that
//! the system puts aside for a moment delays only its own connections. So connections begin on one thread, and spread while there
//! is both work and room.

/// What a thread did in one period.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// The share of the period in which it did not wait.
    pub busy: f64,
    /// How many connections it served.
    pub connections: usize,
}

/// Connections that are to go to another thread when they have been served the next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub from: usize,
    pub to: usize,
    /// How many; [`Transfer::ALL`] of a thread that is given up.
    pub count: usize,
}

impl Transfer {
    pub(crate) const ALL: usize = usize::MAX;
}

/// A thread that works for a larger share of the time shares its work.
const BUSY: f64 = 0.2;
/// A machine with less time to spare, in cores, has no room for another thread.
const IDLE_CORES_MIN: f64 = 0.5;
/// A thread is given up if the others would be less busy than this with its work.
const CALM: f64 = 0.1;
/// A thread that is less busy than this share of the busiest takes some of its work.
const UNEVEN: f64 = 0.6;
/// For how many periods one more thread, or one fewer, must have been right.
const MORE_AFTER: u32 = 2;
const FEWER_AFTER: u32 = 10;

/// The threads that serve connections: the first ones of all.
#[derive(Debug)]
pub(super) struct Balance {
    threads: usize,
    active: usize,
    wanted_more: u32,
    wanted_fewer: u32,
}

impl Balance {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, active: 1, wanted_more: 0, wanted_fewer: 0 }
    }

    /// How many threads take connections.
    pub(crate) fn active(&self) -> usize {
        self.active
    }

    /// Takes what all threads did in a period, and how many cores of the machine were idle in it. Returns what moves.
    pub(crate) fn step(&mut self, loads: &[Load], idle_cores: f64) -> Option<Transfer> {
        let active = loads.get(..self.active).unwrap_or_default();
        let busy = |&thread: &usize| loads.get(thread).map_or(0.0, |load| load.busy);
        let by_load = |one: &usize, other: &usize| busy(one).total_cmp(&busy(other));
        let busiest = (0..self.active).max_by(by_load)?;
        let whole: f64 = active.iter().map(|load| load.busy).sum();
        let others = self.active - 1;

        let is_short = busy(&busiest) >= BUSY && idle_cores >= IDLE_CORES_MIN && self.active < self.threads;
        self.wanted_more = if is_short { self.wanted_more + 1 } else { 0 };
        let is_spare = others > 0 && whole < CALM * others as f64;
        self.wanted_fewer = if is_spare { self.wanted_fewer + 1 } else { 0 };

        if self.wanted_fewer >= FEWER_AFTER {
            self.wanted_fewer = 0;
            self.active = others;
            let to = (0..others).min_by(by_load)?;
            return Some(Transfer { from: others, to, count: Transfer::ALL });
        }
        if self.wanted_more >= MORE_AFTER {
            self.wanted_more = 0;
            self.active += 1;
        }
        let idlest = (0..self.active).min_by(by_load)?;
        let (most, least) = (busy(&busiest), busy(&idlest));
        if most < BUSY || least >= most * UNEVEN {
            return None;
        }
        let served = loads.get(busiest).map_or(0, |load| load.connections);
        let count = (served as f64 * (most - least) / 2.0 / most) as usize;
        (count > 0).then_some(Transfer { from: busiest, to: idlest, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(busy: &[f64]) -> Vec<Load> {
        busy.iter().map(|&busy| Load { busy, connections: 32 }).collect()
    }

    #[test]
    fn a_busy_thread_gets_help_where_a_core_is_idle() {
        let mut balance = Balance::new(3);
        assert_eq!(balance.step(&loads(&[1.0, 0.0, 0.0]), 1.0), None);
        assert_eq!(balance.step(&loads(&[0.1, 0.0, 0.0]), 1.0), None);
        assert_eq!(balance.step(&loads(&[0.4, 0.0, 0.0]), 1.0), None);
        let half = Transfer { from: 0, to: 1, count: 16 };
        assert_eq!(balance.step(&loads(&[0.4, 0.0, 0.0]), 1.0), Some(half));
        assert_eq!(balance.active(), 2);
        // Both are busy, and nobody else has time.
        for _ in 0..20 {
            assert_eq!(balance.step(&loads(&[1.0, 1.0, 0.0]), 0.1), None);
        }
        assert_eq!(balance.active(), 2);
        let _ = balance.step(&loads(&[1.0, 0.8, 0.0]), 0.9);
        let third = Transfer { from: 0, to: 2, count: 16 };
        assert_eq!(balance.step(&loads(&[1.0, 0.8, 0.0]), 0.9), Some(third));
        assert_eq!(balance.active(), 3);
    }

    #[test]
    fn a_machine_without_an_idle_core_gets_no_further_thread() {
        let mut balance = Balance::new(2);
        for _ in 0..20 {
            assert_eq!(balance.step(&loads(&[1.0, 0.0]), 0.3), None);
        }
        assert_eq!(balance.active(), 1);
    }

    #[test]
    fn a_thread_that_is_not_needed_is_given_up() {
        let mut balance = Balance { active: 3, ..Balance::new(3) };
        for _ in 1..FEWER_AFTER {
            assert_eq!(balance.step(&loads(&[0.1, 0.05, 0.03]), 2.0), None);
        }
        let all = Transfer { from: 2, to: 1, count: Transfer::ALL };
        assert_eq!(balance.step(&loads(&[0.1, 0.05, 0.03]), 2.0), Some(all));
        assert_eq!(balance.active(), 2);
        // The last one stays.
        let mut balance = Balance::new(3);
        assert!((0..20).all(|_| balance.step(&loads(&[0.0; 3]), 2.0).is_none()));
        assert_eq!(balance.active(), 1);
    }

    #[test]
    fn uneven_threads_balance_out() {
        let mut balance = Balance { active: 2, ..Balance::new(2) };
        let some = Transfer { from: 1, to: 0, count: 8 };
        assert_eq!(balance.step(&loads(&[0.5, 1.0]), 0.0), Some(some));
        assert_eq!(balance.step(&loads(&[0.7, 1.0]), 0.0), None);
        assert_eq!(balance.step(&loads(&[0.02, 0.15]), 0.0), None);
        // One connection is not split.
        let one = [Load { busy: 1.0, connections: 1 }, Load::default()];
        assert_eq!(balance.step(&one, 0.0), None);
    }

    #[test]
    fn one_thread_is_left_alone() {
        let mut balance = Balance::new(1);
        assert!((0..20).all(|_| balance.step(&loads(&[1.0]), 8.0).is_none()));
    }
}
