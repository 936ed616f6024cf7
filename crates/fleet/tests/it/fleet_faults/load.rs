//! The load of the campaign: writers with unknown outcomes, and readers whose answers are compared at once with what the writes allow.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

use kinfolk_conformance::{block_on, edge, user};
use kinfolk_core::graph::{CheckStore, Edge, EdgeAction, EdgeList, EdgeStore, Side};
use kinfolk_core::{EdgeKind, Error, Frontier, Id, IdKind, Position, Result};
use kinfolk_fleet::Fleet;

use super::services::{Service, Services};
use crate::history::{History, Read};
use crate::processes::Random;
use crate::story::{Outcome, Story};

pub const KIND: EdgeKind = EdgeKind::Follow;
pub const IDS: IdKind = IdKind::Integer;

/// Every follower may follow every followee.
const FOLLOWERS: u64 = 48;
const FOLLOWEES: u64 = 40;
/// The id of the first followee.
const FIRST_FOLLOWEE: u64 = 1_000;

/// Checks of one call, at most.
const BULK: u64 = 60;

/// A follower and a followee, by their numbers.
type Pair = (u64, u64);

fn follower(number: u64) -> Id {
    user(IDS, number)
}

fn followee(number: u64) -> Id {
    user(IDS, FIRST_FOLLOWEE + number)
}

fn edge_of((follower, followee): Pair) -> Edge {
    edge(IDS, follower, FIRST_FOLLOWEE + followee)
}

/// What was done, by kind.
#[derive(Default)]
pub struct Counts {
    pub writes: AtomicU64,
    pub checks: AtomicU64,
    pub lists: AtomicU64,
    pub counts: AtomicU64,
    pub with_tokens: AtomicU64,
    /// Reads that were refused.
    pub refused_reads: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// What all threads share.
pub struct Load {
    began: Instant,
    ends: AtomicBool,
    pairs: Vec<History>,
    /// The newest position of each shard that was acknowledged.
    seen: Mutex<Frontier>,
    /// What the writers have changed last.
    recent: Mutex<Vec<Pair>>,
    pub counts: Counts,
    pub services: Services,
    pub wrong: Mutex<Vec<String>>,
}

impl Load {
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            ends: AtomicBool::new(false),
            pairs: (0..FOLLOWERS * FOLLOWEES).map(|_| History::new(false)).collect(),
            seen: Mutex::default(),
            recent: Mutex::default(),
            counts: Counts::default(),
            services: Services::new(),
            wrong: Mutex::default(),
        }
    }

    pub fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    pub fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    pub fn seconds(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    pub fn operations(&self) -> u64 {
        let Counts { writes, checks, lists, counts, .. } = &self.counts;
        [writes, checks, lists, counts].iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    fn history(&self, (follower, followee): Pair) -> &History {
        &self.pairs[(follower * FOLLOWEES + followee) as usize]
    }

    /// Changes pairs of some followers, who are on one host and have no other writer, until the end.
    pub fn write(&self, store: &Fleet, host: usize, followers: &[u64], seed: u64) -> Story {
        let (mut story, mut random) = (Story::default(), Random(seed));
        while !self.ends() {
            let pair = (followers[random.below(followers.len() as u64) as usize], random.below(FOLLOWEES));
            let history = self.history(pair);
            // Now and then there is nothing to change.
            let exists = history.last() == (random.below(8) == 0);
            let action = if exists { EdgeAction::Follow } else { EdgeAction::Unfollow };
            history.begin(exists);
            match story.write(store, action, edge_of(pair)) {
                Outcome::Acknowledged(position) => {
                    history.acknowledge(position);
                    self.seen.lock().unwrap().advance(position);
                    self.note_recent(pair);
                    add(&self.counts.writes, 1);
                    self.services.served(Service::Write(host));
                    std::thread::sleep(Duration::from_millis(3));
                }
                Outcome::Unknown => self.note_recent(pair),
                Outcome::Refused => {
                    history.refuse();
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        }
        story
    }

    fn note_recent(&self, pair: Pair) {
        let mut recent = self.recent.lock().unwrap();
        recent.push(pair);
        if recent.len() > 400 {
            recent.drain(..200);
        }
    }

    /// What a caller has seen: nothing, one write, or all of them.
    fn token(&self, pair: Pair, random: &mut Random) -> Frontier {
        match random.below(10) {
            0..4 => Frontier::default(),
            4..7 => self.history(pair).newest().map(|(_, position)| position.into()).unwrap_or_default(),
            _ => self.seen.lock().unwrap().clone(),
        }
    }

    /// A pair of one of these followers, mostly one that was just changed.
    fn choose(&self, followers: &[u64], random: &mut Random) -> Pair {
        let recent = self.recent.lock().unwrap();
        let found = recent.get(random.below(recent.len().max(1) as u64) as usize);
        match found.filter(|pair| random.below(2) == 0 && followers.contains(&pair.0)) {
            Some(pair) => *pair,
            None => (followers[random.below(followers.len() as u64) as usize], random.below(FOLLOWEES)),
        }
    }

    /// Checks pairs of some followers until the end. If they are all on one host, its checks are observed.
    pub fn check(&self, store: &RwLock<Fleet>, host: Option<usize>, followers: &[u64], seed: u64) {
        let mut random = Random(seed);
        while !self.ends() {
            let store = store.read().unwrap().clone();
            let count = if random.below(3) == 0 { 1 } else { 1 + random.below(BULK) };
            let pairs: Vec<Pair> = (0..count).map(|_| self.choose(followers, &mut random)).collect();
            let token = self.token(pairs[0], &mut random);
            let edges: Vec<Edge> = pairs.iter().map(|&pair| edge_of(pair)).collect();
            let began = Instant::now();
            let found = match &edges[..] {
                // As a RESP connection asks.
                [edge] if let Some(answer) = store.contains_now(KIND, *edge, &token) => Ok(vec![answer]),
                edges => block_on(store.contains(KIND, edges, &token)),
            };
            let Some(found) = self.answered(found, &token, host.map(Service::Check)) else { continue };
            add(&self.counts.checks, count);
            let read = Observed { store: &store, began, ended: Instant::now(), token: &token };
            for (pair, answer) in pairs.into_iter().zip(found) {
                self.judge(&read, pair, answer);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The answer of a read, unless it was refused.
    fn answered<T>(&self, answer: Result<T>, token: &Frontier, service: Option<Service>) -> Option<T> {
        match answer {
            Ok(answer) => {
                add(&self.counts.with_tokens, u64::from(!token.is_empty()));
                if let Some(service) = service.filter(|_| token.is_empty()) {
                    self.services.served(service);
                }
                Some(answer)
            }
            Err(Error::Unavailable { .. } | Error::Overloaded { .. } | Error::NotYetVisible { .. }) => {
                add(&self.counts.refused_reads, 1);
                std::thread::sleep(Duration::from_millis(5));
                None
            }
            Err(other) => {
                self.wrong.lock().unwrap().push(format!("a read failed: {other}"));
                None
            }
        }
    }

    /// Lists and counts of the users of one host, until the end.
    pub fn list(&self, store: &RwLock<Fleet>, host: usize, users: &Users, seed: u64) {
        let mut random = Random(seed);
        while !self.ends() {
            let store = store.read().unwrap().clone();
            let followers_of = random.below(3) > 0;
            let among = if followers_of { &users.followees } else { &users.followers };
            let number = among[random.below(among.len() as u64) as usize];
            let pairs: Vec<Pair> = match followers_of {
                true => (0..FOLLOWERS).map(|follower| (follower, number)).collect(),
                false => (0..FOLLOWEES).map(|followee| (number, followee)).collect(),
            };
            let token = self.token(pairs[random.below(pairs.len() as u64) as usize], &mut random);
            let side = if followers_of { Side::Followers } else { Side::Following };
            let of = if followers_of { followee(number) } else { follower(number) };
            let listed =
                Listed { side, of, pairs, service: followers_of.then_some(Service::Followers(host)) };
            if random.below(3) == 0 {
                self.count(&store, &listed, &token);
            } else {
                self.list_one(&store, &listed, &token);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn list_one(&self, store: &Fleet, listed: &Listed, token: &Frontier) {
        let list = EdgeList { kind: KIND, side: listed.side, of: listed.of };
        let began = Instant::now();
        let found = block_on(store.list(list, None, 1_000, token));
        let Some(found) = self.answered(found, token, listed.service) else { return };
        add(&self.counts.lists, 1);
        let read = Observed { store, began, ended: Instant::now(), token };
        let count = found.len();
        let mut found: BTreeSet<Id> = found.into_iter().map(|entry| entry.id).collect();
        let are_once = found.len() == count;
        for &pair in &listed.pairs {
            let other = if listed.side == Side::Followers { follower(pair.0) } else { followee(pair.1) };
            let exists = found.remove(&other);
            self.judge(&read, pair, exists);
        }
        if !are_once || !found.is_empty() {
            let what =
                format!("{:?} of {} has ids twice or that nobody wrote: {found:?}", listed.side, listed.of);
            self.wrong.lock().unwrap().push(what);
        }
    }

    /// A count is between what must be and what may be.
    fn count(&self, store: &Fleet, listed: &Listed, token: &Frontier) {
        let began = Instant::now();
        let found = block_on(store.counts(KIND, &[listed.of], token));
        // It needs the host's follower side in any case.
        let Some(found) = self.answered(found, token, listed.service) else { return };
        add(&self.counts.counts, 1);
        let read = Observed { store, began, ended: Instant::now(), token };
        let may_be = |pair: &Pair, exists| self.history(*pair).allows(read.of(*pair), exists);
        let least = listed.pairs.iter().filter(|pair| !may_be(pair, false)).count() as u64;
        let most = listed.pairs.iter().filter(|pair| may_be(pair, true)).count() as u64;
        let count = found[0].on(listed.side);
        if count < least || count > most {
            let at = began.duration_since(self.began).as_secs_f64();
            self.wrong.lock().unwrap().push(format!(
                "{:?} of {} at {at:.3} s with {token:?} are {count}, not {least} to {most}",
                listed.side, listed.of
            ));
        }
    }

    fn judge(&self, read: &Observed<'_>, pair: Pair, exists: bool) {
        let (read, history) = (read.of(pair), self.history(pair));
        if !history.allows(read, exists) {
            let described = history.describe(read, self.began);
            self.wrong.lock().unwrap().push(format!("{pair:?} {exists} {described}"));
        }
    }

    /// When nobody writes any more, every answer of a store is what the log says.
    pub fn settled(&self, store: &Fleet, edges: &BTreeSet<Edge>, seen: &Frontier) {
        let pairs: Vec<Pair> =
            (0..FOLLOWERS).flat_map(|of| (0..FOLLOWEES).map(move |number| (of, number))).collect();
        for pairs in pairs.chunks(400) {
            let asked: Vec<Edge> = pairs.iter().map(|&pair| edge_of(pair)).collect();
            let expected: Vec<bool> = asked.iter().map(|edge| edges.contains(edge)).collect();
            for token in [Frontier::EMPTY, seen] {
                assert_eq!(block_on(store.contains(KIND, &asked, token)).unwrap(), expected);
            }
        }
    }
}

/// Users of one host.
#[derive(Default)]
pub struct Users {
    pub followers: Vec<u64>,
    pub followees: Vec<u64>,
}

impl Users {
    /// Those of each host: shards are spread over the hosts in turn.
    pub fn by_host(store: &Fleet) -> [Self; 2] {
        [0, 1].map(|host| {
            let is_here = |id: Id| usize::from(store.shard_of(id).0 % 2) == host;
            Self {
                followers: (0..FOLLOWERS).filter(|&number| is_here(follower(number))).collect(),
                followees: (0..FOLLOWEES).filter(|&number| is_here(followee(number))).collect(),
            }
        })
    }
}

/// A list or a count that is read, and what it is of.
struct Listed {
    side: Side,
    of: Id,
    pairs: Vec<Pair>,
    service: Option<Service>,
}

/// A read of many pairs.
struct Observed<'a> {
    store: &'a Fleet,
    began: Instant,
    ended: Instant,
    token: &'a Frontier,
}

impl Observed<'_> {
    fn of(&self, pair: Pair) -> Read {
        let shard = self.store.shard_of(follower(pair.0));
        let token: Option<Position> = self.token.get(shard).map(|sequence| sequence.on(shard));
        Read { began: self.began, ended: self.ended, token }
    }
}
