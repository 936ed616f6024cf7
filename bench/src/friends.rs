//! `friends`: pages of 50 friends of accounts that differ in how many they follow and are followed by, in process.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, bail};
use kinfolk_core::graph::{EdgeList, EdgeStore, Side};
use kinfolk_core::{Frontier, Id};
use kinfolk_embedded::{Embedded, Settings};
use tokio::runtime::Runtime;

use crate::crowd::{distinct, shrunk};
use crate::dataset::{Dataset, KIND, add_edges_at_random_times};
use crate::histogram::Histogram;
use crate::measurement::{Recorder, Row};
use crate::options::Options;
use crate::random::Random;
use crate::survey::{Pair, Survey, Users};

const NAME: &str = "friends";
const PAGE: usize = 50;
const CALLS: usize = 5_000;
/// The same for accounts of which a page may take long.
const LARGE_CALLS: usize = 500;
const WALK_PAGE: usize = 1_000;

const ROWS: &[Row] = &[
    Row::new("small_p50", "page of 50 of 100 friends, nobody else, p50", "µs"),
    Row::new("small_p99", "the same, p99", "µs"),
    Row::new("follows_p50", "the same, who follows 10,000, p50", "µs"),
    Row::new("follows_p99", "the same, p99", "µs"),
    Row::new("followed_p50", "the same, who is followed by 100,000, p50", "µs"),
    Row::new("followed_p99", "the same, p99", "µs"),
    Row::new("mutual_p50", "page of 50 of 10,000 friends, nobody else, p50", "µs"),
    Row::new("mutual_p99", "the same, p99", "µs"),
    Row::new("both_p50", "the same, who is followed by 100,000, p50", "µs"),
    Row::new("both_p99", "the same, p99", "µs"),
    Row::new("largest_p50", "page of 50 of 10,000 friends of the longest list, p50", "µs"),
    Row::new("largest_p99", "the same, p99", "µs"),
    Row::new("mutual_times_small", "10,000 friends / 100 friends, p50", "×"),
];

/// A sort of account.
struct Sort {
    key: &'static str,
    accounts: u64,
    friends: u64,
    /// How many more it follows, and is followed by.
    followees: u64,
    followers: u64,
}

/// How many of each there are, on a graph of so many users.
fn sorts(users: Users) -> [Sort; 5] {
    let many = 10_000 / shrunk(users);
    let most = (10 * many).min(users.count() / 10 * 9);
    let sort = |key, accounts, friends, followees, followers| Sort {
        key,
        accounts,
        friends,
        followees: followees - friends,
        followers: followers - friends,
    };
    [
        sort("small", 200, 100, 100, 100),
        sort("follows", 16, 100, many, 100),
        sort("followed", 16, 100, 100, most),
        sort("mutual", 16, many, many, many),
        sort("both", 16, many, many, most),
    ]
}

/// The accounts of all sorts, by number: those after the graph's own users, sort after sort.
fn accounts(users: Users) -> Vec<(Sort, Vec<u64>)> {
    let mut next = users.last + 1;
    let all = sorts(users).into_iter().map(|sort| {
        let first = next;
        next += sort.accounts;
        (sort, (first..next).collect())
    });
    all.collect()
}

pub fn run(options: &Options) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let survey = &data.survey;
    let folder =
        data.store_folder_filled("store-friends", Settings::default(), |store| fill(store, survey))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut recorder = Recorder::new(ROWS);
    for round in 1..=options.rounds {
        eprintln!("{NAME}, round {round}");
        let store = Embedded::open(&folder, Settings::default())?;
        let mut medians = Vec::new();
        for (sort, accounts) in accounts(survey.users) {
            let calls = if sort.key == "small" { CALLS } else { LARGE_CALLS };
            let latency = read(&runtime, &store, &accounts, calls)?;
            recorder.record_us(sort.key, &latency);
            medians.push((sort.key, latency.percentile_ns(0.5)));
        }
        recorder.record_us("largest", &read(&runtime, &store, &[survey.largest], LARGE_CALLS)?);
        let median =
            |key: &str| medians.iter().find(|(known, _)| *known == key).map_or(0.0, |median| median.1);
        recorder.record("mutual_times_small", median("mutual") / median("small"));
        store.close()?;
    }
    recorder.finish(NAME, data.size, notes(survey)).publish(&options.results)
}

fn notes(survey: &Survey) -> Vec<String> {
    let sorts = sorts(survey.users);
    let told = sorts.iter().map(|sort| {
        let (followees, followers) = (sort.friends + sort.followees, sort.friends + sort.followers);
        format!("{}: {} of {followees} followed and {followers} followers", sort.key, sort.friends)
    });
    vec![
        format!("friends of each account: {}", told.collect::<Vec<_>>().join("; ")),
        format!("the longest list has {} followers", survey.largest_followers),
        format!("{CALLS} first pages a round of small accounts, {LARGE_CALLS} of others, one at a time"),
    ]
}

/// Adds the accounts, and lets the largest follow some of its followers.
fn fill(store: &Embedded, survey: &Survey) -> Result<()> {
    eprintln!("adding users with friends");
    let mut edges = Vec::new();
    for (sort, accounts) in accounts(survey.users) {
        for account in accounts {
            let mut random = Random::new(account);
            let others =
                distinct(&mut random, survey.users, sort.friends + sort.followees.max(sort.followers));
            let (friends, others) = others.split_at(sort.friends as usize);
            let follows = friends.iter().chain(&others[..sort.followees as usize]);
            edges.extend(follows.map(|&followee| Pair { follower: account, followee }));
            let followed = friends.iter().chain(&others[..sort.followers as usize]);
            edges.extend(followed.map(|&follower| Pair { follower, followee: account }));
        }
    }
    let many = 10_000 / shrunk(survey.users);
    let apart = (survey.largest_followers / many).max(1) as usize;
    let mut after = None;
    loop {
        let page = store.list_page(
            EdgeList { kind: KIND, side: Side::Followers, of: Id::Integer(survey.largest) },
            after,
            WALK_PAGE * apart,
        )?;
        edges.extend(page.iter().step_by(apart).filter_map(|entry| match entry.id {
            Id::Integer(followee) => Some(Pair { follower: survey.largest, followee }),
            Id::Uuid(_) => None,
        }));
        match page.last() {
            Some(&last) if page.len() == WALK_PAGE * apart => after = Some(last),
            _ => break,
        }
    }
    add_edges_at_random_times(store, "store-friends", edges)
}

fn read(runtime: &Runtime, store: &Embedded, accounts: &[u64], calls: usize) -> Result<Histogram> {
    let mut histogram = Histogram::default();
    for &account in accounts.iter().cycle().take(calls) {
        let started = Instant::now();
        // One more tells whether there is a next page.
        let page = store.friends(KIND, Id::Integer(account), None, PAGE + 1, Frontier::EMPTY);
        let entries = black_box(runtime.block_on(page)?);
        histogram.record(started.elapsed());
        if entries.len() != PAGE + 1 {
            bail!("a page of friends of {account} has {} entries, not {}", entries.len(), PAGE + 1);
        }
    }
    Ok(histogram)
}
