//! One copy of a set of counters for each few threads, so that they do not fight over cache lines. Copies are added
//! up when somebody looks.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

const STRIPES_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct Striped<T>(Box<[Stripe<T>]>);

/// Two lines, since processors fetch them in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Stripe<T>(T);

impl<T: Default> Default for Striped<T> {
    fn default() -> Self {
        let threads = available_parallelism().map_or(1, NonZero::get);
        let stripes = threads.next_power_of_two().min(STRIPES_MAX);
        Self((0..stripes).map(|_| Stripe(T::default())).collect())
    }
}

impl<T> Striped<T> {
    /// The copy of this thread.
    pub(crate) fn mine(&self) -> &T {
        &self.0[thread_number() % self.0.len()].0
    }

    /// All copies.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|stripe| &stripe.0)
    }
}

/// Threads are numbered as they come, so that those of one pool get copies of their own.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    // A thread that is about to end has no locals any more.
    NUMBER.try_with(|number| *number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn nothing_is_lost_between_threads() {
        let striped = Striped::<AtomicU64>::default();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1_000).for_each(|_| _ = striped.mine().fetch_add(1, Ordering::Relaxed)));
            }
        });
        let sum: u64 = striped.all().map(|copy| copy.load(Ordering::Relaxed)).sum();
        assert_eq!(sum, 8_000);
    }
}
