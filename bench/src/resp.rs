//! `resp`: checks and durable follows over the Redis protocol, Kinfolk and Redis alternately under the same client.

use anyhow::Result;

use crate::dataset::Dataset;
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::postgres::Postgres;
use crate::redis::{Benchmark, Measured, Redis};
use crate::server::{Server, cpu_seconds};

const NAME: &str = "resp";
const CONNECTIONS: u32 = 32;
const WRITERS: u32 = 64;
const MEMBERS: usize = 100;

const fn at_least(bound: f64) -> Target {
    Target::AtLeast(bound)
}

const ROWS: &[Row] = &[
    Row::new("check_1", "SISMEMBER, no pipeline", "/s"),
    Row::new("redis_1", "the same, Redis", "/s"),
    Row::new("check_1_rate", "the same, Kinfolk / Redis", "×").target(at_least(0.95)),
    Row::new("check_1_cpu", "server CPU a check, no pipeline", "µs"),
    Row::new("redis_1_cpu", "the same, Redis", "µs"),
    Row::new("check_1_p99", "SISMEMBER, no pipeline, p99", "ms"),
    Row::new("check_16", "SISMEMBER, pipeline of 16", "/s").target(at_least(1_000_000.0)),
    Row::new("redis_16", "the same, Redis", "/s"),
    Row::new("check_16_rate", "the same, Kinfolk / Redis", "×").target(at_least(1.0)),
    Row::new("check_16_cpu", "server CPU a check, pipeline of 16", "µs"),
    Row::new("redis_16_cpu", "the same, Redis", "µs"),
    Row::new("check_16_cpu_rate", "the same, Kinfolk / Redis", "×").target(Target::AtMost(0.9)),
    Row::new("check_64", "SISMEMBER, pipeline of 64", "/s"),
    Row::new("redis_64", "the same, Redis", "/s"),
    Row::new("check_64_rate", "the same, Kinfolk / Redis", "×").target(at_least(1.25)),
    Row::new("check_64_cpu", "server CPU a check, pipeline of 64", "µs"),
    Row::new("redis_64_cpu", "the same, Redis", "µs"),
    Row::new("check_64_cpu_rate", "the same, Kinfolk / Redis", "×").target(Target::AtMost(0.8)),
    Row::new("many", "SMISMEMBER of 100, checks", "/s").target(at_least(5_000_000.0)),
    Row::new("redis_many", "the same, Redis", "/s"),
    Row::new("many_rate", "the same, Kinfolk / Redis", "×").target(at_least(1.5)),
    Row::new("follow", "durable SADD, 64 connections, no pipeline", "/s").target(at_least(60_000.0)),
    Row::new("follow_p50", "the same, p50", "ms"),
    Row::new("follow_p99", "the same, p99", "ms"),
    Row::new("postgres", "PostgreSQL upserts, 64 clients of pgbench", "/s"),
    Row::new("times_postgres", "durable SADD / PostgreSQL upserts", "×").target(at_least(4.0)),
];

/// A server under load.
struct Subject<'a> {
    process: u32,
    benchmark: Benchmark<'a>,
}

/// How many commands a round has, so that it lasts about as long as asked.
fn count(options: &Options, pipeline: u32) -> u64 {
    let per_second = match pipeline {
        1 => 80_000,
        16 => 1_000_000,
        _ => 2_000_000,
    };
    options.seconds * per_second
}

pub fn run(options: &Options) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let scratch = data.scratch_store()?;
    let ids = data.survey.users.last + 1;
    let redis = (!options.without_redis).then(|| Redis::start(&data.folder().join("redis"))).transpose()?;
    if let Some(redis) = &redis {
        redis.load(&data.csv_without_times())?;
    }
    let server = Server::start(data.kinfolk(), scratch.path())?;
    let many = many_members();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();

    let plain = |address, password| Benchmark {
        address,
        password,
        connections: CONNECTIONS,
        pipeline: 1,
        count: count(options, 1),
        ids,
        command: &["SISMEMBER", "following:__rand_int__", "__rand_int__"],
    };
    let kinfolk = Subject { process: server.process(), benchmark: plain(server.resp, Some(&server.key)) };
    let redis = redis.as_ref().map(|redis| (redis, plain(redis.address, None)));
    let redis = redis.map(|(redis, benchmark)| Subject { process: redis.process, benchmark });

    let mut recorder = Recorder::new(ROWS);
    for round in 1..=options.rounds {
        eprintln!("{NAME}, round {round}");
        for pipeline in [1, 16, 64] {
            compare(&mut recorder, options, pipeline, &kinfolk, redis.as_ref())?;
        }
        compare_many(&mut recorder, options, &many, &kinfolk, redis.as_ref())?;
        let follows = Benchmark {
            connections: WRITERS,
            // The last digits keep anybody from following itself, which would be refused.
            command: &["SADD", "following:__rand_int__0", "__rand_int__1"],
            ids: ids / 10,
            count: options.seconds * 50_000,
            ..kinfolk.benchmark
        };
        let follows = follows.run()?;
        recorder.record("follow", follows.per_second);
        recorder.record("follow_p50", follows.p50_ms);
        recorder.record("follow_p99", follows.p99_ms);
        if !options.without_postgres {
            let upserts = upserts(options, &data)?;
            recorder.record("postgres", upserts);
            recorder.record("times_postgres", follows.per_second / upserts);
        }
    }
    server.stop()?;
    let notes = vec![
        format!(
            "redis-benchmark with {CONNECTIONS} connections loads both servers alternately, on the same cores"
        ),
        "keys and members at random, so nearly all checks are of edges that don't exist".to_owned(),
        "Kinfolk with an API key, a rate limit and metrics; Redis 7 without a password or persistence"
            .to_owned(),
    ];
    recorder.finish(NAME, data.size, notes).publish(&options.results)
}

fn compare(
    recorder: &mut Recorder,
    options: &Options,
    pipeline: u32,
    kinfolk: &Subject<'_>,
    redis: Option<&Subject<'_>>,
) -> Result<()> {
    let with = |subject: &Subject<'_>| {
        let benchmark = Benchmark { pipeline, count: count(options, pipeline), ..subject.benchmark };
        measure(subject.process, &benchmark)
    };
    let (ours, our_cpu) = with(kinfolk)?;
    recorder.record(&format!("check_{pipeline}"), ours.per_second);
    recorder.record(&format!("check_{pipeline}_cpu"), our_cpu);
    if pipeline == 1 {
        recorder.record("check_1_p99", ours.p99_ms);
    }
    if let Some(redis) = redis {
        let (theirs, their_cpu) = with(redis)?;
        recorder.record(&format!("redis_{pipeline}"), theirs.per_second);
        recorder.record(&format!("redis_{pipeline}_cpu"), their_cpu);
        recorder.record(&format!("check_{pipeline}_rate"), ours.per_second / theirs.per_second);
        if pipeline > 1 {
            recorder.record(&format!("check_{pipeline}_cpu_rate"), our_cpu / their_cpu);
        }
    }
    Ok(())
}

/// The figures, and the server's microseconds for each command.
fn measure(process: u32, benchmark: &Benchmark<'_>) -> Result<(Measured, f64)> {
    let before = cpu_seconds(process);
    let measured = benchmark.run()?;
    Ok((measured, (cpu_seconds(process) - before) * 1e6 / benchmark.count as f64))
}

fn many_members() -> Vec<String> {
    let start = ["SMISMEMBER".to_owned(), "following:__rand_int__".to_owned()];
    start.into_iter().chain((0..MEMBERS).map(|_| "__rand_int__".to_owned())).collect()
}

fn compare_many(
    recorder: &mut Recorder,
    options: &Options,
    command: &[&str],
    kinfolk: &Subject<'_>,
    redis: Option<&Subject<'_>>,
) -> Result<()> {
    let checks = |subject: &Subject<'_>| -> Result<f64> {
        let count = options.seconds * 50_000;
        let benchmark = Benchmark { pipeline: 4, count, command, ..subject.benchmark };
        Ok(benchmark.run()?.per_second * MEMBERS as f64)
    };
    let ours = checks(kinfolk)?;
    recorder.record("many", ours);
    if let Some(redis) = redis {
        let theirs = checks(redis)?;
        recorder.record("redis_many", theirs);
        recorder.record("many_rate", ours / theirs);
    }
    Ok(())
}

fn upserts(options: &Options, data: &Dataset) -> Result<f64> {
    let postgres = Postgres::start(&data.folder().join("postgres"))?;
    postgres.create_table()?;
    postgres.create_indexes()?;
    Ok(postgres.upserts(u64::from(WRITERS), options.seconds, data.survey.users)?.per_second)
}
