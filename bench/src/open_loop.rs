//! A client that sends by the clock, however many replies are missing, over the Redis protocol. A latency counts from when a
//! command was due, so that a stall shows in every command that it delayed, and so does a client that was late itself.
//!
//! It counts replies and refusals, and does not compare them with anything.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::histogram::Histogram;
use crate::lean_client;

/// How often commands are due: those of one tick go over one connection.
const TICK: Duration = Duration::from_millis(1);
/// How long the last replies may take.
const LAST_REPLIES: Duration = Duration::from_secs(30);
const READ_BYTES: usize = 64 << 10;
/// The event of the clock, which no connection has.
const CLOCK: u64 = u64::MAX;
const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Appends the next commands, so many.
type Encode<'a> = dyn FnMut(u64, &mut Vec<u8>) + 'a;

/// Commands of one sort, over connections of their own.
pub struct Load<'a> {
    pub per_second: u64,
    pub connections: usize,
    pub encode: Box<Encode<'a>>,
}

/// What happened to the commands of a load.
#[derive(Debug)]
pub struct Outcome {
    /// For each second, the latencies of the commands that were due in it.
    pub due: Vec<Histogram>,
    /// For each second, how many replies came in it.
    pub replies: Vec<u64>,
    /// Replies that were errors.
    pub refused: u64,
    /// What the first of them said.
    pub refusal: String,
}

impl Outcome {
    /// The latencies of all commands.
    pub fn latencies(&self) -> Histogram {
        let mut all = Histogram::default();
        self.due.iter().for_each(|second| all.merge(second));
        all
    }
}

/// What all loads together measured.
#[derive(Debug)]
pub struct Outcomes {
    /// In the order of the loads.
    pub loads: Vec<Outcome>,
    /// How late the client itself was in each tick.
    pub lateness: Histogram,
}

struct Connection {
    stream: TcpStream,
    load: usize,
    /// What the kernel has not taken yet.
    unsent: Vec<u8>,
    /// When the commands of each tick were due, and how many of them have no reply.
    ticks: VecDeque<(Instant, u64)>,
}

struct Client {
    connections: Vec<Connection>,
    ready: OwnedFd,
    /// Wakes the client at every tick: a time-out of the wait would be rounded to milliseconds.
    clock: OwnedFd,
    begun: Instant,
    outcomes: Vec<Outcome>,
    buffer: Vec<u8>,
    events: Vec<epoll::Event>,
}

/// Sends the commands of all loads for a time, and waits for the replies.
pub fn run(address: SocketAddr, key: &str, loads: &mut [Load<'_>], time: Duration) -> Result<Outcomes> {
    let mut client = Client::connect(address, key, loads, time)?;
    let mut lateness = Histogram::default();
    for tick in 1..=(time.as_nanos() / TICK.as_nanos()) as u32 {
        let due = client.begun + TICK * tick;
        client.receive_until(due)?;
        lateness.record(due.elapsed());
        let mut first = 0;
        for load in &mut *loads {
            // Whole numbers in every tick, and exactly the rate in every second.
            let total = |ticks: u32| load.per_second * u64::from(ticks) * TICK.as_millis() as u64 / 1_000;
            let count = total(tick) - total(tick - 1);
            let connection = &mut client.connections[first + tick as usize % load.connections];
            (load.encode)(count, &mut connection.unsent);
            connection.ticks.push_back((due, count));
            connection.send()?;
            first += load.connections;
        }
    }
    client.receive_the_rest()?;
    Ok(Outcomes { loads: client.outcomes, lateness })
}

impl Client {
    fn connect(address: SocketAddr, key: &str, loads: &[Load<'_>], time: Duration) -> Result<Self> {
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut connections: Vec<Connection> = Vec::new();
        for (number, load) in loads.iter().enumerate() {
            for _ in 0..load.connections {
                let stream = lean_client::open(address, Some(key))?;
                stream.set_nonblocking(true)?;
                let data = epoll::EventData::new_u64(connections.len() as u64);
                epoll::add(&ready, &stream, data, epoll::EventFlags::IN)?;
                let (unsent, ticks) = (Vec::new(), VecDeque::new());
                connections.push(Connection { stream, load: number, unsent, ticks });
            }
        }
        let seconds = time.as_secs().max(1) as usize;
        let outcome = |_: &Load<'_>| Outcome {
            due: vec![Histogram::default(); seconds],
            replies: vec![0; seconds],
            refused: 0,
            refusal: String::new(),
        };
        let outcomes = loads.iter().map(outcome).collect();
        let (buffer, events) = (vec![0; READ_BYTES], Vec::with_capacity(connections.len() + 1));
        let clock =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(&ready, &clock, epoll::EventData::new_u64(CLOCK), epoll::EventFlags::IN)?;
        let tick = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as _ };
        let begun = Instant::now();
        timerfd_settime(
            &clock,
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval: tick, it_value: tick },
        )?;
        Ok(Self { connections, ready, clock, begun, outcomes, buffer, events })
    }

    /// Reads replies until a moment, at least those that are there.
    fn receive_until(&mut self, moment: Instant) -> Result<()> {
        loop {
            let is_due = Instant::now() >= moment;
            epoll::wait(&self.ready, spare_capacity(&mut self.events), is_due.then_some(&NO_TIME))?;
            let events = std::mem::take(&mut self.events);
            for event in &events {
                match event.data.u64() {
                    CLOCK => {
                        // How often it has ticked; nothing if another wait was faster.
                        let _ = rustix::io::read(&self.clock, &mut [0; 8]);
                    }
                    number => self.receive(number as usize)?,
                }
            }
            self.events = events;
            self.events.clear();
            if is_due {
                return Ok(());
            }
        }
    }

    fn receive_the_rest(&mut self) -> Result<()> {
        let deadline = Instant::now() + LAST_REPLIES;
        while self.connections.iter().any(|connection| !connection.ticks.is_empty()) {
            if Instant::now() > deadline {
                bail!("the last replies did not come within {} s", LAST_REPLIES.as_secs());
            }
            self.connections.iter_mut().try_for_each(Connection::send)?;
            self.receive_until(Instant::now() + TICK)?;
        }
        Ok(())
    }

    fn receive(&mut self, number: usize) -> Result<()> {
        let Self { connections, outcomes, buffer, begun, .. } = self;
        let connection = &mut connections[number];
        let Outcome { due, replies, refused, refusal } = &mut outcomes[connection.load];
        let read = match connection.stream.read(buffer) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let now = Instant::now();
        let received = &buffer[..read];
        let count = |wanted: u8| received.iter().filter(|&&byte| byte == wanted).count() as u64;
        let refused_now = count(b'-');
        if refused_now > 0 && *refused == 0 {
            let text = String::from_utf8_lossy(received);
            *refusal = text.lines().find(|line| line.starts_with('-')).unwrap_or_default().to_owned();
        }
        *refused += refused_now;
        let last = due.len() - 1;
        let second = |at: Instant| (at.saturating_duration_since(*begun).as_secs() as usize).min(last);
        let mut count = count(b'\n');
        replies[second(now)] += count;
        while count > 0 {
            let Some((tick, missing)) = connection.ticks.front_mut() else {
                bail!("the server replied to what nobody asked");
            };
            let replied = count.min(*missing);
            due[second(*tick - TICK)].record_many(now - *tick, replied);
            (*missing, count) = (*missing - replied, count - replied);
            if *missing == 0 {
                connection.ticks.pop_front();
            }
        }
        Ok(())
    }
}

impl Connection {
    /// Sends as much as the kernel takes.
    fn send(&mut self) -> Result<()> {
        // A tick without a command has no reply.
        while self.ticks.back().is_some_and(|(_, missing)| *missing == 0) {
            self.ticks.pop_back();
        }
        let mut sent = 0;
        while sent < self.unsent.len() {
            match self.stream.write(&self.unsent[sent..]) {
                Ok(written) => sent += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.unsent.drain(..sent);
        Ok(())
    }
}

/// Commands that were encoded before and are sent again and again.
pub struct Encoded {
    bytes: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
    next: usize,
}

impl Encoded {
    /// Panics without a command.
    pub fn new<const N: usize>(commands: impl Iterator<Item = [String; N]>) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for command in commands {
            lean_client::encode(&command.each_ref().map(String::as_str), &mut bytes);
            ends.push(bytes.len());
        }
        assert!(!ends.is_empty(), "there is something to send");
        Self { bytes, ends, next: 0 }
    }

    /// Appends the next commands, so many.
    pub fn take(&mut self, mut count: u64, out: &mut Vec<u8>) {
        while count > 0 {
            let taken = (self.ends.len() - self.next).min(count as usize);
            let start = self.next.checked_sub(1).map_or(0, |before| self.ends[before]);
            out.extend_from_slice(&self.bytes[start..self.ends[self.next + taken - 1]]);
            self.next = (self.next + taken) % self.ends.len();
            count -= taken as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Replies `:1` to every `*3` command, and an error to every hundredth; `stall` once, before the first.
    fn server(stall: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || {
                    let (mut buffer, mut count) = ([0; 4_096], 0);
                    while let Ok(read @ 1..) = stream.read(&mut buffer) {
                        if buffer.starts_with(b"AUTH") {
                            stream.write_all(b"+OK\r\n").unwrap();
                            buffer.fill(0);
                            thread::sleep(stall);
                            continue;
                        }
                        let commands = buffer[..read].iter().filter(|&&byte| byte == b'*').count();
                        for _ in 0..commands {
                            count += 1;
                            let reply: &[u8] = if count % 100 == 0 { b"-NO\r\n" } else { b":1\r\n" };
                            let _ = stream.write_all(reply);
                        }
                    }
                });
            }
        });
        address
    }

    fn run_against(stall: Duration) -> Outcomes {
        let mut checks = Encoded::new(
            (0..7).map(|user| ["SISMEMBER".to_owned(), format!("following:{user}"), "8".to_owned()]),
        );
        let loads = &mut [
            Load {
                per_second: 3_500,
                connections: 3,
                encode: Box::new(|count, out| checks.take(count, out)),
            },
            Load {
                per_second: 300,
                connections: 1,
                encode: Box::new(|count, out| {
                    (0..count).for_each(|_| lean_client::encode(&["SADD", "following:1", "2"], out));
                }),
            },
        ];
        run(server(stall), "key", loads, Duration::from_secs(1)).unwrap()
    }

    #[test]
    fn every_command_has_a_latency() {
        let Outcomes { loads, lateness } = run_against(Duration::ZERO);
        let totals: Vec<u64> = loads.iter().map(|load| load.latencies().total()).collect();
        assert_eq!(totals, [3_500, 300]);
        assert_eq!(loads.iter().map(|load| load.replies.iter().sum()).collect::<Vec<u64>>(), totals);
        assert_eq!(loads.iter().map(|load| load.refused).collect::<Vec<_>>(), [33, 3]);
        assert_eq!(loads[0].refusal, "-NO");
        assert_eq!(lateness.total(), 1_000);
    }

    /// A server that stalls for a while has delayed everything that was due meanwhile.
    #[test]
    fn a_stall_counts_for_all_that_it_delayed() {
        let Outcomes { loads, .. } = run_against(Duration::from_millis(500));
        let latencies = loads[0].latencies();
        assert_eq!(latencies.total(), 3_500);
        assert!(latencies.percentile_ms(0.75) >= 200.0, "{}", latencies.percentile_ms(0.75));
    }

    #[test]
    fn encoded_commands_begin_again() {
        let mut encoded = Encoded::new([["A".to_owned()], ["BC".to_owned()]].into_iter());
        let mut out = Vec::new();
        encoded.take(3, &mut out);
        encoded.take(0, &mut out);
        encoded.take(1, &mut out);
        let [a, b] = ["*1\r\n$1\r\nA\r\n", "*1\r\n$2\r\nBC\r\n"];
        assert_eq!(String::from_utf8(out).unwrap(), [a, b, a, b].concat());
    }
}
