//! `pages`: list pages of the largest account and of small ones, and a walk through the longest list.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, bail};
use kinfolk_core::Id;
use kinfolk_core::graph::{EdgeList, ListKey, Side};
use kinfolk_embedded::Embedded;

use crate::dataset::{Dataset, KIND};
use crate::histogram::Histogram;
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::random::Random;
use crate::size::Size;

const NAME: &str = "pages";
const PAGES: usize = 20_000;
const PAGE: usize = 50;
const WALK_PAGE: usize = 1_000;

const ROWS: &[Row] = &[
    Row::new("largest_p50", "page of 50 followers, anywhere in the longest list, p50", "µs"),
    Row::new("largest_p99", "page of 50 followers, anywhere in the longest list, p99", "µs")
        .target(Target::Below(1_000.0))
        .target_from(Size::HUNDRED_MILLION),
    Row::new("largest_first_p50", "first page of 50 followers of the longest list, p50", "µs"),
    Row::new("largest_first_p99", "first page of 50 followers of the longest list, p99", "µs"),
    Row::new("small_p50", "page of 50 followers of a small account, p50", "µs"),
    Row::new("small_p99", "page of 50 followers of a small account, p99", "µs"),
    Row::new("times_small_p50", "longest list / small account, p50", "×")
        .target(Target::AtMost(2.0))
        .target_from(Size::HUNDRED_MILLION),
    Row::new("times_small_p99", "longest list / small account, p99", "×")
        .target(Target::AtMost(2.0))
        .target_from(Size::HUNDRED_MILLION),
    Row::new("following_p50", "page of 50 followed of a small account, p50", "µs"),
    Row::new("following_p99", "page of 50 followed of a small account, p99", "µs"),
    Row::new("walk", "whole follower list, pages of 1,000", "ids/s").target(Target::AtLeast(500_000.0)),
];

/// Which page to read.
pub struct Page {
    pub side: Side,
    pub of: Id,
    pub after: Option<ListKey>,
}

pub fn run(options: &Options) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let store = data.open()?;
    let survey = &data.survey;
    let largest = Id::Integer(survey.largest);
    let mut recorder = Recorder::new(ROWS);
    for round in 1..=options.rounds {
        eprintln!("{NAME}, round {round}");
        let started = Instant::now();
        let walk = walk(&store, largest)?;
        recorder.record("walk", walk.ids as f64 / started.elapsed().as_secs_f64());
        if walk.ids != survey.largest_followers {
            bail!("the longest list has {} followers, not {}", walk.ids, survey.largest_followers);
        }
        let random = &mut Random::new(u64::from(round));
        let anywhere = read(&store, || Page {
            side: Side::Followers,
            of: largest,
            after: Some(random.pick(&walk.places)),
        })?;
        let first = read(&store, || Page { side: Side::Followers, of: largest, after: None })?;
        let small = read(&store, || small_page(random, Side::Followers, &survey.small_by_followers))?;
        let following = read(&store, || small_page(random, Side::Following, &survey.small_by_following))?;
        for (share, name) in [(0.5, "p50"), (0.99, "p99")] {
            let mut record = |key: &str, figure| recorder.record(&format!("{key}_{name}"), figure);
            record("largest", anywhere.percentile_us(share));
            record("largest_first", first.percentile_us(share));
            record("small", small.percentile_us(share));
            record("following", following.percentile_us(share));
            record("times_small", anywhere.percentile_ns(share) / small.percentile_ns(share));
        }
    }
    store.close()?;
    let notes = vec![format!(
        "{PAGES} pages a round and row; the longest list has {} followers; a small account has 51 to 500, {} of them in turn",
        survey.largest_followers,
        survey.small_by_followers.len()
    )];
    recorder.finish(NAME, data.size, notes).publish(&options.results)
}

/// The first page of one of some accounts.
pub fn small_page(random: &mut Random, side: Side, accounts: &[u64]) -> Page {
    Page { side, of: Id::Integer(random.pick(accounts)), after: None }
}

/// Reads full pages, and returns how long each took.
pub fn read(store: &Embedded, mut page: impl FnMut() -> Page) -> Result<Histogram> {
    let mut histogram = Histogram::default();
    for _ in 0..PAGES {
        let Page { side, of, after } = page();
        let started = Instant::now();
        let entries = black_box(store.list_page(EdgeList { kind: KIND, side, of }, after, PAGE)?);
        histogram.record(started.elapsed());
        if entries.len() < PAGE {
            bail!("a page has {} entries, not {PAGE}", entries.len());
        }
    }
    Ok(histogram)
}

struct Walk {
    ids: u64,
    /// Places in the list that a full page follows.
    places: Vec<ListKey>,
}

fn walk(store: &Embedded, of: Id) -> Result<Walk> {
    let mut walk = Walk { ids: 0, places: Vec::new() };
    let mut after = None;
    loop {
        let entries =
            store.list_page(EdgeList { kind: KIND, side: Side::Followers, of }, after, WALK_PAGE)?;
        walk.ids += entries.len() as u64;
        let Some(&last) = entries.last().filter(|_| entries.len() == WALK_PAGE) else { break };
        // A place in the middle of this page: at least half a page follows it.
        walk.places.push(entries[WALK_PAGE / 2]);
        after = Some(last);
    }
    if walk.places.is_empty() {
        bail!("the longest list has only {} followers: take a larger graph", walk.ids);
    }
    Ok(walk)
}
