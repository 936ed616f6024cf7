//! Users that the generated graph lacks: whose numbers of followees are those that the targets of overlaps and
//! suggestions name. They come after the graph's own users and follow those at random. No measuring.

use std::collections::HashSet;
use std::path::PathBuf;

use anyhow::Result;

use crate::dataset::Dataset;
use crate::random::Random;
use crate::survey::{Pair, Users};

/// On a graph with fewer users, as in a trial, everything is smaller by this factor.
const USERS_MIN: u64 = 50_000;
const TRIAL: u64 = 20;

/// How many groups of three, whose followees overlap.
const GROUPS: u64 = 16;
/// How many users such a user follows.
const MANY: u64 = 10_000;
/// How many users the user of a suggestion follows, and how many of each of these a walk looks at.
const SOME: u64 = 500;
/// How many users ask for suggestions, of each sort.
const ASKERS: u64 = 500;
/// How many users there are for these to follow, of each sort.
const BETWEEN: u64 = 1_000;

/// The added users.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    users: Users,
    shrunk: u64,
}

/// Three users who each follow so many, half of which the first two share and a quarter all three.
#[derive(Clone, Copy, Debug)]
pub struct Group(pub [u64; 3]);

/// Which users are followed by the followees of the user of a suggestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// Exactly as many as a walk looks at.
    Few,
    /// More than that, up to the following limit; each order of magnitude as likely as the others.
    Many,
}

impl Crowd {
    pub fn of(users: Users) -> Self {
        Self { users, shrunk: shrunk(users) }
    }

    /// The folder of a store with the graph and these users, made if it is not there yet.
    pub fn store_folder(self, data: &Dataset) -> Result<PathBuf> {
        data.store_folder_with("store-crowd", || {
            eprintln!("adding users who follow many");
            self.edges()
        })
    }

    /// How many each user of a group follows.
    pub fn many(self) -> u64 {
        MANY / self.shrunk
    }

    /// How many the user of a suggestion follows, and a walk looks at.
    pub fn some(self) -> u64 {
        SOME / self.shrunk
    }

    /// How many the first two of a group share.
    pub fn shared_by_two(self) -> u64 {
        self.many() / 2
    }

    /// How many all three of a group share.
    pub fn shared_by_three(self) -> u64 {
        self.many() / 4
    }

    pub fn groups(self) -> Vec<Group> {
        let first = self.users.last + 1;
        (0..GROUPS).map(|group| Group([0, 1, 2].map(|member| first + group * 3 + member))).collect()
    }

    /// The users who ask for suggestions.
    pub fn askers(self, between: Between) -> Vec<u64> {
        let first = self.first_between(Between::Few) + 2 * self.between_count();
        let count = ASKERS / self.shrunk;
        let first = if between == Between::Few { first } else { first + count };
        (first..first + count).collect()
    }

    /// The edges from the users of groups.
    pub fn group_edges(self) -> Vec<Pair> {
        self.groups().into_iter().flat_map(|group| self.edges_of_group(group)).collect()
    }

    fn edges(self) -> Vec<Pair> {
        let mut edges = self.group_edges();
        for between in [Between::Few, Between::Many] {
            let middles = self.between(between);
            let mut random = Random::new(between as u64);
            for &follower in &middles {
                let count = match between {
                    Between::Few => self.some(),
                    Between::Many => random.between_orders(self.some() + 1, self.many()),
                };
                let followees = distinct(&mut random, self.users, count);
                edges.extend(followees.into_iter().map(|followee| Pair { follower, followee }));
            }
            for follower in self.askers(between) {
                let mut followees = middles.clone();
                random.shuffle(&mut followees);
                followees.truncate(self.some() as usize);
                edges.extend(followees.into_iter().map(|followee| Pair { follower, followee }));
            }
        }
        edges
    }

    fn between_count(self) -> u64 {
        BETWEEN / self.shrunk
    }

    fn first_between(self, between: Between) -> u64 {
        let first = self.users.last + 1 + GROUPS * 3;
        if between == Between::Few { first } else { first + self.between_count() }
    }

    fn between(self, between: Between) -> Vec<u64> {
        let first = self.first_between(between);
        (first..first + self.between_count()).collect()
    }

    fn edges_of_group(self, Group(members): Group) -> Vec<Pair> {
        let (half, quarter) = (self.shared_by_two() as usize, self.shared_by_three() as usize);
        let whole = self.many() as usize;
        let mut random = Random::new(members[0]);
        let pool = distinct(&mut random, self.users, (2 * whole + quarter) as u64);
        let followees = [
            pool[..whole].to_vec(),
            [&pool[..half], &pool[whole..whole + half]].concat(),
            [&pool[..quarter], &pool[whole + half..2 * whole + quarter]].concat(),
        ];
        let of = |(follower, followees): (u64, Vec<u64>)| {
            followees.into_iter().map(move |followee| Pair { follower, followee })
        };
        members.into_iter().zip(followees).flat_map(of).collect()
    }
}

/// By how much everything is smaller on a graph of so many users.
pub fn shrunk(users: Users) -> u64 {
    if users.count() >= USERS_MIN { 1 } else { TRIAL }
}

/// So many different users, in random order.
pub fn distinct(random: &mut Random, users: Users, count: u64) -> Vec<u64> {
    let mut seen = HashSet::new();
    let mut picked = Vec::new();
    while (picked.len() as u64) < count {
        let user = users.first + random.below(users.count());
        if seen.insert(user) {
            picked.push(user);
        }
    }
    picked
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn added_users_follow_as_many_as_they_should() {
        let crowd = Crowd::of(Users { first: 1, last: 3_500 });
        let mut following: HashMap<u64, HashSet<u64>> = HashMap::new();
        for Pair { follower, followee } in crowd.edges() {
            assert!(follower > 3_500, "{follower} is one of the graph's own users");
            assert!(following.entry(follower).or_default().insert(followee), "an edge comes twice");
        }
        for Group([one, two, three]) in crowd.groups() {
            let count = |of: u64| following[&of].len() as u64;
            assert_eq!([one, two, three].map(count), [crowd.many(); 3]);
            let both: HashSet<u64> = &following[&one] & &following[&two];
            assert_eq!(both.len() as u64, crowd.shared_by_two());
            assert_eq!((&both & &following[&three]).len() as u64, crowd.shared_by_three());
        }
        for between in [Between::Few, Between::Many] {
            for asker in crowd.askers(between) {
                assert_eq!(following[&asker].len() as u64, crowd.some());
                for middle in &following[&asker] {
                    let count = following[middle].len() as u64;
                    let right = match between {
                        Between::Few => count == crowd.some(),
                        Between::Many => count > crowd.some() && count <= crowd.many(),
                    };
                    assert!(right, "{middle} follows {count}");
                }
            }
        }
    }
}
