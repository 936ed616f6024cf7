//! What the programs for Rust share: the report of a step, and the churn that a cache has to survive.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::future::Future;
use std::time::{Duration, Instant};

/// What a step gives: nothing, or the reason why the library does not have the feature.
pub type Outcome = Option<&'static str>;

/// Runs a step and prints how it went. Steps panic if something is wrong.
pub async fn report(feature: &str, step: impl Future<Output = Outcome> + Send + 'static) {
    match tokio::spawn(step).await {
        Ok(None) => println!("{feature} yes"),
        Ok(Some(reason)) => println!("{feature} no {reason}"),
        Err(error) => println!("{feature} failed {}", said(&*error.into_panic()).replace('\n', " ")),
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

/// The value of a variable, empty if it is not set.
pub fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// The first of the user ids that belong to this program.
pub fn base() -> u64 {
    variable("USERS").parse().expect("USERS is a number")
}

pub fn following(user: u64) -> String {
    format!("following:{user}")
}

pub fn followers(user: u64) -> String {
    format!("followers:{user}")
}

pub fn ids(from: u64, to: u64) -> Vec<String> {
    (from..to).map(|id| id.to_string()).collect()
}

/// Reads through a cache.
pub trait Reader {
    fn members(&self, key: &str) -> impl Future<Output = BTreeSet<String>> + Send;
    fn size(&self, key: &str) -> impl Future<Output = usize> + Send;
}

/// Writes past a cache.
pub trait Writer: Clone + Send + 'static {
    fn write(&self, command: &'static str, key: String, member: u64) -> impl Future<Output = ()> + Send;
}

/// Another client changes sets while the cache reads. Invalidations come in order, so that once the cache shows the last
/// write, everything that it says must be right. Without `overlap`, the cache reads while no write is under way.
pub async fn churn(reader: &impl Reader, writer: &impl Writer, first: u64, overlap: bool) {
    let mut chance = Chance(first);
    let mark = following(first);
    let mut truth: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    truth.extend((first + 1..first + 11).map(|user| (following(user), BTreeSet::new())));
    if !variable("FOLLOWERS").is_empty() {
        truth.extend((first + 101..first + 121).map(|user| (followers(user), BTreeSet::new())));
    }
    let keys: Vec<_> = truth.keys().cloned().collect();
    assert_eq!(reader.size(&mark).await, 0);
    for turn in 0..50 {
        let mut changes = Vec::new();
        for _ in 0..20 {
            let (user, followee) = (first + 1 + chance.below(10), first + 101 + chance.below(20));
            let command = if chance.below(10) < 6 { "SADD" } else { "SREM" };
            for (key, member) in [(following(user), followee), (followers(followee), user)] {
                match truth.get_mut(&key) {
                    Some(members) if command == "SADD" => _ = members.insert(member.to_string()),
                    Some(members) => _ = members.remove(&member.to_string()),
                    None => {}
                }
            }
            changes.push((command, following(user), followee));
        }
        if !overlap {
            for key in &keys {
                reader.members(key).await;
                reader.size(key).await;
            }
        }
        let other = writer.clone();
        let written = tokio::spawn(async move {
            for (command, key, member) in changes {
                other.write(command, key, member).await;
            }
        });
        while overlap && !written.is_finished() {
            let key = &keys[chance.below(keys.len() as u64) as usize];
            reader.members(key).await;
            reader.size(key).await;
            tokio::task::yield_now().await;
        }
        written.await.expect("writes do not fail");
        writer.write("SADD", mark.clone(), first + 1_000 + turn).await;
        let started = Instant::now();
        while reader.size(&mark).await as u64 != turn + 1 {
            assert!(
                started.elapsed() < Duration::from_secs(10),
                "the cache did not learn of a write for 10 s"
            );
            tokio::task::yield_now().await;
        }
        for key in &keys {
            assert_eq!(reader.members(key).await, truth[key], "turn {turn}, {key}");
            assert_eq!(reader.size(key).await, truth[key].len(), "{key}");
        }
    }
}

/// Numbers that look random, the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
