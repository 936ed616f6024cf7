//! Real processes on one deployment that are stopped and killed while they write and project: nothing that was acknowledged is
//! lost, nothing is invented, and a stopped process does not keep a shard from the others.
//!
//! Every process projects all sources: each source has three owners at once, and one that was stopped comes back in the middle of
//! what the others have done meanwhile.

use std::io::{BufRead, BufReader, Write};
use std::num::NonZeroU16;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinfolk_conformance::{block_on, edge, user};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeStore, FollowerCommand, WriteRequest};
use kinfolk_core::{EdgeKind, IdKind, Position, Shard, SystemClock};
use kinfolk_fleet::{Fleet, LogSource, NewDeployment, Projection, Settings, Timeouts};
use rustix::process::{Pid, Signal, kill_process};

use crate::audits::audit;
use crate::deployments::{Databases, process, servers, settings_of_process};

const KIND: EdgeKind = EdgeKind::Follow;
const IDS: IdKind = IdKind::Integer;
pub const USERS: u64 = 24;

/// Set for the processes that the test starts from its own binary.
const CHILD: &str = "KINFOLK_FLEET_CHILD";

/// How many rounds of faults to run: as many as the environment asks for.
fn rounds() -> u32 {
    std::env::var("KINFOLK_FLEET_FAULTS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(6)
}

/// How long a process is stopped in a round: longer than every timeout in some of them.
fn stop(round: u32, random: &mut Random) -> Duration {
    match (round % 3, rounds()) {
        (2, 0..30) => Duration::from_secs(5),
        (2, _) => Duration::from_secs(5 + random.below(26)),
        _ => Duration::ZERO,
    }
}

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

pub fn write(
    store: &Fleet,
    action: EdgeAction,
    from: u64,
    to: u64,
) -> kinfolk_core::Result<(Position, bool)> {
    let commands = vec![FollowerCommand { action, followee: user(IDS, to) }];
    let request = WriteRequest {
        kind: KIND,
        follower: user(IDS, from),
        commands: commands.into(),
        following_limit: 1_000,
    };
    block_on(store.write_one(request)).map(|receipt| (receipt.position, receipt.changed[0]))
}

pub fn open(settings: Settings) -> Fleet {
    let store = Fleet::open_with_clock(settings, Arc::new(SystemClock)).unwrap();
    Projection::start(&store, &Arc::new(LogSource::new(&store))).detach();
    store
}

/// Writes until it is killed, and reports each change that was acknowledged.
#[test]
fn a_process_of_its_own() {
    let Ok(seed) = std::env::var(CHILD) else { return };
    let store = open(settings_of_process());
    let mut random = Random(seed.parse().unwrap());
    let mut out = std::io::stdout();
    loop {
        let from = random.below(USERS);
        let to = (from + 1 + random.below(USERS - 1)) % USERS;
        let (action, word) = match random.below(5) {
            0..3 => (EdgeAction::Follow, "follow"),
            _ => (EdgeAction::Unfollow, "unfollow"),
        };
        match write(&store, action, from, to) {
            Ok((position, true)) => writeln!(out, "\n{word} {from} {to} {position}").unwrap(),
            Ok((_, false)) => {}
            Err(error) => writeln!(out, "\nerror {error}").unwrap(),
        }
    }
}

/// A process, and what it was acknowledged so far.
struct Writer {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Writer {
    fn start(settings: &Settings, seed: u64) -> Self {
        let mut process = process(settings, "processes::a_process_of_its_own")
            .env(CHILD, seed.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Reads until so many more changes are acknowledged, or to the end.
    fn read(&mut self, changes: usize, acknowledged: &mut Acknowledged) {
        let mut line = String::new();
        for _ in 0..changes {
            loop {
                line.clear();
                if self.output.read_line(&mut line).unwrap() == 0 {
                    return;
                }
                if acknowledged.add(&line) {
                    break;
                }
            }
        }
    }

    fn kill(mut self, acknowledged: &mut Acknowledged) {
        self.process.kill().unwrap();
        self.read(usize::MAX, acknowledged);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // It may be dead already.
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// What was acknowledged to any process.
#[derive(Default)]
pub struct Acknowledged {
    pub changes: Vec<(Position, EdgeAction, Edge)>,
    pub errors: u64,
}

impl Acknowledged {
    /// Whether a line says that a change was acknowledged. The last line of a process that was killed may be cut off.
    fn add(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        let action = match words.first() {
            Some(&"follow") => EdgeAction::Follow,
            Some(&"unfollow") => EdgeAction::Unfollow,
            Some(&"error") => {
                println!("{line}");
                self.errors += 1;
                return false;
            }
            _ => return false,
        };
        let (&[_, from, to, position], true) = (&words[..], line.ends_with('\n')) else { return false };
        let edge = edge(IDS, from.parse().unwrap(), to.parse().unwrap());
        self.changes.push((position.parse().unwrap(), action, edge));
        true
    }
}

#[test]
fn processes_that_are_stopped_and_killed_lose_nothing() {
    let Some(servers) = servers() else { return };
    let databases = Databases::create(&servers);
    let settings = databases.settings();
    Fleet::init(&settings, NewDeployment { id_kind: IDS, shards: NonZeroU16::new(4).unwrap() }).unwrap();
    let store = open(settings.clone());
    let mut random = Random(20_261_116);
    let mut acknowledged = Acknowledged::default();
    let mut longest = Duration::ZERO;
    let mut writers: Vec<Writer> = (0..2).map(|seed| Writer::start(&settings, seed)).collect();
    for round in 0..rounds() {
        for writer in &mut writers {
            writer.read(20 + random.below(40) as usize, &mut acknowledged);
        }
        let victim = random.below(2) as usize;
        let (stopped, stop) = (Instant::now(), stop(round, &mut random));
        writers[victim].signal(Signal::STOP);
        // Whatever it was in the middle of, every shard can be written.
        loop {
            for number in 0..USERS {
                let began = Instant::now();
                let action = if random.below(2) == 0 { EdgeAction::Follow } else { EdgeAction::Unfollow };
                let (position, changed) =
                    write(&store, action, number, (number + 1) % USERS).expect("a write");
                longest = longest.max(began.elapsed());
                if changed {
                    acknowledged.changes.push((position, action, edge(IDS, number, (number + 1) % USERS)));
                }
            }
            if stopped.elapsed() >= stop {
                break;
            }
        }
        writers[victim].signal(Signal::CONT);
        writers[victim].read(5, &mut acknowledged);
        let killed = writers.swap_remove(random.below(2) as usize);
        killed.kill(&mut acknowledged);
        writers.push(Writer::start(&settings, 100 + u64::from(round)));
    }
    writers.into_iter().for_each(|writer| writer.kill(&mut acknowledged));
    println!(
        "{} changes acknowledged, {} errors; the longest write beside a stopped process took {longest:?}",
        acknowledged.changes.len(),
        acknowledged.errors
    );
    audit(&store, &acknowledged);
}

/// A transaction that waits for its process under the lock of a shard, by the host of the lock: its shard and its backend.
const HELD: &str = "
    SELECT coalesce(max(locks.objid::bigint * 4294967296 + locks.pid), -1)
    FROM pg_locks AS locks JOIN pg_stat_activity AS backends USING (pid)
    WHERE locks.locktype = 'advisory' AND locks.classid = 27494 AND locks.granted
      AND backends.datname = current_database() AND backends.state = 'idle in transaction'";

/// The shard whose lock a process holds that is stopped: its host finds the transaction waiting, and again a moment later.
fn shard_held_by_stopped(databases: &Databases) -> Option<Shard> {
    let held = |database| Some(databases.number(database, HELD)).filter(|&held| held >= 0);
    let first = held(1).map(|held| (1, held)).or_else(|| held(2).map(|held| (2, held)));
    let (database, found) = first?;
    (held(database) == Some(found)).then_some(Shard((found >> 32) as u16))
}

/// The host ends the transaction of a process that is silent for two seconds. A write that gives up after three gets the shard.
#[test]
fn a_stopped_process_loses_its_shard_within_seconds() {
    let Some(servers) = servers() else { return };
    let databases = Databases::create(&servers);
    let settings = databases.settings();
    Fleet::init(&settings, NewDeployment { id_kind: IDS, shards: NonZeroU16::new(4).unwrap() }).unwrap();
    let timeouts = Timeouts { write: Duration::from_secs(3), ..settings.timeouts };
    let store = open(Settings { timeouts, ..settings.clone() });
    let mut acknowledged = Acknowledged::default();
    let mut writer = Writer::start(&settings, 7);
    let shard = loop {
        writer.read(3, &mut acknowledged);
        writer.signal(Signal::STOP);
        if let Some(shard) = shard_held_by_stopped(&databases) {
            break shard;
        }
        writer.signal(Signal::CONT);
    };
    let from = (0..USERS).find(|&number| store.shard_of(user(IDS, number)) == shard).unwrap();
    let began = Instant::now();
    // Of both, one changes something.
    for action in [EdgeAction::Follow, EdgeAction::Unfollow] {
        let (position, changed) = write(&store, action, from, (from + 1) % USERS).expect("a write");
        if changed {
            acknowledged.changes.push((position, action, edge(IDS, from, (from + 1) % USERS)));
        }
    }
    println!("shard {} was free after {:?}", shard.0, began.elapsed());
    writer.signal(Signal::CONT);
    writer.read(20, &mut acknowledged);
    writer.kill(&mut acknowledged);
    audit(&store, &acknowledged);
}
