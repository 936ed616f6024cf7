//! A large account: how fast several processes project its followers at once, and how it is read while it gains 5,000 followers a
//! second, with answers kept in the process and without.
//!
//! `cargo bench -p kinfolk-fleet --bench large` takes some minutes, alone on the machine; `KINFOLK_BENCH_SHORT=1` only shows that it
//! works.
#![allow(clippy::unwrap_used, reason = "a benchmark may stop where it is")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use kinfolk_core::changes::ChangeLog;
use kinfolk_core::graph::{
    EdgeAction, EdgeList, EdgeStore, FollowerCommand, ListEntry, ListKey, Side, WriteRequest,
};
use kinfolk_core::{EdgeKind, Error, Frontier, Id, IdKind, Position, Result};
use kinfolk_fleet::{ChangeSource, Fleet, LogSource, NewDeployment, Projection, Settings, SourceBatch};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::common::{Servers, Times, connect, median, print, shards};

const KIND: EdgeKind = EdgeKind::Follow;

/// Followers that the account gains in a second.
const GAINED: u64 = 5_000;

/// Follows that wait for their answer at most.
const OUTSTANDING: usize = 2_000;

/// Readers of the first page, and as many of the count.
const READERS: u64 = 16;

/// Each of them reads so often in a second, unless it has to wait for longer.
const READS: u64 = 60;

/// Entries of a first page.
const PAGE: usize = 50;

/// One of so many follows is looked for by the token of its write.
const SAMPLED: u64 = 100;

/// How much is measured.
struct Plan {
    rounds: u64,
    /// Followers that are projected at once.
    projected: u64,
    seconds: u64,
}

const WHOLE: Plan = Plan { rounds: 3, projected: 60_000, seconds: 30 };
const SHORT: Plan = Plan { rounds: 1, projected: 6_000, seconds: 3 };

fn main() {
    let plan = if std::env::var_os("KINFOLK_BENCH_SHORT").is_some() { SHORT } else { WHOLE };
    let servers = Servers::start();
    let runtime = Runtime::new().unwrap();
    Fleet::init(&servers.settings(), NewDeployment { id_kind: IdKind::Integer, shards: shards() }).unwrap();
    let mut accounts = Accounts(0);
    for delay_ms in [0, 10] {
        runtime.block_on(delay_commits(&servers, delay_ms));
        println!("\ncommits take {delay_ms} ms more:");
        for processes in [1, 3, 8] {
            let rate = |_| projected(&servers, &runtime, processes, accounts.next(plan.projected));
            let rate = median((0..plan.rounds).map(rate).collect());
            print(&format!("projected by {processes} processes"), &format!("{rate:>9.0} followers/s"));
            let lag = lag(&servers, &runtime, processes, accounts.next(plan.seconds * GAINED / 3));
            print(&format!("follow to follower list, projected by {processes}"), &lag.to_string());
        }
    }
    runtime.block_on(delay_commits(&servers, 0));
    for hot_reads in [None, Some(8)] {
        let account = accounts.next(plan.seconds * GAINED);
        crowd(&Settings { hot_reads, ..servers.settings() }, &runtime, plan.seconds, account);
    }
}

/// Accounts that nobody follows yet.
struct Accounts(u64);

/// An account and those who are going to follow it.
#[derive(Clone, Copy)]
struct Account {
    id: Id,
    first: u64,
    followers: u64,
}

impl Accounts {
    fn next(&mut self, followers: u64) -> Account {
        let first = self.0 + 1;
        self.0 += followers + 1;
        Account { id: Id::Integer(first - 1), first, followers }
    }
}

impl Account {
    fn followers(self) -> std::ops::Range<u64> {
        self.first..self.first + self.followers
    }
}

/// Lets every commit of the hosts take longer, as with a standby that is far away.
async fn delay_commits(servers: &Servers, delay_ms: u64) {
    for url in &servers.urls[1..] {
        let client = connect(url).await;
        for setting in [format!("commit_delay = {}", delay_ms * 1_000), "commit_siblings = 0".to_owned()] {
            client.batch_execute(&format!("ALTER SYSTEM SET {setting}")).await.unwrap();
        }
        client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    }
}

/// The logs of some sources, as a process has them that was given some partitions of the topic.
struct Part {
    log: LogSource,
    part: u16,
    parts: u16,
}

impl ChangeSource for Part {
    async fn changes(&self, host: usize, after: &Frontier, limit: usize) -> Result<Vec<SourceBatch>> {
        let own = after.iter().filter(|mark| mark.shard.0 % self.parts == self.part).collect();
        self.log.changes(host, &own, limit).await
    }
}

/// Lets so many processes project, each some of the sources.
fn project(processes: &[Fleet]) -> Vec<Projection> {
    let parts = processes.len() as u16;
    let project = |(fleet, part)| {
        let source = Part { log: LogSource::new(fleet), part, parts };
        Projection::start(fleet, &Arc::new(source))
    };
    processes.iter().zip(0..).map(project).collect()
}

/// How soon the account's list shows its followers while so many processes project them, at a steady rate.
fn lag(servers: &Servers, runtime: &Runtime, processes: u16, account: Account) -> Times {
    let open = |_| Fleet::open(servers.settings()).unwrap();
    let (fleet, projecting): (_, Vec<Fleet>) = (Arc::new(open(0)), (0..processes).map(open).collect());
    let _projections = project(&projecting);
    let until = Instant::now() + Duration::from_secs(account.followers / GAINED);
    runtime.block_on(gain(&fleet, account, until)).lag
}

/// Followers a second that so many processes project together.
fn projected(servers: &Servers, runtime: &Runtime, processes: u16, account: Account) -> f64 {
    let fleet = Fleet::open(servers.settings()).unwrap();
    let projecting: Vec<Fleet> = (0..processes).map(|_| Fleet::open(servers.settings()).unwrap()).collect();
    runtime.block_on(async {
        let all = stream::iter(account.followers());
        let fleet = &fleet;
        all.for_each_concurrent(256, |follower| async move { _ = follow(fleet, account, follower).await })
            .await;
    });
    let newest = runtime.block_on(fleet.span()).unwrap().newest;
    let began = Instant::now();
    let projections = project(&projecting);
    runtime.block_on(shown(&fleet, account, &newest));
    let took = began.elapsed();
    drop(projections);
    account.followers as f64 / took.as_secs_f64()
}

async fn follow(fleet: &Fleet, account: Account, follower: u64) -> Position {
    let commands = [FollowerCommand { action: EdgeAction::Follow, followee: account.id }].into();
    let request =
        WriteRequest { kind: KIND, follower: Id::Integer(follower), commands, following_limit: u32::MAX };
    fleet.write_one(request).await.unwrap().position
}

/// A page of the account's followers that shows a frontier, however long that takes.
async fn page(
    fleet: &Fleet,
    account: Account,
    (after, limit): (Option<ListKey>, usize),
    seen: &Frontier,
) -> Vec<ListEntry> {
    let list = EdgeList { kind: KIND, side: Side::Followers, of: account.id };
    loop {
        match fleet.list(list, after, limit, seen).await {
            Err(Error::NotYetVisible { .. } | Error::Unavailable { .. }) => {}
            other => return other.unwrap(),
        }
    }
}

/// Returns once the account's followers show all of a frontier.
async fn shown(fleet: &Fleet, account: Account, seen: &Frontier) {
    page(fleet, account, (None, 1), seen).await;
}

/// The account gains followers at a steady rate while it is read.
fn crowd(settings: &Settings, runtime: &Runtime, seconds: u64, account: Account) {
    let fleet = Arc::new(Fleet::open(settings.clone()).unwrap());
    let projecting = Fleet::open(Settings { role: "project".into(), ..settings.clone() }).unwrap();
    let _projection = Projection::start(&projecting, &Arc::new(LogSource::new(&projecting)));
    let name = if settings.hot_reads.is_some() { "kept answers" } else { "every read a statement" };
    println!("\n{name}:");
    runtime.block_on(async {
        shown(&fleet, account, Frontier::EMPTY).await;
        let (until, refused) = (Instant::now() + Duration::from_secs(seconds), Arc::new(AtomicU64::new(0)));
        let reading = Reading { fleet: Arc::clone(&fleet), account, until, refused };
        let began = Instant::now();
        let (gained, pages, counts) =
            tokio::join!(gain(&fleet, account, until), reading.all(Asked::Page), reading.all(Asked::Count),);
        let rate = |count: usize| format!("{:>7.0}/s", count as f64 / seconds as f64);
        let late = began.elapsed().saturating_sub(Duration::from_secs(seconds));
        print("followers gained", &format!("{}, the last acknowledged {late:.1?} late", rate(gained.count)));
        print("first pages", &format!("{}, {pages}", rate(pages.0.len())));
        print("counts", &format!("{}, {counts}", rate(counts.0.len())));
        print("reads refused", &reading.refused.load(Ordering::Relaxed).to_string());
        print("follow to follower list, by its token", &gained.lag.to_string());
        agree(&fleet, account, gained.count).await;
        println!("{:?}", fleet.hot_state());
    });
}

/// What the account has gained.
struct Gained {
    count: usize,
    /// How long after its acknowledgement a follow was in the list.
    lag: Times,
}

/// Follows at a steady rate that does not wait for answers, as long as not too many are missing.
async fn gain(fleet: &Arc<Fleet>, account: Account, until: Instant) -> Gained {
    let places = Arc::new(Semaphore::new(OUTSTANDING));
    let mut ticks = tokio::time::interval(Duration::from_micros(1_000_000 / GAINED));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut tasks, mut count) = (JoinSet::new(), 0);
    for follower in account.followers() {
        ticks.tick().await;
        if Instant::now() >= until {
            break;
        }
        let place = Arc::clone(&places).acquire_owned().await.unwrap();
        let fleet = Arc::clone(fleet);
        count += 1;
        tasks.spawn(async move {
            let seen = follow(&fleet, account, follower).await.into();
            let acknowledged = Instant::now();
            drop(place);
            if !follower.is_multiple_of(SAMPLED) {
                return None;
            }
            page(&fleet, account, (None, PAGE), &seen).await;
            Some(acknowledged.elapsed())
        });
    }
    Gained { count, lag: Times(tasks.join_all().await.into_iter().flatten().collect()) }
}

/// What is read of the account.
#[derive(Clone, Copy)]
enum Asked {
    Page,
    Count,
}

/// Readers without tokens.
#[derive(Clone)]
struct Reading {
    fleet: Arc<Fleet>,
    account: Account,
    until: Instant,
    refused: Arc<AtomicU64>,
}

impl Reading {
    /// How long each read took.
    async fn all(&self, asked: Asked) -> Times {
        let readers = (0..READERS).map(|_| tokio::spawn(self.clone().one(asked)));
        Times(join_all(readers).await.into_iter().flat_map(std::result::Result::unwrap).collect())
    }

    async fn one(self, asked: Asked) -> Vec<Duration> {
        let mut ticks = tokio::time::interval(Duration::from_micros(1_000_000 / READS));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let list = EdgeList { kind: KIND, side: Side::Followers, of: self.account.id };
        let mut times = Vec::new();
        while Instant::now() < self.until {
            ticks.tick().await;
            let began = Instant::now();
            let outcome = match asked {
                Asked::Page => self.fleet.list(list, None, PAGE, Frontier::EMPTY).await.map(drop),
                Asked::Count => self.fleet.counts(KIND, &[self.account.id], Frontier::EMPTY).await.map(drop),
            };
            match outcome {
                Ok(()) => times.push(began.elapsed()),
                Err(_) => _ = self.refused.fetch_add(1, Ordering::Relaxed),
            }
        }
        times
    }
}

/// The count, the list and what was acknowledged are the same once everything is shown.
async fn agree(fleet: &Fleet, account: Account, acknowledged: usize) {
    let newest = fleet.span().await.unwrap().newest;
    let (mut listed, mut after) = (0, None);
    loop {
        let entries = page(fleet, account, (after, 10_000), &newest).await;
        listed += entries.len();
        after = entries.last().copied();
        if after.is_none() {
            break;
        }
    }
    let counted = fleet.counts(KIND, &[account.id], &newest).await.unwrap()[0].followers;
    assert_eq!((listed, counted), (acknowledged, acknowledged as u64), "listed, counted and acknowledged");
    print("listed, counted and acknowledged in the end", &listed.to_string());
}
