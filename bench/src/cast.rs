//! Users and posts that the generated graph lacks: those that the targets of feeds name. They come after the graph's own
//! users. No measuring.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;

use anyhow::Result;
use kinfolk_embedded::Settings;

use crate::crowd::{distinct, shrunk};
use crate::dataset::{Dataset, add_edges_at_random_times};
use crate::posting::{Made, register_all};
use crate::random::Random;
use crate::survey::{Pair, Users};

const NAME: &str = "store-feeds";

/// Whose posts are pulled, and how many of these a reader follows.
const PULLED: u64 = 40;
const PULLED_FOLLOWED: u64 = 20;
/// From so many followers on, posts are pulled.
const THRESHOLD: u64 = 10_000;
/// Who read pages, and how many each of them follows.
const READERS: u64 = 500;
const FOLLOWED: u64 = 400;
/// Who write for readers.
const WRITERS: u64 = 2_000;
/// Who post to many, but to fewer than the threshold; and the fewest followers of one.
const SPEAKERS: u64 = 400;
const SPEAKER_FOLLOWERS_MIN: u64 = 100;
/// Who follow speakers.
const FANS: u64 = 50_000;

/// How many posts there are of each before anything is measured.
const PULLED_POSTS: u64 = 50;
const WRITER_POSTS: u64 = 40;
const SPEAKER_POSTS: u64 = 20;
/// Their times: 30 days from 2025-01-01 on.
const TIMES_FROM_MILLIS: u64 = 1_735_689_600_000;
const TIMES_SPREAD_MILLIS: u64 = 30 * 86_400_000;

/// The added users.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    pub users: Users,
    shrunk: u64,
}

impl Cast {
    pub fn of(users: Users) -> Self {
        Self { users, shrunk: shrunk(users) }
    }

    /// The folder of a store with the graph, these users and their posts, made if it is not there yet. Nobody in it has
    /// read a feed.
    pub fn store_folder(self, data: &Dataset) -> Result<PathBuf> {
        data.store_folder_filled(NAME, self.settings(), |store| {
            eprintln!("adding readers, authors and posts");
            add_edges_at_random_times(store, NAME, self.edges())?;
            register_all(store, self.posts().into_iter().map(Made::registration))
        })
    }

    pub fn settings(self) -> Settings {
        Settings { fan_out_threshold: self.threshold(), ..Settings::default() }
    }

    /// So much of a number as suits the graph.
    pub fn scaled(self, number: u64) -> u64 {
        number / self.shrunk
    }

    pub fn threshold(self) -> u64 {
        self.scaled(THRESHOLD)
    }

    /// How many a reader follows, and how many of these are pulled.
    pub fn followed(self) -> (u64, u64) {
        (self.scaled(FOLLOWED), self.scaled(PULLED_FOLLOWED))
    }

    pub fn readers(self) -> Range<u64> {
        range(self.users.last + 1, self.scaled(READERS))
    }

    fn writers(self) -> Range<u64> {
        range(self.readers().end, self.scaled(WRITERS))
    }

    pub fn pulled(self) -> Range<u64> {
        range(self.writers().end, self.scaled(PULLED))
    }

    pub fn speakers(self) -> Range<u64> {
        range(self.pulled().end, SPEAKERS)
    }

    pub fn fans(self) -> Range<u64> {
        range(self.speakers().end, self.scaled(FANS))
    }

    /// Whom a reader follows: those who are pulled come first.
    pub fn followed_by(self, reader: u64) -> Vec<u64> {
        let (all, pulled) = self.followed();
        let mut random = Random::new(reader);
        let mut followed = distinct(&mut random, inclusive(self.pulled()), pulled);
        followed.extend(distinct(&mut random, inclusive(self.writers()), all - pulled));
        followed
    }

    /// Who follow each speaker; each order of magnitude of their number is as likely as the others.
    pub fn speaker_followers(self) -> BTreeMap<u64, Vec<u64>> {
        let followers = |speaker| {
            let mut random = Random::new(speaker);
            let count = random.between_orders(self.scaled(SPEAKER_FOLLOWERS_MIN), self.threshold() - 1);
            (speaker, distinct(&mut random, inclusive(self.fans()), count))
        };
        self.speakers().map(followers).collect()
    }

    /// Everything that was posted, from old to new.
    pub fn posts(self) -> Vec<Made> {
        let mut random = Random::new(11);
        let mut posts = Vec::new();
        for (authors, count) in
            [(self.pulled(), PULLED_POSTS), (self.writers(), WRITER_POSTS), (self.speakers(), SPEAKER_POSTS)]
        {
            for author in authors {
                for _ in 0..count {
                    let millis = TIMES_FROM_MILLIS + random.below(TIMES_SPREAD_MILLIS);
                    posts.push(Made::at(author, millis, posts.len() as u64));
                }
            }
        }
        posts.sort_unstable_by_key(|post| post.id);
        posts
    }

    /// Fans whose inbox is full once they read.
    pub fn fans_with_full_inbox(self) -> Vec<u64> {
        let mut speakers: HashMap<u64, u64> = HashMap::new();
        self.speaker_followers().values().flatten().for_each(|&fan| *speakers.entry(fan).or_default() += 1);
        let entries = self.settings().inbox_entries as u64;
        let mut full: Vec<u64> = speakers
            .into_iter()
            .filter(|(_, count)| count * SPEAKER_POSTS >= entries)
            .map(|(fan, _)| fan)
            .collect();
        full.sort_unstable();
        full
    }

    fn edges(self) -> Vec<Pair> {
        let mut edges = Vec::new();
        for follower in self.readers() {
            edges.extend(self.followed_by(follower).into_iter().map(|followee| Pair { follower, followee }));
        }
        for followee in self.pulled() {
            // Together with readers they are at the threshold or over it.
            let crowd = range(self.users.first, self.threshold());
            edges.extend(crowd.map(|follower| Pair { follower, followee }));
        }
        for (followee, followers) in self.speaker_followers() {
            edges.extend(followers.into_iter().map(|follower| Pair { follower, followee }));
        }
        edges
    }
}

fn range(first: u64, count: u64) -> Range<u64> {
    first..first + count
}

fn inclusive(users: Range<u64>) -> Users {
    Users { first: users.start, last: users.end - 1 }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn added_users_are_who_the_targets_name() {
        for last in [3_500, 50_000] {
            let cast = Cast::of(Users { first: 1, last });
            let edges = cast.edges();
            assert_eq!(edges.iter().collect::<HashSet<_>>().len(), edges.len(), "an edge comes twice");
            let mut followers: HashMap<u64, u64> = HashMap::new();
            let mut following: HashMap<u64, u64> = HashMap::new();
            for Pair { follower, followee } in edges {
                *followers.entry(followee).or_default() += 1;
                *following.entry(follower).or_default() += 1;
            }
            assert!(cast.readers().all(|reader| following[&reader] == cast.followed().0));
            assert!(cast.pulled().all(|author| followers[&author] >= cast.threshold()));
            assert!(cast.speakers().all(|author| followers[&author] < cast.threshold()));
            let full = cast.fans_with_full_inbox().len() as u64;
            assert!(full * 10 > 9 * (cast.fans().end - cast.fans().start), "{full} are full");
        }
    }

    #[test]
    fn posts_are_ordered_by_their_ids() {
        let posts = Cast::of(Users { first: 1, last: 3_500 }).posts();
        assert!(posts.is_sorted_by(|one, other| one.id < other.id && one.millis <= other.millis));
    }
}
