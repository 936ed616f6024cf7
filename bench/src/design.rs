//! `design`: the load that Kinfolk is designed for, all of it at once, on this machine, over the Redis protocol.
//!
//! Open loop: commands are sent by the clock, however many replies are missing, and a latency counts from when a
//! command was due, so that a stall shows in every command that it delayed.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::Write;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::LocalSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::dataset::Dataset;
use crate::histogram::Histogram;
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::random::Random;
use crate::server::{Server, cpu_seconds};
use crate::survey::Users;

const NAME: &str = "design";
const CHECKS_PER_SECOND: u64 = 580_000;
const FOLLOWS_PER_SECOND: u64 = 60_000;
const CHECKERS: usize = 8;
const WRITERS: usize = 32;
const TICK: Duration = Duration::from_millis(1);
/// A generated account may follow as many as is allowed already: then, and only then, a follow is refused.
const REFUSED_MAX: u64 = 1_000;

const ROWS: &[Row] = &[
    Row::new("checks", "checks answered", "/s").target(Target::AtLeast(0.99 * CHECKS_PER_SECOND as f64)),
    Row::new("follows", "durable follows answered", "/s")
        .target(Target::AtLeast(0.99 * FOLLOWS_PER_SECOND as f64)),
    Row::new("check_p50", "check under the whole load, p50", "ms"),
    Row::new("check_p99", "check under the whole load, p99", "ms").target(Target::Below(5.0)),
    Row::new("follow_p50", "durable follow under the whole load, p50", "ms"),
    Row::new("follow_p99", "durable follow under the whole load, p99", "ms"),
    Row::new("cores", "cores that the server used", ""),
    Row::new("half_check_p50", "check under half of it, p50", "ms"),
    Row::new("half_check_p99", "check under half of it, p99", "ms").target(Target::Below(1.0)),
    Row::new("half_follow_p50", "durable follow under half of it, p50", "ms"),
    Row::new("half_follow_p99", "durable follow under half of it, p99", "ms"),
    Row::new("half_cores", "cores that the server used", ""),
];

/// What a load measured.
#[derive(Debug, Default)]
struct Outcome {
    checks: Histogram,
    follows: Histogram,
    cores: f64,
    elapsed: Duration,
}

pub fn run(options: &Options) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let scratch = data.scratch_store()?;
    let server = Server::start(data.kinfolk(), scratch.path())?;
    let mut recorder = Recorder::new(ROWS);
    for round in 1..=options.rounds {
        eprintln!("{NAME}, round {round}");
        let half =
            load(&server, options, data.survey.users, (CHECKS_PER_SECOND / 2, FOLLOWS_PER_SECOND / 2))?;
        recorder.record("half_check_p50", half.checks.percentile_ms(0.5));
        recorder.record("half_check_p99", half.checks.percentile_ms(0.99));
        recorder.record("half_follow_p50", half.follows.percentile_ms(0.5));
        recorder.record("half_follow_p99", half.follows.percentile_ms(0.99));
        recorder.record("half_cores", half.cores);
        let whole = load(&server, options, data.survey.users, (CHECKS_PER_SECOND, FOLLOWS_PER_SECOND))?;
        let seconds = whole.elapsed.as_secs_f64();
        recorder.record("checks", whole.checks.total() as f64 / seconds);
        recorder.record("follows", whole.follows.total() as f64 / seconds);
        recorder.record("check_p50", whole.checks.percentile_ms(0.5));
        recorder.record("check_p99", whole.checks.percentile_ms(0.99));
        recorder.record("follow_p50", whole.follows.percentile_ms(0.5));
        recorder.record("follow_p99", whole.follows.percentile_ms(0.99));
        recorder.record("cores", whole.cores);
    }
    server.stop()?;
    let notes = vec![
        format!(
            "{} s of half the load, then {0} s of the whole; the client runs on the same cores",
            options.seconds
        ),
        format!(
            "{CHECKERS} connections send checks, {WRITERS} send follows of new edges, pipelined, every millisecond"
        ),
        "latencies count from when a command was due".to_owned(),
    ];
    recorder.finish(NAME, data.size, notes).publish(&options.results)
}

fn load(server: &Server, options: &Options, users: Users, (checks, follows): (u64, u64)) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let before = cpu_seconds(server.process());
    let started = Instant::now();
    let outcome = LocalSet::new().block_on(&runtime, async {
        let mut checkers = connect(server, CHECKERS).await?;
        let mut writers = connect(server, WRITERS).await?;
        let mut random =
            Random::new(u64::from(options.rounds) ^ checks ^ started.elapsed().as_nanos() as u64);
        let begun = Instant::now();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let (mut checked, mut followed, mut turn) = (0, 0, 0_usize);
        while begun.elapsed() < options.round_time() {
            tick.tick().await;
            let due = begun.elapsed().as_secs_f64();
            let more = (due * checks as f64) as u64 - checked;
            checkers[turn % CHECKERS].send("SISMEMBER", more, users, &mut random).await?;
            checked += more;
            let more = (due * follows as f64) as u64 - followed;
            writers[turn % WRITERS].send("SADD", more, users, &mut random).await?;
            followed += more;
            turn += 1;
        }
        let elapsed = begun.elapsed();
        let outcome =
            Outcome { checks: finish(checkers).await?, follows: finish(writers).await?, cores: 0.0, elapsed };
        anyhow::Ok(outcome)
    })?;
    let cores = (cpu_seconds(server.process()) - before) / started.elapsed().as_secs_f64();
    Ok(Outcome { cores, ..outcome })
}

/// A connection, and the batches that are on their way over it.
struct Connection {
    write: OwnedWriteHalf,
    state: Rc<RefCell<State>>,
    reader: tokio::task::JoinHandle<Result<()>>,
    commands: Vec<u8>,
}

#[derive(Default)]
struct State {
    batches: VecDeque<(Instant, u64)>,
    latency: Histogram,
    refused: u64,
    ended: bool,
}

async fn connect(server: &Server, count: usize) -> Result<Vec<Connection>> {
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(Connection::open(server.resp, &server.key).await?);
    }
    Ok(connections)
}

async fn finish(connections: Vec<Connection>) -> Result<Histogram> {
    let mut all = Histogram::default();
    for connection in connections {
        all.merge(&connection.finish().await?);
    }
    Ok(all)
}

impl Connection {
    async fn open(address: SocketAddr, key: &str) -> Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        stream.write_all(format!("AUTH {key}\r\n").as_bytes()).await?;
        let mut reply = [0; 5];
        stream.read_exact(&mut reply).await?;
        if &reply != b"+OK\r\n" {
            bail!("the server refused the key");
        }
        let (read, write) = stream.into_split();
        let state = Rc::new(RefCell::new(State::default()));
        let reader = tokio::task::spawn_local(receive(read, Rc::clone(&state)));
        Ok(Self { write, state, reader, commands: Vec::new() })
    }

    async fn send(&mut self, name: &str, count: u64, users: Users, random: &mut Random) -> Result<()> {
        let due = Instant::now();
        self.commands.clear();
        for _ in 0..count {
            let pair = users.random_pair(random);
            write!(self.commands, "{name} following:{} {}\r\n", pair.follower, pair.followee)?;
        }
        self.state.borrow_mut().batches.push_back((due, count));
        self.write.write_all(&self.commands).await.context("the server does not take commands")
    }

    /// Waits for all replies.
    async fn finish(self) -> Result<Histogram> {
        self.state.borrow_mut().ended = true;
        let Self { mut write, state, reader, .. } = self;
        write.write_all(b"QUIT\r\n").await?;
        reader.await??;
        Ok(std::mem::take(&mut state.borrow_mut().latency))
    }
}

/// Counts replies, a line each, and notes how long each batch took.
async fn receive(mut read: OwnedReadHalf, state: Rc<RefCell<State>>) -> Result<()> {
    let mut buffer = vec![0; 64 << 10];
    let mut replies = 0;
    let count = |bytes: &[u8], wanted: u8| bytes.iter().filter(|&&byte| byte == wanted).count() as u64;
    loop {
        let received = read.read(&mut buffer).await?;
        let now = Instant::now();
        let mut state = state.borrow_mut();
        if received == 0 {
            return if state.ended { Ok(()) } else { bail!("the server closed a connection") };
        }
        state.refused += count(&buffer[..received], b'-');
        if state.refused > REFUSED_MAX {
            bail!("the server answered: {}", String::from_utf8_lossy(&buffer[..received.min(200)]));
        }
        replies += count(&buffer[..received], b'\n');
        while let Some(&(due, count)) = state.batches.front() {
            if replies < count {
                break;
            }
            replies -= count;
            state.batches.pop_front();
            state.latency.record_many(now - due, count);
        }
    }
}
