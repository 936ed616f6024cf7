//! The graph of `feed-run`: a hundred followers a user on average, power-law skewed, with posts; everybody has read. Made
//! once for each size and kept between runs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kinfolk_core::IdKind;
use kinfolk_embedded::{Embedded, Settings};

use crate::dataset::{Scratch, add_edges_at_random_times};
use crate::fan_out::quiet;
use crate::posting::{Made, register_all, wake};
use crate::random::Random;
use crate::size::Size;
use crate::survey::Pair;

const NAME: &str = "feed-run";
const FOLLOWERS_MEAN: u64 = 100;
/// The fewest and the most whom a user follows; each order of magnitude is as likely as the others, which makes the
/// mean a hundred.
const FOLLOWING: (u64, u64) = (10, 372);
/// The account of rank r has followers in proportion to r^-0.6: the first of 200,000 has about 50,000, the 20th 10,000.
const SKEW: f64 = 0.6;
/// Enough for most inboxes to be full.
const POSTS_A_USER: u64 = 3;
/// Older posts are from the day before 2025-02-01.
const TIMES_FROM_MILLIS: u64 = 1_738_281_600_000;
const TIMES_SPREAD_MILLIS: u64 = 86_400_000;

/// The users of the run: from 1 on.
#[derive(Clone, Debug)]
pub struct FeedGraph {
    pub users: u64,
    pub folder: PathBuf,
    store: PathBuf,
}

impl FeedGraph {
    /// Makes what is not there yet.
    pub fn prepare(work: &Path, edges: Size) -> Result<Self> {
        let folder = work.join(format!("{NAME}-{edges}"));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let users = (edges.edges() / FOLLOWERS_MEAN).max(2);
        let graph = Self { users, store: folder.join("store"), folder };
        if !graph.store.exists() {
            let unfinished = Scratch::new(graph.folder.join("store-unfinished"))?;
            graph.fill(unfinished.path())?;
            fs::rename(unfinished.path(), &graph.store)?;
        }
        Ok(graph)
    }

    /// A copy to work on.
    pub fn scratch(&self) -> Result<Scratch> {
        Scratch::copy_of(&self.store, self.folder.join("store-scratch"))
    }

    /// Gives everybody an inbox who has none, such as those who have not read for a month.
    pub fn wake_everyone(&self, store: &Embedded) -> Result<()> {
        const STEPS: u64 = 10;
        if store.stats().inboxes < self.users {
            for step in 0..STEPS {
                eprintln!("everybody reads: {} %", step * 100 / STEPS);
                let (first, last) = (self.users * step / STEPS, self.users * (step + 1) / STEPS);
                wake(store, (first + 1..=last).collect())?;
            }
        }
        quiet(store);
        Ok(())
    }

    fn fill(&self, folder: &Path) -> Result<()> {
        eprintln!("generating {} users", self.users);
        let store = Embedded::create(folder, IdKind::Integer, Settings::default())?;
        let users = self.users;
        let mut random = Random::new(1);
        let edges = (1..=users).flat_map(move |follower| {
            let followees = followees(users, follower, &mut random);
            followees.into_iter().map(move |followee| Pair { follower, followee })
        });
        add_edges_at_random_times(&store, NAME, edges)?;
        eprintln!("posting");
        let mut random = Random::new(2);
        let count = users * POSTS_A_USER;
        let posts = (0..count).map(move |number| {
            let millis = TIMES_FROM_MILLIS + TIMES_SPREAD_MILLIS * number / count;
            Made::at(1 + random.below(users), millis, number).registration()
        });
        register_all(&store, posts)?;
        // Files as they are after some time, not as a rush of writes has left them.
        store.compact()?;
        self.wake_everyone(&store)?;
        Ok(store.close()?)
    }
}

/// Whom a user follows. Ranks are spread over ids, so that an id says nothing.
fn followees(users: u64, follower: u64, random: &mut Random) -> BTreeSet<u64> {
    let count = random.between_orders(FOLLOWING.0, FOLLOWING.1).min(users / 2);
    let mut followees = BTreeSet::new();
    while (followees.len() as u64) < count {
        let rank = (users as f64 * random.share().powf(1.0 / (1.0 - SKEW))) as u64;
        // A step that has no factor in common with the number of users visits everybody once.
        let followee = 1 + (rank * 7_919) % users;
        if followee != follower {
            followees.insert(followee);
        }
    }
    followees
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn users_have_a_hundred_followers_on_average_and_some_have_many() {
        let (users, mut random) = (20_000, Random::new(1));
        let mut followers: HashMap<u64, u64> = HashMap::new();
        for follower in 1..=users {
            for followee in followees(users, follower, &mut random) {
                assert!(followee != follower && (1..=users).contains(&followee));
                *followers.entry(followee).or_default() += 1;
            }
        }
        let edges: u64 = followers.values().sum();
        assert!((95..=105).contains(&(edges / users)), "{edges} edges");
        assert!(followers.values().max().is_some_and(|&most| most > 5_000), "{:?}", followers.values().max());
    }
}
