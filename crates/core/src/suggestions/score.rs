//! Scores of suggestions. They are fixed-point numbers, so that the order of addition does not affect a sum.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

/// An Adamic-Adar score, in units of 2^-32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Score(pub u64);

impl Score {
    const ONE: f64 = (1u64 << 32) as f64;

    /// The score in responses.
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

/// What one followee adds to a candidate's Adamic-Adar score: the inverse of the logarithm of its number of edges on both
/// sides. Followees with few edges weigh more.
///
/// It has at least two edges: one from the user and one to the candidate. While an edge is removed, a count may be lower for
/// a moment; it is then taken as two.
pub fn weight(edges: u64) -> Score {
    Score((Score::ONE / (edges.max(2) as f64).ln()).round() as u64)
}

/// The Jaccard similarity: `mutual` divided by the size of the union of the user's followees and the candidate's followers.
pub fn jaccard(mutual: u64, following: u64, followers: u64) -> f64 {
    // Counts may be of another moment than the walk; the result never exceeds 1.
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
