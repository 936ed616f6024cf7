//! Figures of a fleet beside a plain PostgreSQL table with the textbook indexes, in one run on servers of its own with their
//! durability on.
//!
//! `cargo bench -p kinfolk-fleet --bench fleet` takes some minutes, alone on the machine; `KINFOLK_BENCH_SHORT=1` only shows that it works, and
//! `KINFOLK_BENCH_SHARDS` is the number of shards, 32 by default.
#![allow(clippy::unwrap_used, reason = "a benchmark may stop where it is")]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use kinfolk_core::bulk::ImportOptions;
use kinfolk_core::changes::ChangeLog;
use kinfolk_core::graph::{
    CheckStore, Edge, EdgeAction, EdgeList, EdgeStore, FollowerCommand, Side, WriteRequest,
};
use kinfolk_core::{EdgeKind, Error, Frontier, Id, IdKind, Position};
use kinfolk_fleet::{
    FilterSettings, Filtering, Fleet, Kafka, LogSource, NewDeployment, Projection, Relay, Settings,
    TopicSource,
};
use tokio::runtime::Runtime;
use tokio::time::MissedTickBehavior;

use crate::common::{Servers, Times, connect, median, print, shards};

const KIND: EdgeKind = EdgeKind::Follow;

/// Follows that wait for their answer at any time.
const OUTSTANDING: u64 = 256;

/// Users of the graph. A follower has few edges, so that nearly every follow is new.
const USERS: u64 = 100_000;

/// What people build first: a row for each edge, and an index for the list of each direction. It has no counts.
const PLAIN: &str = "
    DROP TABLE IF EXISTS follows;
    CREATE TABLE follows (
        follower bigint NOT NULL, followee bigint NOT NULL, since timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (follower, followee)
    );
    CREATE INDEX ON follows (follower, since DESC, followee DESC);
    CREATE INDEX ON follows (followee, since DESC, follower DESC);";

/// How much is measured.
struct Plan {
    rounds: u64,
    follows: u64,
    checks: u64,
    /// Follows at a steady rate, to see how soon others see them.
    steady: u64,
    imported: u64,
}

const WHOLE: Plan = Plan { rounds: 3, follows: 200_000, checks: 5_000, steady: 20_000, imported: 500_000 };
const SHORT: Plan = Plan { rounds: 1, follows: 20_000, checks: 500, steady: 2_000, imported: 50_000 };

/// Follows a second of the steady load.
const STEADY_RATE: u64 = 2_000;

/// One of so many steady follows is looked for.
const SAMPLED: u64 = 20;

fn main() {
    let plan = if std::env::var_os("KINFOLK_BENCH_SHORT").is_some() { SHORT } else { WHOLE };
    let servers = Servers::start();
    let runtime = Runtime::new().unwrap();
    let settings = servers.settings();
    let new = NewDeployment { id_kind: IdKind::Integer, shards: shards() };
    Fleet::init(&settings, new).unwrap();
    let fleet = Arc::new(Fleet::open(settings.clone()).unwrap());
    let projecting = Fleet::open(Settings { role: "project".into(), ..settings.clone() }).unwrap();
    let projection = Projection::start(&projecting, &Arc::new(LogSource::new(&projecting)));

    let mut rates: [Vec<f64>; 4] = Default::default();
    for round in 0..plan.rounds {
        let numbers = Numbers { first: round * plan.follows, count: plan.follows };
        let Follows { acknowledged, projected } = runtime.block_on(follows_of_fleet(&fleet, numbers));
        let clients = [64, OUTSTANDING];
        let plain = clients
            .map(|clients| runtime.block_on(follows_of_plain_table(&servers.urls[1], numbers, clients)));
        let measured = [acknowledged, projected, plain[0], plain[1]];
        rates.iter_mut().zip(measured).for_each(|(rates, rate)| rates.push(rate));
    }
    let [acknowledged, projected, plain_64, plain_256] = rates.map(median);
    let plain = plain_64.max(plain_256);
    let beside = |rate: f64| format!("{rate:>9.0}/s, {:.2} of the plain table", rate / plain);
    print("follows at 256 outstanding, acknowledged", &beside(acknowledged));
    print("the same, with followers and all counts projected", &beside(projected));
    print("plain table, 64 clients", &format!("{plain_64:>9.0}/s"));
    print("plain table, 256 clients", &format!("{plain_256:>9.0}/s"));
    print("check from the shard", &runtime.block_on(checks(&fleet, plan.checks)).to_string());
    let first = plan.rounds * plan.follows;
    let numbers = Numbers { first, count: plan.steady };
    print(
        "follow to follower list, at 2,000 follows/s",
        &runtime.block_on(visibility(&fleet, numbers)).to_string(),
    );
    import(&fleet, plan.imported);
    runtime.block_on(filtered_checks(&fleet, plan.checks));
    drop(projection);
    let first = first + plan.steady;
    let relaying = Fleet::open(Settings { role: "relay".into(), ..settings }).unwrap();
    through_kafka([&relaying, &projecting], &fleet, &runtime, &plan, first);
}

/// Relay and projection, each in a process of its own as it were, with a broker between them.
fn through_kafka(
    [relaying, projecting]: [&Fleet; 2],
    fleet: &Arc<Fleet>,
    runtime: &Runtime,
    plan: &Plan,
    first: u64,
) {
    let broker = Servers::start_one("kafka", &[], "KINFOLK_TEST_KAFKA=");
    let kafka = Kafka::new(&broker.urls[0]);
    let began = Instant::now();
    let _relay = runtime.block_on(Relay::start(relaying, &kafka)).unwrap();
    let relayed = runtime.block_on(async {
        loop {
            let shards = fleet.status().await.unwrap().shards;
            if shards.iter().all(|shard| shard.relay_behind() == Some(0)) {
                return shards
                    .iter()
                    .filter_map(|shard| shard.relayed)
                    .map(|sequence| sequence.0)
                    .sum::<u64>();
            }
        }
    });
    let rate = relayed as f64 / began.elapsed().as_secs_f64();
    print(&format!("relay of one process ({relayed} changes)"), &format!("{rate:>9.0}/s"));
    let source = runtime.block_on(TopicSource::start(projecting, &kafka)).unwrap();
    let _projection = Projection::start(projecting, &Arc::new(source));
    let mut numbers = Numbers { first, count: plan.steady };
    // The brokers have given it its partitions once something was shown.
    runtime.block_on(visibility(fleet, numbers));
    let mut rates: [Vec<f64>; 2] = Default::default();
    for _ in 0..plan.rounds {
        numbers = Numbers { first: numbers.first + numbers.count, count: plan.follows };
        let Follows { acknowledged, projected } = runtime.block_on(follows_of_fleet(fleet, numbers));
        rates.iter_mut().zip([acknowledged, projected]).for_each(|(rates, rate)| rates.push(rate));
    }
    let [acknowledged, projected] = rates.map(median);
    print("through Kafka: follows at 256 outstanding", &format!("{acknowledged:>9.0}/s"));
    print("through Kafka: the same, with all projected", &format!("{projected:>9.0}/s"));
    numbers = Numbers { first: numbers.first + numbers.count, count: plan.steady };
    let times = runtime.block_on(visibility(fleet, numbers));
    print("through Kafka: follow to follower list, at 2,000/s", &times.to_string());
}

/// Which of the edges are written.
#[derive(Clone, Copy)]
struct Numbers {
    first: u64,
    count: u64,
}

impl Numbers {
    fn all(self) -> std::ops::Range<u64> {
        self.first..self.first + self.count
    }
}

/// Mixes the bits of a number (SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Random users; followees differ from followers.
fn pair(number: u64) -> (u64, u64) {
    (mixed(2 * number) % USERS, USERS + mixed(2 * number + 1) % USERS)
}

fn edge(number: u64) -> Edge {
    let (follower, followee) = pair(number);
    Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) }
}

async fn follow(fleet: &Fleet, number: u64) -> Position {
    let edge = edge(number);
    let commands = [FollowerCommand { action: EdgeAction::Follow, followee: edge.followee }].into();
    let request = WriteRequest { kind: KIND, follower: edge.follower, commands, following_limit: u32::MAX };
    fleet.write_one(request).await.unwrap().position
}

/// Returns once a follower list shows all of a frontier.
async fn shown(fleet: &Fleet, followee: Id, seen: &Frontier) {
    let list = EdgeList { kind: KIND, side: Side::Followers, of: followee };
    loop {
        match fleet.list(list, None, 1, seen).await {
            Err(Error::NotYetVisible { .. } | Error::Unavailable { .. }) => {}
            other => return drop(other.unwrap()),
        }
    }
}

/// Follows a second.
struct Follows {
    acknowledged: f64,
    projected: f64,
}

async fn follows_of_fleet(fleet: &Fleet, numbers: Numbers) -> Follows {
    let began = Instant::now();
    let all = stream::iter(numbers.all());
    all.for_each_concurrent(OUTSTANDING as usize, |number| async move { _ = follow(fleet, number).await })
        .await;
    let acknowledged = began.elapsed();
    let newest = fleet.span().await.unwrap().newest;
    // Users of every host: each list waits for all marks of its host.
    join_all((0..64).map(|id| shown(fleet, Id::Integer(USERS + id), &newest))).await;
    let rate = |took: Duration| numbers.count as f64 / took.as_secs_f64();
    Follows { acknowledged: rate(acknowledged), projected: rate(began.elapsed()) }
}

async fn follows_of_plain_table(url: &str, numbers: Numbers, clients: u64) -> f64 {
    connect(url).await.batch_execute(PLAIN).await.unwrap();
    let insert = "INSERT INTO follows (follower, followee) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    let connected = join_all((0..clients).map(|_| async {
        let client = connect(url).await;
        let insert = client.prepare(insert).await.unwrap();
        (client, insert)
    }));
    let connected = connected.await;
    let began = Instant::now();
    let work = connected.iter().zip(0..).map(|((client, insert), first)| async move {
        for number in numbers.all().skip(first).step_by(clients as usize) {
            let (follower, followee) = pair(number);
            client.execute(insert, &[&(follower as i64), &(followee as i64)]).await.unwrap();
        }
    });
    join_all(work).await;
    numbers.count as f64 / began.elapsed().as_secs_f64()
}

async fn checks(fleet: &Fleet, count: u64) -> Times {
    let mut times = Vec::new();
    for number in 0..count {
        let began = Instant::now();
        assert!(fleet.contains(KIND, &[edge(number)], Frontier::EMPTY).await.unwrap()[0]);
        times.push(began.elapsed());
    }
    Times(times)
}

/// Checks of edges that do not exist, by users who follow others.
async fn filtered_checks(fleet: &Fleet, count: u64) {
    let filtering = Filtering::start(
        fleet,
        &Arc::new(LogSource::new(fleet)),
        FilterSettings { bytes_max: 1 << 30, folder: None },
    );
    let absent = |number| Edge { followee: Id::Integer(9 * USERS + number), ..edge(number) };
    let by_filter = |number| fleet.contains_now(KIND, absent(number), Frontier::EMPTY).is_some();
    let began = Instant::now();
    while (0..count).filter(|&number| by_filter(number)).count() as u64 * 2 < count {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Each shard counts from when its filter is there.
    tokio::time::sleep(began.elapsed()).await;
    let mut times = Vec::new();
    for number in 0..count {
        let began = Instant::now();
        if by_filter(number) {
            times.push(began.elapsed());
        }
    }
    let share = times.len() as f64 / count as f64;
    print("edges that do not exist, known by the filter", &format!("{:.1} %", 100.0 * share));
    print("check from the filter", &Times(times).to_string());
    drop(filtering);
}

/// How long after its acknowledgement a follow is in the list of its followee, at a steady rate that does not wait for answers.
async fn visibility(fleet: &Arc<Fleet>, numbers: Numbers) -> Times {
    let mut ticks = tokio::time::interval(Duration::from_micros(1_000_000 / STEADY_RATE));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut tasks = Vec::new();
    for number in numbers.all() {
        ticks.tick().await;
        let fleet = Arc::clone(fleet);
        tasks.push(tokio::spawn(async move {
            let seen = follow(&fleet, number).await.into();
            let acknowledged = Instant::now();
            if !number.is_multiple_of(SAMPLED) {
                return None;
            }
            shown(&fleet, edge(number).followee, &seen).await;
            Some(acknowledged.elapsed())
        }));
    }
    Times(join_all(tasks).await.into_iter().filter_map(Result::unwrap).collect())
}

fn import(fleet: &Arc<Fleet>, count: u64) {
    let options = ImportOptions {
        kind: KIND,
        following_limit: None,
        fingerprint: "benchmark".into(),
        sort_memory: 1 << 20,
    };
    let began = Instant::now();
    let mut import = fleet.import(&options).unwrap();
    for number in 0..count {
        let follower = Id::Integer(3 * USERS + number % (USERS / 10));
        import.push(Edge { follower, followee: edge(number).followee }, None).unwrap();
    }
    let staged = began.elapsed();
    let report = import.finish(&|_| {}).unwrap();
    let rate = |took: Duration| format!("{:>9.0}/s", count as f64 / took.as_secs_f64());
    print("import, staged", &rate(staged));
    print(&format!("import, staged and applied ({} edges)", report.added), &rate(began.elapsed()));
    let began = Instant::now();
    let exported = fleet.edges(KIND).unwrap().count() as f64;
    print("export", &format!("{:>9.0}/s", exported / began.elapsed().as_secs_f64()));
}
