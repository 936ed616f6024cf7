//! The arithmetic of scores. Sums are of whole numbers, so that no order of adding changes a result.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

/// An Adamic-Adar score, in steps of 2^-32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Score(pub u64);

impl Score {
    const ONE: f64 = (1u64 << 32) as f64;

    /// The score as clients see it.
    pub fn value(self) -> f64 {
        self.0 as f64 / Self::ONE
    }
}

impl AddAssign for Score {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sum for Score {
    fn sum<I: Iterator<Item = Self>>(scores: I) -> Self {
        Self(scores.map(|score| score.0).sum())
    }
}

impl fmt::Display for Score {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(out)
    }
}

/// What one followee in between adds to a candidate's Adamic-Adar score: the inverse of the logarithm of how many
/// edges it has, on both sides together. Whoever has few says more.
///
/// It has at least two: one that leads to it and one that leads on. Fewer are taken as two, which a count can show
/// for a moment while an edge is removed.
pub fn weight(edges: u64) -> Score {
    Score((Score::ONE / (edges.max(2) as f64).ln()).round() as u64)
}

/// How much of the two neighbourhoods is shared: `mutual` of those whom the user follows or who follow the candidate.
pub fn jaccard(mutual: u64, following: u64, followers: u64) -> f64 {
    // Counts may be of another moment than the walk: a share is never over 1.
    let all = (following + followers).saturating_sub(mutual).max(mutual).max(1);
    mutual as f64 / all as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_edges_say_more() {
        assert!((weight(2).value() - 1.0 / 2f64.ln()).abs() < 1e-9);
        assert_eq!(weight(0), weight(2));
        assert!(weight(3) > weight(4));
        assert!(weight(u64::from(u32::MAX)).value() > 0.04);
        assert_eq!([weight(3), weight(7)].into_iter().sum::<Score>(), Score(weight(3).0 + weight(7).0));
    }

    #[test]
    fn a_share_is_between_0_and_1() {
        assert!((jaccard(2, 5, 4) - 2.0 / 7.0).abs() < f64::EPSILON);
        assert!((jaccard(3, 3, 3) - 1.0).abs() < f64::EPSILON);
        assert!((jaccard(9, 1, 1) - 1.0).abs() < f64::EPSILON);
        assert!(jaccard(0, 0, 0).abs() < f64::EPSILON);
    }
}
