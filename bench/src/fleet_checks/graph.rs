//! The ego-Twitter graph in memory, and the pairs that are checked: edges that exist, and pairs of users without one.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use anyhow::{Result, bail};

use crate::random::Random;
use crate::size::Size;
use crate::survey::{Pair, for_each_edge};

/// Of ten checks of the mix, so many are of edges that exist.
const EXISTING_OF_TEN: u64 = 2;

/// A pair that is checked, and the expected answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    pub pair: Pair,
    pub exists: bool,
}

/// The follow edges of the graph.
#[derive(Debug)]
pub struct Graph {
    pub edges: Vec<Pair>,
    /// Everybody who follows anyone.
    pub followers: Vec<u64>,
    /// Everybody.
    users: Vec<u64>,
    /// The followees of each follower, sorted.
    following: HashMap<u64, Vec<u64>>,
}

impl Graph {
    /// Reads a file of edges, and keeps one of so many followers.
    pub fn read(file: &Path, one_of: u64) -> Result<Self> {
        let mut edges = Vec::new();
        for_each_edge(file, |pair| {
            if pair.follower.is_multiple_of(one_of) {
                edges.push(pair);
            }
            Ok(())
        })?;
        edges.sort_unstable();
        edges.dedup();
        if edges.is_empty() {
            bail!("{} has no edges", file.display());
        }
        let mut following: HashMap<u64, Vec<u64>> = HashMap::new();
        edges.iter().for_each(|pair| following.entry(pair.follower).or_default().push(pair.followee));
        let mut followers: Vec<u64> = following.keys().copied().collect();
        followers.sort_unstable();
        let users: BTreeSet<u64> = edges.iter().flat_map(|pair| [pair.follower, pair.followee]).collect();
        Ok(Self { edges, followers, users: users.into_iter().collect(), following })
    }

    pub fn size(&self) -> Size {
        Size::of(self.edges.len() as u64)
    }

    /// The followees of a user, sorted.
    pub fn following(&self, follower: u64) -> &[u64] {
        self.following.get(&follower).map_or(&[], Vec::as_slice)
    }

    fn has(&self, pair: Pair) -> bool {
        self.following(pair.follower).binary_search(&pair.followee).is_ok()
    }

    /// An edge, each as likely as the others.
    pub fn existing(&self, random: &mut Random) -> Pair {
        random.pick(&self.edges)
    }

    /// A user who follows somebody, and another user that it does not follow.
    pub fn absent(&self, random: &mut Random) -> Pair {
        self.absent_of(random.pick(&self.followers), random)
    }

    /// A follower, and another user that it does not follow.
    pub fn absent_of(&self, follower: u64, random: &mut Random) -> Pair {
        loop {
            let pair = Pair { follower, followee: random.pick(&self.users) };
            if pair.follower != pair.followee && !self.has(pair) {
                return pair;
            }
        }
    }

    /// Checks in random order: one in five is of an edge that exists.
    pub fn mix(&self, count: usize, random: &mut Random) -> Vec<Expected> {
        let one = |_| {
            let exists = random.below(10) < EXISTING_OF_TEN;
            Expected { pair: if exists { self.existing(random) } else { self.absent(random) }, exists }
        };
        (0..count).map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_what_they_are_expected_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("edges.tsv");
        std::fs::write(&file, "1\t2\n1\t3\n2\t3\n1\t2\n9\t1\n").unwrap();
        let graph = Graph::read(&file, 1).unwrap();
        assert_eq!((graph.edges.len(), graph.following(1)), (4, &[2, 3][..]));
        assert_eq!(Graph::read(&file, 2).unwrap().followers, [2]);
        let mix = graph.mix(1_000, &mut Random::new(1));
        assert!(mix.iter().all(|check| graph.has(check.pair) == check.exists));
        let existing = mix.iter().filter(|check| check.exists).count();
        assert!((150..250).contains(&existing), "{existing}");
    }
}
