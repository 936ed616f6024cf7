//! What `kinfolk apply` is killed under: seeded follows and unfollows over few users, so that pairs are touched again and
//! again. Says nothing about answers or state; see `model`.

use std::fmt;

use super::random::Random;

/// Who follows whom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    pub follower: u64,
    pub followee: u64,
}

impl fmt::Debug for Pair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}->{}", self.follower, self.followee)
    }
}

/// Something that is submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Follow(Pair),
    Unfollow(Pair),
}

impl Step {
    /// The line that `kinfolk apply` reads.
    pub fn line(&self) -> String {
        match self {
            Self::Follow(pair) => format!("follow {} {}\n", pair.follower, pair.followee),
            Self::Unfollow(pair) => format!("unfollow {} {}\n", pair.follower, pair.followee),
        }
    }

    /// The pair that it may change.
    pub fn pair(&self) -> Pair {
        match self {
            Self::Follow(pair) | Self::Unfollow(pair) => *pair,
        }
    }
}

/// A source of steps.
pub struct Workload {
    random: Random,
    users: usize,
}

impl Workload {
    pub fn new(random: Random, users: usize) -> Self {
        Self { random, users }
    }

    pub fn steps(&mut self, count: usize) -> Vec<Step> {
        (0..count).map(|_| self.step()).collect()
    }

    fn step(&mut self) -> Step {
        let pair = self.pair();
        if self.random.below(5) < 3 { Step::Follow(pair) } else { Step::Unfollow(pair) }
    }

    fn pair(&mut self) -> Pair {
        let follower = self.random.below(self.users);
        let other = (follower + 1 + self.random.below(self.users - 1)) % self.users;
        Pair { follower: follower as u64 + 1, followee: other as u64 + 1 }
    }
}
