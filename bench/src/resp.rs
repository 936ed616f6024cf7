//! `resp`: checks and durable follows over the Redis protocol, Kinfolk and Redis alternately under the same client.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};

use crate::dataset::Dataset;
use crate::histogram::Histogram;
use crate::lean_client::{Batch, LeanClient, Measured, Requests};
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::postgres::Postgres;
use crate::random::Random;
use crate::redis::Redis;
use crate::server::{Server, cpu_seconds};
use crate::survey::{Pair, Survey};

const NAME: &str = "resp";
const CONNECTIONS: usize = 32;
const WRITERS: u32 = 64;
const MEMBERS: usize = 100;
const PIPELINES: [usize; 3] = [1, 16, 64];
/// How many `SMISMEMBER` are sent at once.
const MANY_PIPELINE: usize = 4;
/// Checks that are encoded before they are sent; then they are sent again.
const ENCODED: usize = 1 << 18;
const WARM_UP: Duration = Duration::from_millis(500);
/// Sets of so many integers stay arrays of integers in Redis, as large as a user may follow.
const INTEGER_SETS: &str = "set-max-intset-entries=10000";

const fn at_least(bound: f64) -> Target {
    Target::AtLeast(bound)
}

const fn at_most(bound: f64) -> Target {
    Target::AtMost(bound)
}

const ROWS: &[Row] = &[
    Row::new("check_1", "SISMEMBER, no pipeline", "/s"),
    Row::new("redis_1", "the same, Redis", "/s"),
    Row::new("threads_1", "the same, Redis with io-threads 2", "/s"),
    Row::new("check_1_rate", "the same, Kinfolk / Redis", "×").target(at_least(0.95)),
    Row::new("check_1_cpu", "server CPU a check, no pipeline", "µs"),
    Row::new("redis_1_cpu", "the same, Redis", "µs"),
    Row::new("check_1_cpu_rate", "the same, Kinfolk / Redis", "×").target(at_most(1.1)),
    Row::new("check_1_p99", "SISMEMBER, no pipeline, p99", "ms"),
    Row::new("redis_1_p99", "the same, Redis", "ms"),
    Row::new("check_16", "SISMEMBER, pipeline of 16", "/s").target(at_least(1_000_000.0)),
    Row::new("redis_16", "the same, Redis", "/s"),
    Row::new("threads_16", "the same, Redis with io-threads 2", "/s"),
    Row::new("check_16_rate", "the same, Kinfolk / Redis", "×").target(at_least(1.25)),
    Row::new("check_16_cpu", "server CPU a check, pipeline of 16", "µs"),
    Row::new("redis_16_cpu", "the same, Redis", "µs"),
    Row::new("check_16_cpu_rate", "the same, Kinfolk / Redis", "×").target(at_most(0.8)),
    Row::new("check_16_p99", "a pipeline of 16 SISMEMBER, p99", "ms"),
    Row::new("redis_16_p99", "the same, Redis", "ms"),
    Row::new("check_64", "SISMEMBER, pipeline of 64", "/s"),
    Row::new("redis_64", "the same, Redis", "/s"),
    Row::new("threads_64", "the same, Redis with io-threads 2", "/s"),
    Row::new("check_64_rate", "the same, Kinfolk / Redis", "×").target(at_least(2.0)),
    Row::new("check_64_cpu", "server CPU a check, pipeline of 64", "µs"),
    Row::new("redis_64_cpu", "the same, Redis", "µs"),
    Row::new("check_64_cpu_rate", "the same, Kinfolk / Redis", "×").target(at_most(0.6)),
    Row::new("check_64_p99", "a pipeline of 64 SISMEMBER, p99", "ms"),
    Row::new("redis_64_p99", "the same, Redis", "ms"),
    Row::new("check_many", "SMISMEMBER of 100, checks", "/s").target(at_least(5_000_000.0)),
    Row::new("redis_many", "the same, Redis", "/s"),
    Row::new("threads_many", "the same, Redis with io-threads 2", "/s"),
    Row::new("check_many_rate", "the same, Kinfolk / Redis", "×").target(at_least(1.5)),
    Row::new("check_many_cpu", "server CPU a check, SMISMEMBER of 100", "µs"),
    Row::new("redis_many_cpu", "the same, Redis", "µs"),
    Row::new("check_many_cpu_rate", "the same, Kinfolk / Redis", "×"),
    Row::new("check_many_p99", "a pipeline of 4 SMISMEMBER, p99", "ms"),
    Row::new("redis_many_p99", "the same, Redis", "ms"),
    Row::new("follow", "durable SADD, 64 connections, no pipeline", "/s").target(at_least(60_000.0)),
    Row::new("follow_p50", "the same, p50", "ms"),
    Row::new("follow_p99", "the same, p99", "ms"),
    Row::new("follow_cpu", "server CPU a SADD", "µs"),
    Row::new("postgres", "PostgreSQL upserts, 64 clients of pgbench", "/s"),
    Row::new("times_postgres", "durable SADD / PostgreSQL upserts", "×").target(at_least(4.0)),
];

/// A server under load.
struct Subject {
    process: u32,
    client: LeanClient,
}

/// What a round measured of one server.
struct Checked {
    per_second: f64,
    /// The server's microseconds for each check.
    cpu_us: f64,
    p99_ms: f64,
}

/// The same requests for all servers.
struct Load {
    key: String,
    requests: Requests,
    /// How many checks a batch has.
    checks: usize,
}

pub fn run(options: &Options) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let scratch = data.scratch_store()?;
    let redis = (!options.without_redis).then(|| start_redis(&data)).transpose()?;
    let server = Server::start(data.kinfolk(), scratch.path())?;
    let mut loads = loads(&data.survey);

    let mut recorder = Recorder::new(ROWS);
    let mut kinfolk = Subject {
        process: server.process(),
        client: LeanClient::connect(server.resp, Some(&server.key), CONNECTIONS)?,
    };
    let connected = |redis: &Redis| -> Result<Subject> {
        let client = LeanClient::connect(redis.address, None, CONNECTIONS)?;
        Ok(Subject { process: redis.process, client })
    };
    let mut redis: Vec<Subject> = redis.iter().flatten().map(connected).collect::<Result<_>>()?;
    for round in 1..=options.rounds {
        eprintln!("{NAME}, round {round}");
        for load in &mut loads {
            load.compare(&mut recorder, options, &mut kinfolk, &mut redis)?;
        }
    }
    drop((kinfolk, redis));
    for _ in 0..options.rounds {
        measure_follows(&mut recorder, options, &data, &server)?;
    }
    server.stop()?;
    let notes = vec![
        format!(
            "one thread with {CONNECTIONS} connections loads all servers alternately, on the same cores, with requests that were encoded before"
        ),
        "every other check is of an edge that exists, of followers in proportion to their followees; all servers reply the same".to_owned(),
        "Kinfolk with an API key, a rate limit and metrics; Redis 7 with the same edges as sets of integers, without a password or persistence"
            .to_owned(),
        format!("the same client with {WRITERS} connections sends the SADD"),
    ];
    recorder.finish(NAME, data.size, notes).publish(&options.results)
}

/// Redis with the edges, without and with threads for its connections.
fn start_redis(data: &Dataset) -> Result<[Redis; 2]> {
    let start = |name: &str, settings: &[&str]| -> Result<Redis> {
        let redis = Redis::start_with(&data.folder().join(name), settings)?;
        redis.load(&data.csv_without_times())?;
        Ok(redis)
    };
    let threads = ["io-threads=2", "io-threads-do-reads=yes", INTEGER_SETS];
    Ok([start("redis", &[INTEGER_SETS])?, start("redis-threads", &threads)?])
}

fn loads(survey: &Survey) -> Vec<Load> {
    let mut random = Random::new(0xc4ec);
    let mut loads: Vec<Load> = PIPELINES
        .map(|pipeline| {
            let batches = (0..ENCODED / pipeline).map(|_| single_checks(survey, pipeline, &mut random));
            Load { key: pipeline.to_string(), requests: Requests::new(batches.collect()), checks: pipeline }
        })
        .into();
    let checks = MEMBERS * MANY_PIPELINE;
    let many = (0..ENCODED / checks).map(|_| many_checks(survey, &mut random)).collect();
    loads.push(Load { key: "many".to_owned(), requests: Requests::new(many), checks });
    loads
}

/// A pipeline of checks.
pub fn single_checks(survey: &Survey, pipeline: usize, random: &mut Random) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..pipeline {
        let pair = random.pick(&survey.sample);
        let followee = if random.below(2) == 0 { pair.followee } else { survey.users.random(random) };
        let words = ["SISMEMBER", &format!("following:{}", pair.follower), &followee.to_string()];
        batch.add(&words, ":0\r\n".len());
    }
    batch
}

fn many_checks(survey: &Survey, random: &mut Random) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..MANY_PIPELINE {
        let pair = random.pick(&survey.sample);
        let others = (1..MEMBERS).map(|_| survey.users.random(random).to_string());
        let words: Vec<String> = ["SMISMEMBER".to_owned(), format!("following:{}", pair.follower)]
            .into_iter()
            .chain([pair.followee.to_string()])
            .chain(others)
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        batch.add(&words, "*100\r\n".len() + MEMBERS * ":0\r\n".len());
    }
    batch
}

impl Load {
    /// Measures all servers one after the other.
    fn compare(
        &mut self,
        recorder: &mut Recorder,
        options: &Options,
        kinfolk: &mut Subject,
        redis: &mut [Subject],
    ) -> Result<()> {
        let ours = self.measure(options, kinfolk)?;
        self.record(recorder, "check", &ours);
        let [plain, threads] = redis else { return Ok(()) };
        let theirs = self.measure(options, plain)?;
        self.record(recorder, "redis", &theirs);
        let key = &self.key;
        recorder.record(&format!("check_{key}_rate"), ours.per_second / theirs.per_second);
        recorder.record(&format!("check_{key}_cpu_rate"), ours.cpu_us / theirs.cpu_us);
        let with_threads = self.measure(options, threads)?;
        recorder.record(&format!("threads_{}", self.key), with_threads.per_second);
        Ok(())
    }

    fn record(&self, recorder: &mut Recorder, side: &str, measured: &Checked) {
        let key = &self.key;
        recorder.record(&format!("{side}_{key}"), measured.per_second);
        recorder.record(&format!("{side}_{key}_cpu"), measured.cpu_us);
        recorder.record(&format!("{side}_{key}_p99"), measured.p99_ms);
    }

    fn measure(&mut self, options: &Options, subject: &mut Subject) -> Result<Checked> {
        subject.client.run(&mut self.requests, WARM_UP)?;
        let before = cpu_seconds(subject.process);
        let measured = subject.client.run(&mut self.requests, options.round_time())?;
        let checks = measured.batches as f64 * self.checks as f64;
        Ok(Checked {
            per_second: checks / measured.elapsed.as_secs_f64(),
            cpu_us: (cpu_seconds(subject.process) - before) * 1e6 / checks,
            p99_ms: measured.latency.percentile_ms(0.99),
        })
    }
}

/// What durable follows of a server cost.
pub struct Adds {
    pub per_second: f64,
    /// The server's microseconds for each.
    pub cpu_us: f64,
    pub latency: Histogram,
}

/// Durable follows of users at random from many connections, each command a request of its own.
pub fn durable_adds(options: &Options, survey: &Survey, server: &Server) -> Result<Adds> {
    /// No server does more.
    const PER_SECOND_MAX: u64 = 150_000;
    // Other ones in each run: a follow that exists already costs less.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let mut random = Random::new(now.as_nanos() as u64);
    let count = options.seconds * PER_SECOND_MAX;
    let batches = (0..count).map(|_| {
        let Pair { follower, followee } = survey.users.random_pair(&mut random);
        let mut batch = Batch::new();
        batch.add(&["SADD", &format!("following:{follower}"), &followee.to_string()], ":1\r\n".len());
        batch
    });
    let mut requests = Requests::of_writes(batches.collect());
    let mut client = LeanClient::connect(server.resp, Some(&server.key), WRITERS as usize)?;
    let before = cpu_seconds(server.process());
    let Measured { batches, ones, elapsed, latency } = client.run(&mut requests, options.round_time())?;
    let cpu = cpu_seconds(server.process()) - before;
    ensure!(batches <= count, "the server takes more than {PER_SECOND_MAX} follows a second: encode more");
    ensure!(ones * 2 >= batches, "of {batches} follows, only {ones} were new");
    let commands = batches as f64;
    Ok(Adds { per_second: commands / elapsed.as_secs_f64(), cpu_us: cpu * 1e6 / commands, latency })
}

fn measure_follows(
    recorder: &mut Recorder,
    options: &Options,
    data: &Dataset,
    server: &Server,
) -> Result<()> {
    let Adds { per_second, cpu_us, latency } = durable_adds(options, &data.survey, server)?;
    recorder.record("follow", per_second);
    recorder.record_ms("follow", &latency);
    recorder.record("follow_cpu", cpu_us);
    if !options.without_postgres {
        let upserts = upserts(options, data)?;
        recorder.record("postgres", upserts);
        recorder.record("times_postgres", per_second / upserts);
    }
    Ok(())
}

fn upserts(options: &Options, data: &Dataset) -> Result<f64> {
    let postgres = Postgres::start(&data.folder().join("postgres"))?;
    postgres.create_table()?;
    postgres.create_indexes()?;
    Ok(postgres.upserts(u64::from(WRITERS), options.seconds, data.survey.users)?.per_second)
}
