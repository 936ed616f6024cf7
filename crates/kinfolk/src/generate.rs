//! Generates graphs from a seed: power-law degrees on both sides, a few very large accounts, distinct edges.
//!
//! The same settings give the same edges in the same order on every machine: only integers and the exactly
//! rounded operations of IEEE 754 (product, quotient, square root) decide. Memory grows with users, not with
//! edges.
//!
//! # The shape
//! Users are numbered: the large accounts first, then the ordinary ones, then the audience.
//! - Large account `k` (from 0) has exactly `edges / (10 * (k + 1))` followers. At most half of the ordinary
//!   users follow it; the rest are the **audience**: extra users, beyond the requested number, who follow only
//!   large accounts.
//! - All other edges go from large and ordinary users to ordinary ones. Out-degrees follow a power law
//!   with exponent 2.3, up to 10,000; in-degrees one with exponent 2.5.

mod numbers;

use std::collections::HashSet;

use foldhash::fast::RandomState;
use kinfolk_core::Id;
use kinfolk_core::graph::Edge;

use numbers::{Random, Shuffle, mix, spread};

/// Maximum out-degree: the default following limit of a store.
const FOLLOWING_MAX: u64 = 10_000;

/// Maximum number of large accounts: together they have a third of all edges.
pub const LARGE_MAX: u64 = 16;

/// Maximum number of users with the audience, so that a number fits 32 bits.
const USERS_MAX: u64 = 1 << 31;

/// The parameters of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLaw {
    /// Exact number of edges.
    pub edges: u64,
    /// Number of users without the audience of the large accounts.
    pub users: u64,
    /// The seed: another one gives another graph of the same size.
    pub seed: u64,
    /// Number of large accounts, at most [`LARGE_MAX`].
    pub large: u64,
    /// Whether ids are spread over 63 bits instead of counting from 1.
    pub sparse: bool,
}

/// Why a graph is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// Too few users for the edges or the large accounts.
    #[error("this number of users has at most about {edges_max} edges; use more users")]
    TooFewUsers {
        /// Maximum number of edges of these users, without those to large accounts.
        edges_max: u64,
    },
    /// More users than numbers.
    #[error("a graph has at most {USERS_MAX} users")]
    TooManyUsers,
    /// More large accounts than [`LARGE_MAX`].
    #[error("a graph has at most {LARGE_MAX} large accounts")]
    TooManyLarge,
}

impl PowerLaw {
    /// A graph with one large account and ids from 1 on.
    pub fn new(edges: u64, users: u64, seed: u64) -> Self {
        Self { edges, users, seed, large: 1, sparse: false }
    }

    /// All edges: followers in a shuffled order, each with its edges together.
    pub fn edges(&self) -> Result<Edges, Impossible> {
        Edges::new(*self)
    }

    /// The number of followers of a large account.
    pub fn large_followers(&self, account: u64) -> u64 {
        self.edges / (10 * (account + 1))
    }

    /// The number of extra users, who follow only large accounts.
    pub fn audience(&self) -> u64 {
        if self.large == 0 {
            return 0;
        }
        self.large_followers(0).saturating_sub(self.ordinary() / 2)
    }

    /// The id of a user by number; the large accounts have the numbers from 0 on.
    pub fn id(&self, number: u64) -> Id {
        let count = number + 1;
        Id::Integer(if self.sparse { spread(count) } else { count })
    }

    fn ordinary(&self) -> u64 {
        self.users.saturating_sub(self.large)
    }
}

/// An iterator over the edges of a graph.
#[derive(Debug)]
pub struct Edges {
    graph: PowerLaw,
    /// The number of ordinary followees of each large or ordinary user.
    degrees: Vec<u16>,
    /// The order of followers.
    order: Shuffle,
    /// The popularity rank of each ordinary user.
    popularity: Shuffle,
    /// The ordinary followers of each large account.
    fans: Vec<Shuffle>,
    next_follower: u64,
    /// The current follower and its remaining edges.
    follower: u64,
    followees: Vec<u64>,
}

impl Edges {
    fn new(graph: PowerLaw) -> Result<Self, Impossible> {
        if graph.large > LARGE_MAX {
            return Err(Impossible::TooManyLarge);
        }
        if graph.users.saturating_add(graph.audience()) > USERS_MAX {
            return Err(Impossible::TooManyUsers);
        }
        let ordinary = graph.ordinary();
        let to_large: u64 = (0..graph.large).map(|account| graph.large_followers(account)).sum();
        let degree_max = (FOLLOWING_MAX - graph.large).min(ordinary.saturating_sub(1));
        let edges_max = degree_max * graph.users;
        if graph.edges - to_large > edges_max || (graph.large > 0 && ordinary < 2) {
            return Err(Impossible::TooFewUsers { edges_max });
        }
        let mut seeds = Random(graph.seed);
        Ok(Self {
            graph,
            degrees: degrees(graph, graph.edges - to_large, degree_max),
            order: Shuffle::new(graph.users + graph.audience(), seeds.draw()),
            popularity: Shuffle::new(ordinary, seeds.draw()),
            fans: (0..graph.large).map(|_| Shuffle::new(ordinary, seeds.draw())).collect(),
            next_follower: 0,
            follower: 0,
            followees: Vec::new(),
        })
    }

    /// Fills `followees` for the next follower; false at the end.
    fn advance(&mut self) -> bool {
        let users = self.graph.users;
        if self.next_follower == users + self.graph.audience() {
            return false;
        }
        let follower = self.order.at(self.next_follower);
        self.next_follower += 1;
        self.follower = follower;
        for account in 0..self.graph.large {
            if self.is_fan(follower, account) {
                self.followees.push(account);
            }
        }
        if follower < users {
            self.pick_ordinary(follower);
        }
        true
    }

    /// Whether a user follows a large account: the first ordinary users in the account's own order do, and the first of
    /// the audience.
    fn is_fan(&self, user: u64, account: u64) -> bool {
        let PowerLaw { large, users, .. } = self.graph;
        let ordinary = self.graph.ordinary();
        let followers = self.graph.large_followers(account);
        let from_ordinary = followers.min(ordinary / 2);
        if user < large {
            false
        } else if user < users {
            self.fans[account as usize].at(user - large) < from_ordinary
        } else {
            user - users < followers - from_ordinary
        }
    }

    /// Draws the ordinary followees of a user by popularity.
    fn pick_ordinary(&mut self, follower: u64) {
        let ordinary = self.graph.ordinary();
        let degree = u64::from(self.degrees[follower as usize]);
        let mut random = Random(mix(self.graph.seed.wrapping_add(mix(follower))));
        let mut taken = HashSet::with_capacity_and_hasher(degree as usize, RandomState::default());
        for _ in 0..degree {
            let fraction = random.fraction();
            // The density of the ranks falls with the power 2/3, which makes that of the degrees fall with 2.5.
            let mut rank = (ordinary as f64 * (fraction * fraction * fraction)) as u64;
            // A taken rank is replaced by the next free one. This terminates: the degree is below the number of
            // ordinary users.
            loop {
                if rank >= ordinary {
                    rank = 0;
                }
                let followee = self.graph.large + self.popularity.at(rank);
                if followee != follower && taken.insert(rank) {
                    self.followees.push(followee);
                    break;
                }
                rank += 1;
            }
        }
    }
}

impl Iterator for Edges {
    type Item = Edge;

    fn next(&mut self) -> Option<Edge> {
        loop {
            if let Some(followee) = self.followees.pop() {
                let (follower, followee) = (self.graph.id(self.follower), self.graph.id(followee));
                return Some(Edge { follower, followee });
            }
            if !self.advance() {
                return None;
            }
        }
    }
}

/// The number of ordinary followees of each user: a power law, scaled and truncated so that the sum is `total`.
fn degrees(graph: PowerLaw, total: u64, degree_max: u64) -> Vec<u16> {
    // u^(-3/4) for a uniform u: a density that falls with the power 1 + 4/3.
    let weight = |user: u64| {
        let uniform = Random(mix(graph.seed ^ mix(user) ^ 0xdeca_fbad)).fraction().max(1e-12);
        1.0 / (uniform * uniform.sqrt()).sqrt()
    };
    let weights: Vec<f32> = (0..graph.users).map(|user| weight(user) as f32).collect();
    let degree = |scale: f64, weight: f32| ((scale * f64::from(weight)) as u64).min(degree_max);
    let sum = |scale: f64| weights.iter().map(|&weight| degree(scale, weight)).sum::<u64>();

    // Halving the interval of the scale brings the sum to just below the total; weights are at least 1, so the
    // largest scale gives every user the largest degree.
    let (mut low, mut high) = (0.0, degree_max as f64 + 1.0);
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if sum(middle) <= total { low = middle } else { high = middle }
    }
    let mut degrees: Vec<u16> = weights.iter().map(|&weight| degree(low, weight) as u16).collect();
    let mut missing = total - degrees.iter().map(|&degree| u64::from(degree)).sum::<u64>();
    while missing > 0 {
        for degree in degrees.iter_mut().filter(|degree| u64::from(**degree) < degree_max) {
            if missing == 0 {
                break;
            }
            *degree += 1;
            missing -= 1;
        }
    }
    degrees
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    /// Checks the invariants of every graph; returns the number of followers of each user.
    fn checked(graph: PowerLaw) -> HashMap<Id, u64> {
        let mut seen = HashSet::new();
        let mut following: HashMap<Id, u64> = HashMap::new();
        let mut followers: HashMap<Id, u64> = HashMap::new();
        for edge in graph.edges().unwrap() {
            assert_ne!(edge.follower, edge.followee);
            assert!(seen.insert(edge), "{edge:?} twice");
            *following.entry(edge.follower).or_default() += 1;
            *followers.entry(edge.followee).or_default() += 1;
        }
        assert_eq!(seen.len() as u64, graph.edges);
        assert!(following.values().all(|&count| count <= FOLLOWING_MAX));
        for account in 0..graph.large {
            let count = followers.get(&graph.id(account)).copied().unwrap_or_default();
            assert_eq!(count, graph.large_followers(account), "large account {account}");
        }
        followers
    }

    #[test]
    fn every_size_has_exactly_its_edges_once() {
        for (edges, users) in [(0, 2), (1, 3), (9, 10), (100, 40), (1_000, 100), (5_000, 80), (20_000, 5_000)]
        {
            for large in [0, 1, 3] {
                if edges > 0 && users < large + 2 {
                    continue;
                }
                for sparse in [false, true] {
                    checked(PowerLaw { large, sparse, ..PowerLaw::new(edges, users.max(large + 2), 7) });
                }
            }
        }
    }

    #[test]
    fn degrees_are_skewed() {
        let graph = PowerLaw::new(200_000, 20_000, 1);
        let mut followers: Vec<u64> = checked(graph).into_values().collect();
        followers.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(followers[0], 20_000, "the large account");
        let median = followers[followers.len() / 2];
        assert!(followers[1] > 100 * median, "{} and {median}", followers[1]);
        let mut following: HashMap<Id, u64> = HashMap::new();
        graph.edges().unwrap().for_each(|edge| *following.entry(edge.follower).or_default() += 1);
        let most = following.values().copied().max().unwrap();
        assert!(most > 1_000, "{most}");
    }

    #[test]
    fn a_seed_gives_the_same_edges_for_ever() {
        let edges: Vec<Edge> = PowerLaw::new(1_000, 100, 42).edges().unwrap().collect();
        let again: Vec<Edge> = PowerLaw::new(1_000, 100, 42).edges().unwrap().collect();
        let other: Vec<Edge> = PowerLaw::new(1_000, 100, 43).edges().unwrap().collect();
        assert_eq!(edges, again);
        assert_ne!(edges, other);
        let sum = edges.iter().fold(0, |sum: u64, edge| match (edge.follower, edge.followee) {
            (Id::Integer(from), Id::Integer(to)) => mix(sum ^ from << 32 ^ to),
            _ => unreachable!("generated ids are integers"),
        });
        insta::assert_snapshot!(format!("{:016x}", sum), @"b8f45e49cbc7ff81");
    }

    #[test]
    fn the_impossible_is_refused() {
        assert!(matches!(PowerLaw::new(100, 5, 0).edges(), Err(Impossible::TooFewUsers { edges_max: 15 })));
        assert!(matches!(PowerLaw::new(1, 1, 0).edges(), Err(Impossible::TooFewUsers { .. })));
        assert!(matches!(PowerLaw::new(1, 1 << 40, 0).edges(), Err(Impossible::TooManyUsers)));
        let many = PowerLaw { large: LARGE_MAX + 1, ..PowerLaw::new(10, 100, 0) };
        assert!(matches!(many.edges(), Err(Impossible::TooManyLarge)));
    }
}
