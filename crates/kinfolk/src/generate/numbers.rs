//! Random numbers from a seed, and permutations. Nothing about graphs.

/// A permutation of the numbers below a size: multiplication by a coprime number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shuffle {
    size: u64,
    factor: u64,
    offset: u64,
}

impl Shuffle {
    /// A permutation of the numbers below a size.
    pub(crate) fn new(size: u64, seed: u64) -> Self {
        let size = size.max(1);
        // Sizes are below 2^32, so that the product fits 64 bits.
        let mut factor = seed % size;
        while greatest_common_divisor(factor, size) != 1 {
            factor = (factor + 1) % size.max(2);
        }
        Self { size, factor, offset: mix(seed) % size }
    }

    /// The number at an index.
    pub(crate) fn at(self, number: u64) -> u64 {
        (number * self.factor + self.offset) % self.size
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// SplitMix64: small, fast, and the same on every machine.
pub(crate) struct Random(pub u64);

impl Random {
    /// The next number of the sequence.
    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Uniform from 0 to below 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Hashes a number; 0 stays 0.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// A permutation of the numbers below 2^63: every step is invertible, so ids stay distinct.
pub(crate) fn spread(value: u64) -> u64 {
    const MASK: u64 = i64::MAX as u64;
    let value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15) & MASK;
    let value = (value ^ value >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) & MASK;
    value ^ value >> 32
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_shuffle_has_every_number_once() {
        for size in [1, 2, 3, 10, 97, 1_000, 4_096] {
            for seed in 0..20 {
                let shuffle = Shuffle::new(size, mix(seed));
                let numbers: HashSet<u64> = (0..size).map(|number| shuffle.at(number)).collect();
                assert_eq!(numbers, (0..size).collect(), "{shuffle:?}");
            }
        }
    }

    #[test]
    fn spreading_keeps_ids_apart_and_within_63_bits() {
        let ids: HashSet<u64> = (0..100_000).map(spread).collect();
        assert_eq!(ids.len(), 100_000);
        assert!(ids.iter().all(|&id| id <= i64::MAX as u64));
        assert!(ids.iter().filter(|&&id| id > i64::MAX as u64 / 2).count() > 40_000);
    }
}
