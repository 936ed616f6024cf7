//! A host with a synchronous standby that stalls, behind a proxy that cuts commits: nothing that was acknowledged is lost, nothing
//! is invented, and the promoted standby has all of it. Repair is off.

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kinfolk_conformance::{block_on, edge};
use kinfolk_core::graph::{CheckStore, Edge, EdgeAction, EdgeStore, FollowerCommand, WriteRequest};
use kinfolk_core::{EdgeKind, Error, IdKind, Position};
use kinfolk_fleet::{Fleet, LogSource, NewDeployment, Projection};
use rustix::process::Signal;

use crate::deployments::{Databases, server_number, servers, signal, stack};
use crate::lost_commits::Proxies;
use crate::processes::{Acknowledged, USERS, about, audit, open, whole_log};

const KIND: EdgeKind = EdgeKind::Follow;
const IDS: IdKind = IdKind::Integer;
const WRITERS: u64 = USERS;

/// One of so many commits is cut.
const CUT_EVERY: u64 = 3;

/// How many connections are cut after their COMMIT was sent: as many as the environment asks for.
fn cuts() -> u64 {
    std::env::var("KINFOLK_FLEET_CUTS").ok().and_then(|cuts| cuts.parse().ok()).unwrap_or(60)
}

/// So many stalls are enough, whatever was cut.
const STALLS_MAX: u64 = 1_000;

/// A server and its standby, until they are dropped.
struct Pair {
    folder: PathBuf,
    facts: BTreeMap<String, String>,
}

impl Pair {
    fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("fleet-standby-{}", std::process::id()));
        let facts = stack("standby", "start", &folder, &["fsync=off", "max_connections=300"]);
        Self { folder, facts }
    }

    fn process(&self, fact: &str) -> i64 {
        self.facts[fact].parse().unwrap()
    }

    /// Stops the standby's processes that receive and write, for as long as the work takes.
    fn stalled<T>(&self, work: impl FnOnce() -> T) -> T {
        let receiver = "SELECT coalesce(max(pid), 0)::bigint FROM pg_stat_wal_receiver";
        let receiver = loop {
            let receiver = server_number(&self.facts["STANDBY_URL"], receiver);
            if receiver > 0 {
                break receiver;
            }
        };
        let _stalled = Stalled::new([self.process("STANDBY_PID"), receiver]);
        work()
    }

    /// How many commits wait for the standby.
    fn waiting(&self) -> i64 {
        let waiting = "SELECT count(*), pg_sleep(0.02) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        server_number(&self.facts["DATABASE_URL"], waiting)
    }

    /// Ends the primary as a crash does, and makes the standby the primary.
    fn promote(&self) {
        signal(self.process("PRIMARY_PID"), Signal::QUIT);
        let promote = "SELECT pg_promote()::integer::bigint";
        assert_eq!(server_number(&self.facts["STANDBY_URL"], promote), 1);
    }
}

/// Processes that are stopped until this is dropped.
struct Stalled([i64; 2]);

impl Stalled {
    fn new(processes: [i64; 2]) -> Self {
        processes.iter().for_each(|&process| signal(process, Signal::STOP));
        Self(processes)
    }
}

impl Drop for Stalled {
    fn drop(&mut self) {
        self.0.iter().for_each(|&process| signal(process, Signal::CONT));
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        stack("standby", "stop", &self.folder, &[]);
    }
}

/// What a writer knows in the end.
#[derive(Default)]
struct Story {
    /// Changes that were acknowledged.
    acknowledged: Vec<(Position, EdgeAction, Edge)>,
    /// Requests that were acknowledged and found nothing to change.
    unchanged: Vec<(Position, EdgeAction, Edge)>,
    /// Requests whose outcome is unknown.
    unknown: Vec<(EdgeAction, Edge)>,
    refused: u64,
}

impl Story {
    fn append(&mut self, mut other: Self) {
        self.acknowledged.append(&mut other.acknowledged);
        self.unchanged.append(&mut other.unchanged);
        self.unknown.append(&mut other.unknown);
        self.refused += other.refused;
    }

    /// Writes to edges of a follower that is this writer's own, until it is told to end.
    fn write(store: &Fleet, writer: u64, is_over: &AtomicBool) -> Self {
        let mut story = Self::default();
        for number in 0_u64.. {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let to = (writer + 1 + number * 7 % (USERS - 1)) % USERS;
            let action = if number % 5 < 3 { EdgeAction::Follow } else { EdgeAction::Unfollow };
            story.write_one(store, action, edge(IDS, writer, to));
        }
        story
    }

    fn write_one(&mut self, store: &Fleet, action: EdgeAction, edge: Edge) {
        let commands = vec![FollowerCommand { action, followee: edge.followee }];
        let request = WriteRequest {
            kind: KIND,
            follower: edge.follower,
            commands: commands.into(),
            following_limit: 1_000,
        };
        match block_on(store.write_one(request)) {
            Ok(receipt) => {
                let told = if receipt.changed[0] { &mut self.acknowledged } else { &mut self.unchanged };
                told.push((receipt.position, action, edge));
                let seen = receipt.position.into();
                // A host may refuse while it is cut off; what it answers is what was acknowledged.
                if let Ok(exists) = block_on(store.contains(KIND, &[edge], &seen)) {
                    let is_certain = self.unknown.iter().all(|(_, unknown)| *unknown != edge);
                    assert!(
                        !is_certain || exists[0] == (action == EdgeAction::Follow),
                        "{action:?} {edge:?}"
                    );
                }
            }
            Err(Error::TimedOut) => self.unknown.push((action, edge)),
            Err(Error::Unavailable { .. } | Error::Overloaded { .. }) => self.refused += 1,
            Err(other) => panic!("{other}"),
        }
    }

    /// Whether one order of the changes, that of the log, explains what was answered: for every pair by itself.
    fn check(&self, store: &Fleet) {
        let log = whole_log(store);
        let mut unexplained: BTreeMap<(bool, Edge), i64> = BTreeMap::new();
        let key = |action: EdgeAction, edge: Edge| (action == EdgeAction::Follow, edge);
        for change in log.values() {
            let (action, edge) = about(change);
            *unexplained.entry(key(action, edge)).or_default() += 1;
        }
        for &(_, action, edge) in &self.acknowledged {
            *unexplained.entry(key(action, edge)).or_default() -= 1;
        }
        for &(action, edge) in &self.unknown {
            let left = unexplained.entry(key(action, edge)).or_default();
            *left -= i64::from(*left > 0);
        }
        unexplained.retain(|_, count| *count != 0);
        assert!(unexplained.is_empty(), "changes that nobody asked for, or that are lost: {unexplained:?}");
        for &(position, action, edge) in &self.unchanged {
            let of_pair = log.range(..=(position.shard, position.sequence)).rev();
            let last = of_pair.map(|(_, change)| about(change)).find(|(_, changed)| *changed == edge);
            let existed = last.is_some_and(|(last, _)| last == EdgeAction::Follow);
            assert_eq!(existed, action == EdgeAction::Follow, "{action:?} {edge:?} at {position}");
        }
    }
}

/// Stalls the standby again and again until enough connections were cut, some of them during a stall. Returns how many these were.
fn stall(pair: &Pair, proxies: &Proxies) -> u64 {
    let cut = || proxies.count(|cuts| &cuts.after);
    let mut during = 0;
    // A stall takes in a few commits, and one of them is cut only now and then.
    for round in 0..STALLS_MAX {
        if cut() >= cuts() && during > 0 {
            break;
        }
        let before = cut();
        pair.stalled(|| {
            // Some stalls are longer than all timeouts together.
            let length = Duration::from_millis(if round % 8 == 2 { 12_000 } else { 300 });
            let began = Instant::now();
            while pair.waiting() == 0 || began.elapsed() < length {}
        });
        during += cut() - before;
        // All that has waited goes on.
        let before = cut();
        while cut() < before + 8 {
            pair.waiting();
        }
    }
    during
}

#[test]
fn commits_that_are_cut_while_the_standby_stalls_are_settled() {
    let Some(servers) = servers() else { return };
    let pair = Pair::start();
    let servers = [servers[0].clone(), pair.facts["DATABASE_URL"].clone(), servers[2].clone()];
    let mut databases = Databases::create(&servers);
    let settings = databases.settings();
    Fleet::init(&settings, NewDeployment { id_kind: IDS, shards: NonZeroU16::new(32).unwrap() }).unwrap();
    let proxies = Proxies::cutting(CUT_EVERY);
    let store = Fleet::open(proxies.before(settings.clone(), &["a"])).unwrap();
    let projection = Projection::start(&store, &Arc::new(LogSource::new(&store)));

    let (mut story, is_over) = (Story::default(), AtomicBool::new(false));
    let during = std::thread::scope(|scope| {
        let write = |writer| {
            let (store, is_over) = (&store, &is_over);
            scope.spawn(move || Story::write(store, writer, is_over))
        };
        let writers: Vec<_> = (0..WRITERS).map(write).collect();
        let during = stall(&pair, &proxies);
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().for_each(|writer| story.append(writer.join().unwrap()));
        during
    });
    println!(
        "of the host with the standby, {} commits were cut after they were sent, {during} of them during a stall, and {} before; {} changes acknowledged, {} unknown, \
         {} refused",
        proxies.count(|cuts| &cuts.after),
        proxies.count(|cuts| &cuts.before),
        story.acknowledged.len(),
        story.unknown.len(),
        story.refused
    );
    assert!(during > 0, "no commit was cut during a stall");
    drop((projection, store));

    let acknowledged = Acknowledged { changes: story.acknowledged.clone(), ..Acknowledged::default() };
    let store = open(settings);
    audit(&store, &acknowledged);
    story.check(&store);
    drop(store);

    // The primary is lost; the standby takes its place.
    databases.move_to(1, &pair.facts["STANDBY_URL"]);
    pair.promote();
    let store = open(databases.settings());
    audit(&store, &acknowledged);
    story.check(&store);
    let before = story.acknowledged.len();
    (0..USERS).for_each(|from| story.write_one(&store, EdgeAction::Follow, edge(IDS, from, USERS)));
    assert_eq!(story.acknowledged.len() - before, USERS as usize, "the promoted standby is written");
    story.check(&store);
}
