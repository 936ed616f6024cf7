//! Figures of a fleet beside a plain PostgreSQL table with the textbook indexes, on the servers that `KINFOLK_TEST_POSTGRES`
//! names. Run `cargo bench -p kinfolk-fleet`; databases that it creates are removed in the end.
#![allow(clippy::unwrap_used, reason = "a benchmark may stop where it is")]

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use kinfolk_core::bulk::ImportOptions;
use kinfolk_core::changes::ChangeLog;
use kinfolk_core::graph::{
    CheckStore, Edge, EdgeAction, EdgeList, EdgeStore, FollowerCommand, Side, WriteRequest,
};
use kinfolk_core::{EdgeKind, Frontier, Id, IdKind};
use kinfolk_fleet::{Fleet, LogSource, NewDeployment, Projection, Settings};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

const KIND: EdgeKind = EdgeKind::Follow;
const OUTSTANDING: usize = 256;
const FOLLOWS: u64 = 40_000;
const CHECKS: u64 = 2_000;
const IMPORTED: u64 = 300_000;

/// What people build first: one row an edge, an index for each direction, and a count for each side.
const PLAIN: &str = "
    CREATE TABLE follows (
        follower bigint NOT NULL, followee bigint NOT NULL, since timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (follower, followee)
    );
    CREATE INDEX ON follows (follower, since DESC);
    CREATE INDEX ON follows (followee, since DESC);";

fn main() {
    let Ok(servers) = std::env::var("KINFOLK_TEST_POSTGRES") else {
        println!("set KINFOLK_TEST_POSTGRES: scripts/stack fleet start prints it");
        return;
    };
    let servers: Vec<&str> = servers.split(',').collect();
    let runtime = Runtime::new().unwrap();
    let names = ["catalog", "a", "b", "plain"].map(|part| format!("bench_{}_{part}", std::process::id()));
    let server = |index: usize| servers[index.min(servers.len() - 1) % 3];
    let of_all = |statement: &str| {
        for (index, name) in names.iter().enumerate() {
            runtime.block_on(async {
                let sql = format!("{statement} {name}");
                connect(server(index)).await.batch_execute(&sql).await.unwrap();
            });
        }
    };
    of_all("CREATE DATABASE");
    let url = |index: usize| format!("{}/{}", server(index).rsplit_once('/').unwrap().0, names[index]);
    let hosts = [("a".to_owned(), url(1)), ("b".to_owned(), url(2))];
    let settings = Settings { write_connections: 16, ..Settings::new(url(0), hosts.into()) };
    let new = NewDeployment { id_kind: IdKind::Integer, shards: NonZeroU16::new(32).unwrap() };
    Fleet::init(&settings, new).unwrap();
    let fleet = Arc::new(Fleet::open(settings).unwrap());
    Projection::start(&fleet, &Arc::new(LogSource::new(&fleet))).detach();

    runtime.block_on(follows_of_fleet(&fleet));
    runtime.block_on(checks(&fleet));
    import(&fleet);
    runtime.block_on(follows_of_plain_table(&url(3)));
    drop(fleet);
    of_all("DROP DATABASE IF EXISTS");
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Edges that are spread over 5,000 followers and as many followees.
fn edge(number: u64) -> Edge {
    Edge { follower: Id::Integer(number % 5_000), followee: Id::Integer(10_000 + number * 7 % 5_003) }
}

fn rate(what: &str, count: u64, took: Duration) {
    println!("{what:<56} {:>9.0} a second", count as f64 / took.as_secs_f64());
}

async fn follows_of_fleet(fleet: &Fleet) {
    let began = Instant::now();
    let follow = |number| async move {
        let edge = edge(number);
        let commands = vec![FollowerCommand { action: EdgeAction::Follow, followee: edge.followee }];
        let request =
            WriteRequest { kind: KIND, follower: edge.follower, commands, following_limit: u32::MAX };
        fleet.write_one(request).await.unwrap();
    };
    stream::iter(0..FOLLOWS).for_each_concurrent(OUTSTANDING, follow).await;
    rate("follows, acknowledged", FOLLOWS, began.elapsed());
    // A list of each host waits for all of its marks.
    let newest = fleet.span().await.unwrap().newest;
    let caught_up = async |id| {
        let list = EdgeList { kind: KIND, side: Side::Followers, of: Id::Integer(id) };
        while fleet.list(list, None, 1, &newest).await.is_err() {}
    };
    for id in 10_000..10_064 {
        caught_up(id).await;
    }
    rate("follows, with followers and counts projected", FOLLOWS, began.elapsed());
}

async fn checks(fleet: &Fleet) {
    let mut took = Vec::new();
    for number in 0..CHECKS {
        let began = Instant::now();
        assert!(fleet.contains_one(KIND, edge(number), Frontier::EMPTY).await.unwrap());
        took.push(began.elapsed());
    }
    took.sort_unstable();
    let percentile = |share: usize| took[took.len() * share / 100];
    println!("{:<56} p50 {:?}, p99 {:?}", "a check from the shard", percentile(50), percentile(99));
}

fn import(fleet: &Arc<Fleet>) {
    let options = ImportOptions {
        kind: KIND,
        following_limit: None,
        fingerprint: "benchmark".into(),
        sort_memory: 1 << 20,
    };
    let began = Instant::now();
    let mut import = fleet.import(&options).unwrap();
    for number in 0..IMPORTED {
        let edge =
            Edge { follower: Id::Integer(20_000 + number % 3_000), followee: Id::Integer(number / 3_000) };
        import.push(edge, None).unwrap();
    }
    let staged = began.elapsed();
    let report = import.finish(&|_| {}).unwrap();
    rate("import, staged", IMPORTED, staged);
    rate("import, staged and applied", report.added, began.elapsed());
    let began = Instant::now();
    let exported = fleet.edges(KIND).unwrap().count() as u64;
    rate("export", exported, began.elapsed());
}

async fn follows_of_plain_table(url: &str) {
    connect(url).await.batch_execute(PLAIN).await.unwrap();
    let clients = 64;
    let began = Instant::now();
    let work = (0..clients).map(|first| async move {
        let client = connect(url).await;
        let insert = "INSERT INTO follows (follower, followee) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        let insert = client.prepare(insert).await.unwrap();
        for number in (first..FOLLOWS).step_by(clients as usize) {
            let (Id::Integer(follower), Id::Integer(followee)) =
                (edge(number).follower, edge(number).followee)
            else {
                unreachable!("ids are integers")
            };
            client.execute(&insert, &[&(follower as i64), &(followee as i64)]).await.unwrap();
        }
    });
    futures_util::future::join_all(work).await;
    rate("follows into a plain table, 64 clients", FOLLOWS, began.elapsed());
}
