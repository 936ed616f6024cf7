//! `feed`: pages of home feeds in process and over REST, deliveries to inboxes and the memory that inboxes take, beside
//! Redis doing the same.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use kinfolk_core::Id;
use kinfolk_core::feeds::{Post, PostKey};
use kinfolk_embedded::Embedded;

use crate::cast::Cast;
use crate::client::Client;
use crate::dataset::{Dataset, Scratch};
use crate::fan_out::{Delivered, Followers, InboxMemory, deliver, inbox_memory_in_child, quiet};
use crate::feed_redis::RedisFeeds;
use crate::histogram::Histogram;
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::posting::{full_page, runtime, wake};
use crate::random::Random;
use crate::redis::Redis;
use crate::server::Server;

const NAME: &str = "feed";
const PAGE: usize = 50;
/// So many pages are read in a round of each sort.
const PAGES: u64 = 20_000;
const PAGES_BELOW: u64 = 2_000;
const PAGES_SERVED: usize = 5_000;

const BELOW_2_MS: Target = Target::Below(2.0);

const ROWS: &[Row] = &[
    Row::new("page_p50", "feed page of 50: 400 followees, 20 of them pulled, in process, p50", "ms"),
    Row::new("page_p99", "the same, p99", "ms").target(BELOW_2_MS),
    Row::new("page_rate", "the same, one at a time", "/s"),
    Row::new("first_p50", "feed page of 50 of a user without an inbox, which is filled, p50", "ms"),
    Row::new("first_p99", "the same, p99", "ms"),
    Row::new("below_p50", "feed page of 50 below the inbox, from 400 authors, p50", "ms"),
    Row::new("below_p99", "the same, p99", "ms"),
    Row::new("rest_p50", "GET /v1/users/{id}/feed, 50 posts, one connection, p50", "ms"),
    Row::new("rest_p99", "the same, p99", "ms").target(BELOW_2_MS),
    Row::new(
        "redis_page_p50",
        "the same from Redis: 21 ZREVRANGE in a pipeline, a merge and MGET, p50",
        "ms",
    ),
    Row::new("redis_page_p99", "the same, p99", "ms"),
    Row::new("fan_out", "fan-out, inbox entries", "/s").target(Target::AtLeast(500_000.0)),
    Row::new("redis_fan_out", "the same, Redis: pipelined ZADD and ZREMRANGEBYRANK", "/s"),
    Row::new("fan_out_times", "inbox entries/s, Kinfolk / Redis", "×"),
    Row::new("fan_out_cpu", "processor time an inbox entry, the whole process with its posts", "µs"),
    Row::new("redis_fan_out_cpu", "the same, Redis without its client", "µs"),
    Row::new("posts", "durable posts that were delivered", "/s"),
    Row::new("inbox", "memory of an inbox of 200, growth of the process", "bytes"),
    Row::new("inbox_counted", "the same, as the store counts it", "bytes"),
    Row::new("redis_inbox", "the same, sorted set in Redis, as MEMORY USAGE tells", "bytes"),
    Row::new("inbox_times", "memory of an inbox, Redis / Kinfolk", "×"),
];

pub fn run(options: &Options) -> Result<()> {
    measure(options, inbox_memory_in_child)
}

/// Measures both sides alternately. `inbox_memory` runs on a store in which nobody has read.
pub fn measure(options: &Options, inbox_memory: fn(&Path, Cast) -> Result<InboxMemory>) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let cast = Cast::of(data.survey.users);
    let prepared = cast.store_folder(&data)?;
    let followers = cast.speaker_followers();
    let with_redis = !options.without_redis && !options.in_process;
    let mut redis = with_redis.then(|| start_redis(&data, cast, &followers)).transpose()?;
    let mut recorder = Recorder::new(ROWS);
    let mut inboxes = 0;
    for round in 1..=options.rounds {
        eprintln!("{NAME}, round {round}");
        let scratch = Scratch::copy_of(&prepared, data.folder().join("store-scratch"))?;
        let memory = inbox_memory(scratch.path(), cast)?;
        recorder.record("inbox", memory.bytes);
        recorder.record("inbox_counted", memory.counted_bytes);
        inboxes = memory.inboxes;

        let store = Embedded::open(scratch.path(), cast.settings())?;
        let expected = pages(&mut recorder, &store, cast)?;
        wake(&store, cast.fans().collect())?;
        quiet(&store);
        let delivered = deliver(&store, cast, &followers, options.round_time())?;
        record_delivered(&mut recorder, &delivered);
        store.close()?;
        if !options.in_process {
            let server = Server::start(data.kinfolk(), scratch.path())?;
            served(&mut recorder, &server, &expected)?;
            server.stop()?;
        }
        if let Some(redis) = &mut redis {
            let bytes = redis.inbox_bytes()?;
            recorder.record("redis_inbox", bytes);
            recorder.record("inbox_times", bytes / memory.bytes.max(1.0));
            compare(&mut recorder, options, redis, (&delivered, &followers), &expected)?;
        }
    }
    recorder.finish(NAME, data.size, notes(cast, options, inboxes)).publish(&options.results)
}

fn start_redis(data: &Dataset, cast: Cast, followers: &Followers) -> Result<RedisFeeds> {
    RedisFeeds::fill(Redis::start(&data.folder().join("redis"))?, cast, followers)
}

fn notes(cast: Cast, options: &Options, inboxes: u64) -> Vec<String> {
    let (followed, pulled) = cast.followed();
    let fans = cast.fans().count();
    vec![
        format!(
            "{} readers were added who follow {followed} authors with posts, {pulled} of them with at least {} \
             followers; posts of all of them are mixed in time and have a payload of 51 bytes",
            cast.readers().count(),
            cast.threshold()
        ),
        format!(
            "fan-out: {} s of posts by {} authors with up to {} followers, of {fans} users who all have full or nearly \
             full inboxes; the time is to the last entry; posts are durable; Redis gets the same pushes in the same \
             order, and keeps nothing on disk",
            options.seconds,
            cast.speakers().count(),
            cast.threshold() - 1
        ),
        "pages of Redis have the same ids as those in process; it does not look for deleted posts or whether an author \
         is still followed"
            .to_owned(),
        format!("memory is the growth of a process while {inboxes} users get inboxes after as many others have"),
    ]
}

/// The newest ids of each reader.
type Expected = Vec<(u64, Vec<u64>)>;

/// Pages in process. Nobody of the readers has an inbox before.
fn pages(recorder: &mut Recorder, store: &Embedded, cast: Cast) -> Result<Expected> {
    let readers: Vec<u64> = cast.readers().collect();
    let mut expected = Vec::new();
    let mut random = Random::new(3);
    runtime()?.block_on(async {
        let mut first = Histogram::default();
        for &reader in &readers {
            let page = timed(&mut first, store, reader, None).await?;
            expected.push((reader, page.iter().map(number).collect::<Result<_>>()?));
        }
        recorder.record_ms("first", &first);

        let started = Instant::now();
        let mut warm = Histogram::default();
        for _ in 0..cast.scaled(PAGES) {
            timed(&mut warm, store, random.pick(&readers), None).await?;
        }
        recorder.record("page_rate", warm.total() as f64 / started.elapsed().as_secs_f64());
        recorder.record_ms("page", &warm);

        let mut below = Histogram::default();
        // Twice as many as an inbox holds are certainly below it.
        let deep = cast.settings().inbox_entries * 2;
        for _ in 0..cast.scaled(PAGES_BELOW) {
            let reader = random.pick(&readers);
            let after = full_page(store, reader, None, deep).await?.last().map(Post::key);
            timed(&mut below, store, reader, after).await?;
        }
        recorder.record_ms("below", &below);
        anyhow::Ok(())
    })?;
    Ok(expected)
}

async fn timed(
    histogram: &mut Histogram,
    store: &Embedded,
    reader: u64,
    after: Option<PostKey>,
) -> Result<Vec<Post>> {
    let started = Instant::now();
    let page = full_page(store, reader, after, PAGE).await?;
    histogram.record(started.elapsed());
    Ok(page)
}

fn number(post: &Post) -> Result<u64> {
    match post.id {
        Id::Integer(id) => Ok(id),
        other => bail!("post {other} is in a store of integers"),
    }
}

fn record_delivered(recorder: &mut Recorder, delivered: &Delivered) {
    let seconds = delivered.elapsed.as_secs_f64();
    recorder.record("fan_out", delivered.entries as f64 / seconds);
    recorder.record("posts", delivered.posts.len() as f64 / seconds);
    recorder.record("fan_out_cpu", delivered.cpu_seconds * 1e6 / delivered.entries.max(1) as f64);
}

fn served(recorder: &mut Recorder, server: &Server, expected: &Expected) -> Result<()> {
    let mut http = Client::connect(server.http)?;
    let mut latency = Histogram::default();
    for (reader, ids) in expected.iter().cycle().take(PAGES_SERVED) {
        let path = format!("/v1/users/{reader}/feed?limit={PAGE}");
        let started = Instant::now();
        let body = http.get(&path, &server.key)?;
        latency.record(started.elapsed());
        let body: serde_json::Value = serde_json::from_slice(body)?;
        let items = body["items"].as_array().map_or(&[][..], Vec::as_slice);
        let served: Vec<u64> = items.iter().filter_map(|item| item["id"].as_str()?.parse().ok()).collect();
        same(*reader, &served, ids)?;
    }
    recorder.record_ms("rest", &latency);
    Ok(())
}

fn compare(
    recorder: &mut Recorder,
    options: &Options,
    redis: &mut RedisFeeds,
    (delivered, followers): (&Delivered, &Followers),
    expected: &Expected,
) -> Result<()> {
    let mut latency = Histogram::default();
    for (reader, ids) in expected.iter().cycle().take(PAGES_SERVED) {
        let (found, elapsed) = redis.page(*reader, PAGE)?;
        latency.record(elapsed);
        same(*reader, &found, ids)?;
    }
    recorder.record_ms("redis_page", &latency);

    let pushed = redis.push(&delivered.posts, followers, options.round_time())?;
    let rate = pushed.entries as f64 / pushed.elapsed.as_secs_f64();
    recorder.record("redis_fan_out", rate);
    recorder.record("redis_fan_out_cpu", pushed.cpu_seconds * 1e6 / pushed.entries.max(1) as f64);
    recorder.record("fan_out_times", delivered.entries as f64 / delivered.elapsed.as_secs_f64() / rate);
    Ok(())
}

fn same(reader: u64, found: &[u64], expected: &[u64]) -> Result<()> {
    if found == expected { Ok(()) } else { bail!("the feed of user {reader} is {found:?}, not {expected:?}") }
}
