//! `suggest`: suggestions in a request, found by the bounded walk; in process, over the Redis protocol and over REST,
//! and what others notice of walks.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use kinfolk_core::suggestions::{Ranking, SuggestionStore, WalkBounds};
use kinfolk_core::{Frontier, Id};
use kinfolk_embedded::{Embedded, Settings};

use crate::client::{Client, leading_number};
use crate::crowd::{Between, Crowd};
use crate::dataset::Dataset;
use crate::histogram::Histogram;
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::pace::by_the_clock;
use crate::random::Random;
use crate::server::Server;
use crate::survey::Survey;

const NAME: &str = "suggest";
/// The most that a walk returns.
const RESULTS: usize = 1_000;
/// What is asked for over REST and the Redis protocol.
const LIMIT: usize = 20;
/// How many connections keep asking for suggestions of one user, beside others.
const WALKERS: usize = 8;

/// How often others ask, by the clock.
const CHECKS_PER_SECOND: u32 = 2_000;
const SUGGESTIONS_PER_SECOND: u32 = 40;

const BELOW_10_MS: Target = Target::Below(10.0);
const BELOW_50_MS: Target = Target::Below(50.0);

const ROWS: &[Row] = &[
    Row::new("few_cold_p50", "suggestions, 500 × 500, first of each user, in process, p50", "ms"),
    Row::new("few_cold_p99", "the same, p99", "ms").target(BELOW_10_MS),
    Row::new("few_p50", "suggestions, 500 × 500, in process, p50", "ms"),
    Row::new("few_p99", "the same, p99", "ms").target(BELOW_10_MS),
    Row::new("few_rate", "the same, one at a time", "/s"),
    Row::new(
        "many_cold_p50",
        "suggestions, 500 × 500 of 501 to 10,000, first of each user, in process, p50",
        "ms",
    ),
    Row::new("many_cold_p99", "the same, p99", "ms").target(BELOW_50_MS),
    Row::new("many_p50", "suggestions, 500 × 500 of 501 to 10,000, in process, p50", "ms"),
    Row::new("many_p99", "the same, p99", "ms").target(BELOW_50_MS),
    Row::new("many_rate", "the same, one at a time", "/s"),
    Row::new("few_resp_p50", "SUGGEST, 500 × 500, one connection, p50", "ms"),
    Row::new("few_resp_p99", "the same, p99", "ms").target(BELOW_10_MS),
    Row::new("many_resp_p50", "SUGGEST, 500 × 500 of 501 to 10,000, one connection, p50", "ms"),
    Row::new("many_resp_p99", "the same, p99", "ms").target(BELOW_50_MS),
    Row::new("few_rest_p50", "GET /v1/users/{id}/suggestions, 500 × 500, one connection, p50", "ms"),
    Row::new("few_rest_p99", "the same, p99", "ms").target(BELOW_10_MS),
    Row::new(
        "many_rest_p50",
        "GET /v1/users/{id}/suggestions, 500 × 500 of 501 to 10,000, one connection, p50",
        "ms",
    ),
    Row::new("many_rest_p99", "the same, p99", "ms").target(BELOW_50_MS),
    Row::new("check_alone_p50", "SISMEMBER, 2,000 a second by the clock, nothing else, p50", "ms"),
    Row::new("check_alone_p99", "the same, p99", "ms"),
    Row::new("check_beside_p50", "the same while 8 connections ask for suggestions of one user, p50", "ms"),
    Row::new("check_beside_p99", "the same, p99", "ms"),
    Row::new(
        "other_alone_p50",
        "SUGGEST of users who follow 51 to 500, 40 a second by the clock, nothing else, p50",
        "ms",
    ),
    Row::new("other_alone_p99", "the same, p99", "ms"),
    Row::new("other_beside_p50", "the same while 8 connections ask for those of one other user, p50", "ms"),
    Row::new("other_beside_p99", "the same, p99", "ms"),
    Row::new("walks", "suggestions of that one user meanwhile", "/s"),
];

const SORTS: [(&str, Between); 2] = [("few", Between::Few), ("many", Between::Many)];

pub fn run(options: &Options) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let crowd = Crowd::of(data.survey.users);
    let folder = crowd.store_folder(&data)?;
    let mut recorder = Recorder::new(ROWS);
    for round in 1..=options.rounds {
        eprintln!("{NAME}, round {round}");
        let store = Embedded::open(&folder, Settings::default())?;
        in_process(&mut recorder, &store, crowd)?;
        store.close()?;
        if !options.in_process {
            let server = Server::start(data.kinfolk(), &folder)?;
            served(&mut recorder, &server, crowd)?;
            beside(&mut recorder, options, &server, crowd, &data.survey)?;
            server.stop()?;
        }
    }
    let askers = crowd.askers(Between::Few).len();
    let notes = vec![
        format!(
            "{askers} users of each sort were added who follow {} each; these follow exactly {0}, or more up to {}, \
             of the graph's users at random at random times",
            crowd.some(),
            crowd.many()
        ),
        format!(
            "each of them is walked for once a round and row; in process up to {RESULTS} results, over REST and the \
             Redis protocol {LIMIT}"
        ),
        "the first of each user comes right after the store was opened; files are in the page cache; SUGGEST is the \
         first of each user since the server's start, the request over REST the second"
            .to_owned(),
        format!(
            "{} s alone and {0} s beside walks; an answer that comes late delays the next ones, which counts; all \
             clients run on the same cores",
            options.seconds
        ),
    ];
    recorder.finish(NAME, data.size, notes).publish(&options.results)
}

fn in_process(recorder: &mut Recorder, store: &Embedded, crowd: Crowd) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let per_node = Some(crowd.some() as usize);
    let bounds = WalkBounds { per_node, results: RESULTS, ranking: Ranking::Count };
    for (key, between) in SORTS {
        let askers = crowd.askers(between);
        let cold = runtime.block_on(walk(store, &askers, bounds))?;
        recorder.record_ms(&format!("{key}_cold"), &cold);
        let started = Instant::now();
        let warm = runtime.block_on(walk(store, &askers, bounds))?;
        recorder.record_ms(key, &warm);
        recorder.record(&format!("{key}_rate"), askers.len() as f64 / started.elapsed().as_secs_f64());
    }
    Ok(())
}

async fn walk(store: &Embedded, askers: &[u64], bounds: WalkBounds) -> Result<Histogram> {
    let mut histogram = Histogram::default();
    for &asker in askers {
        let started = Instant::now();
        let found = black_box(store.candidates(Id::Integer(asker), bounds, Frontier::EMPTY).await?);
        histogram.record(started.elapsed());
        if found.is_empty() || !found.is_sorted_by(|one, other| bounds.ranking.compare(one, other).is_lt()) {
            bail!("the {} suggestions of user {asker} are not in order", found.len());
        }
    }
    Ok(histogram)
}

fn served(recorder: &mut Recorder, server: &Server, crowd: Crowd) -> Result<()> {
    let mut resp = Client::resp(server.resp, Some(&server.key))?;
    let mut http = Client::connect(server.http)?;
    for (key, between) in SORTS {
        let askers = crowd.askers(between);
        let mut histogram = Histogram::default();
        for asker in &askers {
            let started = Instant::now();
            let reply = resp.command(&format!("SUGGEST {asker} LIMIT {LIMIT}"))?;
            histogram.record(started.elapsed());
            expect(leading_number(reply))?;
        }
        recorder.record_ms(&format!("{key}_resp"), &histogram);
        let mut histogram = Histogram::default();
        for asker in &askers {
            let path = format!("/v1/users/{asker}/suggestions?limit={LIMIT}");
            let started = Instant::now();
            let body = http.get(&path, &server.key)?;
            histogram.record(started.elapsed());
            let body: serde_json::Value = serde_json::from_slice(body)?;
            expect(body["items"].as_array().map(|items| items.len() as u64))?;
        }
        recorder.record_ms(&format!("{key}_rest"), &histogram);
    }
    Ok(())
}

/// All users that are added have far more candidates than are asked for.
fn expect(suggestions: Option<u64>) -> Result<()> {
    if suggestions == Some(LIMIT as u64) {
        Ok(())
    } else {
        bail!("there are {suggestions:?} suggestions, not {LIMIT}")
    }
}

/// What a client that checks and one that asks for small suggestions notice of walks for one user.
fn beside(
    recorder: &mut Recorder,
    options: &Options,
    server: &Server,
    crowd: Crowd,
    survey: &Survey,
) -> Result<()> {
    let others = Others { server, survey, time: options.round_time() / 2 };
    recorder.record_ms("check_alone", &others.check()?);
    recorder.record_ms("other_alone", &others.suggest()?);
    let asker = crowd.askers(Between::Many)[0];
    let (stop, walked) = (AtomicBool::new(false), AtomicU64::new(0));
    let started = Instant::now();
    let noticed = thread::scope(|scope| {
        let walkers: Vec<_> =
            (0..WALKERS).map(|_| scope.spawn(|| keep_walking(server, asker, &stop, &walked))).collect();
        let noticed = others.check().and_then(|checks| Ok((checks, others.suggest()?)));
        stop.store(true, Ordering::Relaxed);
        for walker in walkers {
            walker.join().map_err(|_| anyhow!("a walker panicked"))??;
        }
        noticed
    });
    recorder.record("walks", walked.into_inner() as f64 / started.elapsed().as_secs_f64());
    let (checks, suggestions) = noticed?;
    recorder.record_ms("check_beside", &checks);
    recorder.record_ms("other_beside", &suggestions);
    Ok(())
}

fn keep_walking(server: &Server, asker: u64, stop: &AtomicBool, walked: &AtomicU64) -> Result<()> {
    let mut client = Client::resp(server.resp, Some(&server.key))?;
    let command = format!("SUGGEST {asker} LIMIT {LIMIT}");
    while !stop.load(Ordering::Relaxed) {
        client.command(&command)?;
        walked.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Clients that have nothing to do with the walks, each for a time. They ask by the clock, so that a long wait counts
/// for everything that was due in it.
struct Others<'a> {
    server: &'a Server,
    survey: &'a Survey,
    time: Duration,
}

impl Others<'_> {
    fn check(&self) -> Result<Histogram> {
        self.ask(CHECKS_PER_SECOND, |random| {
            let pair = self.survey.users.random_pair(random);
            format!("SISMEMBER following:{} {}", pair.follower, pair.followee)
        })
    }

    fn suggest(&self) -> Result<Histogram> {
        self.ask(SUGGESTIONS_PER_SECOND, |random| {
            format!("SUGGEST {} LIMIT {LIMIT}", random.pick(&self.survey.small_by_following))
        })
    }

    fn ask(&self, per_second: u32, command: impl Fn(&mut Random) -> String) -> Result<Histogram> {
        let mut client = Client::resp(self.server.resp, Some(&self.server.key))?;
        let mut random = Random::new(7);
        by_the_clock(self.time, per_second, || client.command(&command(&mut random)).map(drop))
    }
}
