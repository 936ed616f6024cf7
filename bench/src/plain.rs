//! The plain way to check: a dictionary from ids to dense numbers, and a sorted array for each follower.
//!
//! It is held beside the store in the same run. It is read-only, in memory only, and has one direction.

use std::collections::HashMap;
use std::path::Path;

use anyhow::Result;
use foldhash::fast::RandomState;

use crate::survey::{Pair, for_each_edge};

/// The edges, as simply as it can be kept.
#[derive(Debug, Default)]
pub struct Plain {
    numbers: HashMap<u64, u32, RandomState>,
    followees: Vec<Vec<u32>>,
}

impl Plain {
    pub fn load(csv: &Path) -> Result<Self> {
        let mut plain = Self::default();
        for_each_edge(csv, |pair| {
            plain.add(pair);
            Ok(())
        })?;
        for list in &mut plain.followees {
            list.sort_unstable();
            list.dedup();
            list.shrink_to_fit();
        }
        Ok(plain)
    }

    fn add(&mut self, pair: Pair) {
        let follower = self.number(pair.follower) as usize;
        let followee = self.number(pair.followee);
        self.followees[follower].push(followee);
    }

    fn number(&mut self, id: u64) -> u32 {
        let next = self.followees.len() as u32;
        let number = *self.numbers.entry(id).or_insert(next);
        if number == next {
            self.followees.push(Vec::new());
        }
        number
    }

    #[inline(never)]
    pub fn follows(&self, pair: Pair) -> bool {
        let (Some(&follower), Some(followee)) =
            (self.numbers.get(&pair.follower), self.numbers.get(&pair.followee))
        else {
            return false;
        };
        self.followees[follower as usize].binary_search(followee).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_what_the_file_says() {
        let folder = tempfile::tempdir().unwrap();
        let csv = folder.path().join("edges.csv");
        std::fs::write(&csv, "5,7\n5,6\n7,5\n5,7\n").unwrap();
        let plain = Plain::load(&csv).unwrap();
        let follows = |follower, followee| plain.follows(Pair { follower, followee });
        assert!(follows(5, 7) && follows(5, 6) && follows(7, 5));
        assert!(!follows(7, 6) && !follows(6, 5) && !follows(9, 5) && !follows(5, 9));
    }
}
