//! What feeds must be: all posts of all followees, sorted. And the steps that change them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::random::Random;

/// Something that is submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Follow(u64, u64),
    Unfollow(u64, u64),
    Post {
        id: u64,
        author: u64,
        at: u64,
    },
    Delete {
        id: u64,
        author: u64,
    },
    /// Changes nothing, but must say what is right at this moment.
    Read(u64),
}

/// The step that a change of the log tells of.
pub fn step(change: &Value) -> Step {
    let id = |field: &str| change[field].as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
    match change["type"].as_str() {
        Some("follow") => Step::Follow(id("follower"), id("followee")),
        Some("unfollow") => Step::Unfollow(id("follower"), id("followee")),
        Some("post") => {
            let at = change["created_at"].as_str().and_then(kinfolk_core::Timestamp::parse);
            Step::Post {
                id: id("post"),
                author: id("author"),
                at: at.map_or(0, kinfolk_core::Timestamp::millis),
            }
        }
        Some("post_deleted") => Step::Delete { id: id("post"), author: id("author") },
        other => panic!("nobody has submitted a change of the type {other:?}"),
    }
}

/// Who follows whom, and who has posted what.
#[derive(Clone)]
pub struct Feeds {
    threshold: u64,
    following: BTreeMap<u64, BTreeSet<u64>>,
    followers: BTreeMap<u64, u64>,
    /// By author, the oldest first.
    posts: BTreeMap<u64, BTreeSet<(u64, u64)>>,
    /// All ids that were ever used, with author and time.
    known: BTreeMap<u64, (u64, u64)>,
}

impl Feeds {
    pub fn new(follows: Vec<(u64, u64)>, threshold: u64) -> Self {
        let (following, followers) = (BTreeMap::new(), BTreeMap::new());
        let (posts, known) = (BTreeMap::new(), BTreeMap::new());
        let mut feeds = Self { threshold, following, followers, posts, known };
        for (follower, followee) in follows {
            feeds.apply(&Step::Follow(follower, followee));
        }
        feeds
    }

    /// Brings it up to date; says whether that changed anything.
    pub fn apply(&mut self, step: &Step) -> bool {
        match *step {
            Step::Follow(follower, followee) => {
                let changed = self.following.entry(follower).or_default().insert(followee);
                *self.followers.entry(followee).or_default() += u64::from(changed);
                changed
            }
            Step::Unfollow(follower, followee) => {
                let changed = self.following.entry(follower).or_default().remove(&followee);
                *self.followers.entry(followee).or_default() -= u64::from(changed);
                changed
            }
            Step::Post { id, author, at } => {
                let is_new = !self.known.contains_key(&id);
                if is_new {
                    self.known.insert(id, (author, at));
                    self.posts.entry(author).or_default().insert((at, id));
                }
                is_new
            }
            Step::Delete { id, author } => {
                let at = self.known.get(&id).map_or(0, |(_, at)| *at);
                self.posts.entry(author).or_default().remove(&(at, id))
            }
            Step::Read(_) => false,
        }
    }

    /// The begin of a user's feed: ids, newest first.
    pub fn page(&self, user: u64, limit: usize) -> Vec<u64> {
        let followees = self.following.get(&user).into_iter().flatten();
        let mut posts: Vec<(u64, u64)> =
            followees.filter_map(|author| self.posts.get(author)).flatten().copied().collect();
        posts.sort_unstable_by(|one, other| other.cmp(one));
        posts.into_iter().take(limit).map(|(_, id)| id).collect()
    }

    /// A post must be pulled if its author had as many followers as the threshold says, and pushed otherwise.
    pub fn check_delivery(&self, change: &Value, step: &Step) -> Result<(), String> {
        let Step::Post { author, .. } = step else { return Ok(()) };
        let followers = self.followers.get(author).copied().unwrap_or_default();
        let expected = if followers >= self.threshold { "pull" } else { "push" };
        if change["delivery"] == expected {
            return Ok(());
        }
        Err(format!("{step:?}, whose author had {followers} followers: {}", change["delivery"]))
    }
}

/// A source of steps.
pub struct Steps {
    random: Random,
    users: u64,
    next_id: u64,
}

/// The times of posts lie from here on; many have the same.
const BEGIN: u64 = 1_767_225_600_000;

impl Steps {
    pub fn new(random: Random, users: u64) -> Self {
        Self { random, users, next_id: 1 }
    }

    /// So many steps that make sense after what there is.
    pub fn take(&mut self, count: usize, feeds: &Feeds) -> Vec<Step> {
        let mut feeds = feeds.clone();
        (0..count)
            .map(|_| {
                let step = self.step(&feeds);
                feeds.apply(&step);
                step
            })
            .collect()
    }

    fn step(&mut self, feeds: &Feeds) -> Step {
        match self.random.below(20) {
            0..=3 => self.pair(Step::Follow),
            4..=6 => self.pair(Step::Unfollow),
            7..=8 => self.delete(feeds),
            9..=11 => Step::Read(1 + self.random.below(self.users as usize) as u64),
            _ => self.post(),
        }
    }

    fn post(&mut self) -> Step {
        // Authors with a crowd post most.
        let author = if self.random.once_in(2) { 3 } else { self.users as usize };
        let author = 1 + self.random.below(author) as u64;
        // Ids do not rise with time; times go back and meet.
        let id = self.next_id ^ 0x55;
        self.next_id += 1;
        let age_max = if self.random.once_in(8) { 4_000 } else { 40 };
        let age = self.random.below(age_max) as u64;
        Step::Post { id, author, at: (BEGIN + self.next_id / 4).saturating_sub(age) }
    }

    fn delete(&mut self, feeds: &Feeds) -> Step {
        let which = self.random.below(feeds.known.len().max(1));
        match feeds.known.iter().nth(which) {
            Some((&id, &(author, _))) => Step::Delete { id, author },
            None => self.post(),
        }
    }

    fn pair(&mut self, step: fn(u64, u64) -> Step) -> Step {
        let users = self.users as usize;
        let follower = self.random.below(users);
        // Every other one is about an author with a crowd, who may cross the threshold by it.
        let followee = if self.random.once_in(2) { self.random.below(2) } else { self.random.below(users) };
        let followee = if followee == follower { (follower + 1) % users } else { followee };
        step(follower as u64 + 1, followee as u64 + 1)
    }
}
