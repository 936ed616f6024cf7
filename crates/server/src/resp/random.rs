//! Random numbers for sampling: fast, evenly spread, and of no use for secrets.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

thread_local! {
    static RANDOM: Cell<u64> = Cell::new(RandomState::new().hash_one(()) | 1);
}

/// The next number of this thread (xorshift64).
pub(super) fn next() -> u64 {
    RANDOM.with(|random| {
        let mut value = random.get();
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        random.set(value);
        value
    })
}

/// A number below `end`, which is not 0.
pub(super) fn below(end: usize) -> usize {
    ((u128::from(next()) * end as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_come_about_equally_often() {
        let mut counts = [0; 10];
        (0..100_000).for_each(|_| counts[below(10)] += 1);
        assert!(counts.iter().all(|count| (9_000..11_000).contains(count)), "{counts:?}");
        assert_eq!(below(1), 0);
    }
}
