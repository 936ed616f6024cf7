//! `overlap`: which users are followed in common, and which of a viewer's followees follow somebody; in process and over the
//! Redis protocol, beside `SINTER` of the same sets in Redis.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, bail};
use kinfolk_core::graph::{EdgeStore, Side, UserSet};
use kinfolk_core::{Frontier, Id};
use kinfolk_embedded::{Embedded, Settings};
use tokio::runtime::Runtime;

use crate::client::{Client, leading_number};
use crate::crowd::{Crowd, Group};
use crate::dataset::{Dataset, KIND, edge};
use crate::histogram::Histogram;
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::redis::{Benchmark, Redis};
use crate::server::{Server, cpu_seconds};
use crate::size::Size;
use crate::survey::{Pair, for_each_edge};

const NAME: &str = "overlap";
/// How often each question is asked in a round.
const CALLS: usize = 5_000;
/// The same for those about the longest list.
const KNOWN_CALLS: usize = 1_000;
const PAGE: usize = 50;
/// More than any answer has.
const ALL: usize = 100_000;
const CONNECTIONS: u32 = 8;

const BELOW_100_US: Target = Target::Below(100.0);
const BELOW_5_MS: Target = Target::Below(5.0);

const ROWS: &[Row] = &[
    Row::new("common_p50", "common at 10,000 × 10,000, all 5,000, in process, p50", "µs")
        .target(BELOW_100_US),
    Row::new("common_p99", "the same, p99", "µs").target(BELOW_100_US),
    Row::new("common_rate", "the same, one thread", "/s"),
    Row::new("common_page_p50", "the count and the first 50 of these, in process, p50", "µs"),
    Row::new("common_page_p99", "the same, p99", "µs"),
    Row::new("common_3_p50", "common of three times 10,000, all 2,500, in process, p50", "µs"),
    Row::new("common_3_p99", "the same, p99", "µs"),
    Row::new("known_p50", "known followers, viewer following 10,000, longest list, in process, p50", "ms")
        .target(BELOW_5_MS)
        .target_from(Size::HUNDRED_MILLION),
    Row::new("known_p99", "the same, p99", "ms").target(BELOW_5_MS).target_from(Size::HUNDRED_MILLION),
    Row::new("sinter_p50", "SINTER of 10,000 and 10,000, one connection, p50", "µs"),
    Row::new("redis_sinter_p50", "the same, Redis", "µs"),
    Row::new("sinter_p99", "SINTER of 10,000 and 10,000, one connection, p99", "µs"),
    Row::new("redis_sinter_p99", "the same, Redis", "µs"),
    Row::new("sinter_times", "SINTER, p50 of Redis / Kinfolk", "×"),
    Row::new("sinter_rate", "SINTER, 8 connections", "/s"),
    Row::new("redis_sinter_rate", "the same, Redis", "/s"),
    Row::new("sinter_cpu", "server CPU a SINTER", "µs"),
    Row::new("redis_sinter_cpu", "the same, Redis", "µs"),
    Row::new("sintercard_p50", "SINTERCARD of 10,000 and 10,000, one connection, p50", "µs"),
    Row::new("redis_sintercard_p50", "the same, Redis", "µs"),
    Row::new("sintercard_p99", "SINTERCARD of 10,000 and 10,000, one connection, p99", "µs"),
    Row::new("redis_sintercard_p99", "the same, Redis", "µs"),
    Row::new("sintercard_times", "SINTERCARD, p50 of Redis / Kinfolk", "×"),
    Row::new("sinter_3_p50", "SINTER of three times 10,000, one connection, p50", "µs"),
    Row::new("redis_sinter_3_p50", "the same, Redis", "µs"),
    Row::new("sinter_3_p99", "SINTER of three times 10,000, one connection, p99", "µs"),
    Row::new("redis_sinter_3_p99", "the same, Redis", "µs"),
    Row::new("sinter_3_times", "SINTER of three, p50 of Redis / Kinfolk", "×"),
    Row::new("known_sinter_p50", "SINTER of 10,000 followed and the longest list, one connection, p50", "µs"),
    Row::new("redis_known_sinter_p50", "the same, Redis", "µs"),
    Row::new("known_sinter_p99", "SINTER of 10,000 followed and the longest list, one connection, p99", "µs"),
    Row::new("redis_known_sinter_p99", "the same, Redis", "µs"),
    Row::new("known_sinter_times", "SINTER with the longest list, p50 of Redis / Kinfolk", "×"),
    Row::new("common_command_p50", "COMMON, the count and a page of 50, one connection, p50", "µs"),
    Row::new("common_command_p99", "the same, p99", "µs"),
    Row::new("known_command_p50", "KNOWN, the count and a page of 50, one connection, p50", "µs"),
    Row::new("known_command_p99", "the same, p99", "µs"),
];

pub fn run(options: &Options) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let crowd = Crowd::of(data.survey.users);
    let folder = crowd.store_folder(&data)?;
    let mut recorder = Recorder::new(ROWS);

    let store = Embedded::open(&folder, Settings::default())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let known = known_counts(&store, crowd, data.survey.largest);
    let asked = Asked::new(crowd, data.survey.largest, &known);
    if options.in_process {
        for round in 1..=options.rounds {
            eprintln!("{NAME}, round {round}");
            asked.in_process(&mut recorder, &runtime, &store)?;
        }
        store.close()?;
    } else {
        store.close()?;
        let redis = start_redis(options, &data, crowd)?;
        for round in 1..=options.rounds {
            eprintln!("{NAME}, round {round}");
            let store = Embedded::open(&folder, Settings::default())?;
            asked.in_process(&mut recorder, &runtime, &store)?;
            store.close()?;
            let server = Server::start(data.kinfolk(), &folder)?;
            served(&mut recorder, options, &asked, &server, redis.as_ref())?;
            server.stop()?;
        }
    }
    recorder.finish(NAME, data.size, notes(&data, crowd, &known)).publish(&options.results)
}

fn notes(data: &Dataset, crowd: Crowd, known: &[u64]) -> Vec<String> {
    vec![
        format!(
            "{} groups of three users were added who each follow {} of the graph's users at random; two share {}, \
             three {}",
            crowd.groups().len(),
            crowd.many(),
            crowd.shared_by_two(),
            crowd.shared_by_three()
        ),
        format!(
            "the longest list has {} followers, of whom the viewers follow {} to {}",
            data.survey.largest_followers,
            known.iter().min().unwrap_or(&0),
            known.iter().max().unwrap_or(&0)
        ),
        format!(
            "{CALLS} calls a round and row, {KNOWN_CALLS} about the longest list; the size of every answer is checked"
        ),
        "Redis has the sets that are asked for and nothing else; both servers answer one client alternately"
            .to_owned(),
    ]
}

/// A question with the number of members that the answer has to tell.
struct Question {
    sets: Vec<UserSet>,
    count: u64,
}

impl Question {
    fn following(users: &[u64], count: u64) -> Self {
        let set = |&user: &u64| UserSet { side: Side::Following, of: Id::Integer(user) };
        Self { sets: users.iter().map(set).collect(), count }
    }

    /// The names of the sets as keys, in Redis and here.
    fn keys(&self) -> String {
        let key = |set: &UserSet| match set.side {
            Side::Following => format!("following:{}", set.of),
            Side::Followers => format!("followers:{}", set.of),
        };
        self.sets.iter().map(key).collect::<Vec<_>>().join(" ")
    }

    fn users(&self) -> String {
        self.sets.iter().map(|set| set.of.to_string()).collect::<Vec<_>>().join(" ")
    }
}

/// Everything that is asked, each for every group in turn.
struct Asked {
    two: Vec<Question>,
    three: Vec<Question>,
    known: Vec<Question>,
}

/// Questions, how many to give of each answer, and how often to ask.
type Plan<'a> = (&'a [Question], usize, usize);

impl Asked {
    fn new(crowd: Crowd, largest: u64, known: &[u64]) -> Self {
        let groups = crowd.groups();
        let two = |group: &Group| Question::following(&group.0[..2], crowd.shared_by_two());
        let three = |group: &Group| Question::following(&group.0, crowd.shared_by_three());
        let viewer = |(group, &count): (&Group, &u64)| {
            let mut question = Question::following(&group.0[..1], count);
            question.sets.push(UserSet { side: Side::Followers, of: Id::Integer(largest) });
            question
        };
        Self {
            two: groups.iter().map(two).collect(),
            three: groups.iter().map(three).collect(),
            known: groups.iter().zip(known).map(viewer).collect(),
        }
    }

    fn in_process(&self, recorder: &mut Recorder, runtime: &Runtime, store: &Embedded) -> Result<()> {
        let ask = |plan: Plan<'_>| runtime.block_on(ask(store, plan));
        let started = Instant::now();
        let common = ask((&self.two, ALL, CALLS))?;
        recorder.record("common_rate", CALLS as f64 / started.elapsed().as_secs_f64());
        let page = ask((&self.two, PAGE + 1, CALLS))?;
        let three = ask((&self.three, ALL, CALLS))?;
        let known = ask((&self.known, ALL, KNOWN_CALLS))?;
        for (share, name) in [(0.5, "p50"), (0.99, "p99")] {
            recorder.record(&format!("common_{name}"), common.percentile_us(share));
            recorder.record(&format!("common_page_{name}"), page.percentile_us(share));
            recorder.record(&format!("common_3_{name}"), three.percentile_us(share));
            recorder.record(&format!("known_{name}"), known.percentile_ms(share));
        }
        Ok(())
    }
}

async fn ask(store: &Embedded, (questions, limit, calls): Plan<'_>) -> Result<Histogram> {
    let mut histogram = Histogram::default();
    for Question { sets, count } in questions.iter().cycle().take(calls) {
        let started = Instant::now();
        let found = black_box(store.overlap(KIND, sets, None, limit, Frontier::EMPTY).await?);
        histogram.record(started.elapsed());
        if found.count != *count || found.ids.len() as u64 != (*count).min(limit as u64) {
            bail!("{sets:?} have {} in common, {} of them given; not {count}", found.count, found.ids.len());
        }
    }
    Ok(histogram)
}

/// For each viewer, how many of its followees follow the account: found by asking for each.
fn known_counts(store: &Embedded, crowd: Crowd, largest: u64) -> Vec<u64> {
    let edges = crowd.group_edges();
    let knows = |viewer: u64| {
        let followees = edges.iter().filter(|pair| pair.follower == viewer);
        let follow = followees
            .filter(|pair| store.follows(KIND, edge(Pair { follower: pair.followee, followee: largest })));
        follow.count() as u64
    };
    crowd.groups().into_iter().map(|group| knows(group.0[0])).collect()
}

fn start_redis(options: &Options, data: &Dataset, crowd: Crowd) -> Result<Option<Redis>> {
    if options.without_redis {
        return Ok(None);
    }
    let redis = Redis::start(&data.folder().join("redis"))?;
    let largest = data.survey.largest;
    eprintln!("loading Redis");
    redis.fill(|commands| {
        for pair in crowd.group_edges() {
            write!(commands, "SADD following:{} {}\r\n", pair.follower, pair.followee)?;
        }
        for_each_edge(&data.csv_without_times(), |pair| {
            if pair.followee == largest {
                write!(commands, "SADD followers:{largest} {}\r\n", pair.follower)?;
            }
            Ok(())
        })
    })?;
    Ok(Some(redis))
}

fn served(
    recorder: &mut Recorder,
    options: &Options,
    asked: &Asked,
    server: &Server,
    redis: Option<&Redis>,
) -> Result<()> {
    let mut ours = Client::resp(server.resp, Some(&server.key))?;
    let mut theirs = redis.map(|redis| Client::resp(redis.address, None)).transpose()?;
    for (key, command, questions, calls) in [
        ("sinter", "SINTER", &asked.two, CALLS),
        ("sintercard", "SINTERCARD 2", &asked.two, CALLS),
        ("sinter_3", "SINTER", &asked.three, CALLS),
        ("known_sinter", "SINTER", &asked.known, KNOWN_CALLS),
    ] {
        let commands: Vec<(String, u64)> =
            questions.iter().map(|asked| (format!("{command} {}", asked.keys()), asked.count)).collect();
        let our_latency = ask_server(&mut ours, &commands, calls)?;
        record_us(recorder, key, &our_latency);
        if let Some(theirs) = &mut theirs {
            let their_latency = ask_server(theirs, &commands, calls)?;
            record_us(recorder, &format!("redis_{key}"), &their_latency);
            let times = their_latency.percentile_ns(0.5) / our_latency.percentile_ns(0.5);
            recorder.record(&format!("{key}_times"), times);
        }
    }
    for (key, command, questions, calls) in [
        ("common_command", "COMMON", &asked.two, CALLS),
        ("known_command", "KNOWN", &asked.known, KNOWN_CALLS),
    ] {
        // The outermost array has the count, the page and the cursor.
        let commands: Vec<(String, u64)> =
            questions.iter().map(|asked| (format!("{command} {} LIMIT {PAGE}", asked.users()), 3)).collect();
        record_us(recorder, key, &ask_server(&mut ours, &commands, calls)?);
    }
    rates(recorder, options, asked, server, redis)
}

fn record_us(recorder: &mut Recorder, key: &str, latency: &Histogram) {
    recorder.record(&format!("{key}_p50"), latency.percentile_us(0.5));
    recorder.record(&format!("{key}_p99"), latency.percentile_us(0.99));
}

/// Each command in turn; the first time it is asked is not counted, but its answer looked at.
fn ask_server(client: &mut Client, commands: &[(String, u64)], calls: usize) -> Result<Histogram> {
    let mut lengths = Vec::new();
    for (command, number) in commands {
        let reply = client.command(command)?;
        if leading_number(reply) != Some(*number) {
            bail!("{command} was answered with {:?}, not {number}", leading_number(reply));
        }
        lengths.push(reply.len());
    }
    let mut histogram = Histogram::default();
    for ((command, _), &length) in commands.iter().zip(&lengths).cycle().take(calls) {
        let started = Instant::now();
        client.command_again(command, length)?;
        histogram.record(started.elapsed());
    }
    Ok(histogram)
}

/// `SINTER` of one pair from several connections.
fn rates(
    recorder: &mut Recorder,
    options: &Options,
    asked: &Asked,
    server: &Server,
    redis: Option<&Redis>,
) -> Result<()> {
    let keys = asked.two.first().map(Question::keys).unwrap_or_default();
    let command: Vec<&str> = ["SINTER"].into_iter().chain(keys.split(' ')).collect();
    let mut rate = |key: &str, process, address, password| -> Result<()> {
        let count = options.seconds * 1_000;
        let connections = CONNECTIONS;
        let load =
            Benchmark { address, password, connections, pipeline: 1, count, ids: 1, command: &command };
        let before = cpu_seconds(process);
        recorder.record(&format!("{key}_rate"), load.run()?.per_second);
        recorder.record(&format!("{key}_cpu"), (cpu_seconds(process) - before) * 1e6 / count as f64);
        Ok(())
    };
    rate("sinter", server.process(), server.resp, Some(server.key.as_str()))?;
    if let Some(redis) = redis {
        rate("redis_sinter", redis.process, redis.address, None)?;
    }
    Ok(())
}
