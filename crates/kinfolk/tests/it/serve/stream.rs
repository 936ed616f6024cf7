//! The change stream across restarts and kills, with readers that are quick, slow and fickle: every event in order, and once but
//! for those after the last id, which a reader that comes back gets again.
//!
//! `KINFOLK_STREAM_EVENTS` says how many events; by default few enough for every run of the tests.

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use serde::Deserialize;

use super::running::{PATIENCE, Running};
use crate::support::Sandbox;

const EVENTS_DEFAULT: u64 = 20_000;
/// How often the server ends: every second time it is killed.
const RESTARTS: u64 = 6;
/// Writes that each command of the writer has.
const COMMANDS: u64 = 600;
/// The last event: whoever has seen it has seen all.
const LAST: (u64, u64) = (999_999_999, 999_999_998);
/// How long a client that was not let in waits before it tries again, unless it hears of a new server.
const RETRY: Duration = Duration::from_secs(1);

/// Where the server is now, and how far the writer has come.
#[derive(Default)]
struct State {
    /// How many servers there have been.
    servers: u64,
    http: String,
    resp: String,
    /// How many commands.
    written: u64,
    /// Whether there are no more.
    is_done: bool,
}

#[derive(Default)]
struct Place {
    state: Mutex<State>,
    changed: Condvar,
}

impl Place {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits until something holds, or not longer than `max`; what `look` then sees.
    fn wait<T>(&self, max: Duration, until: impl Fn(&State) -> bool, look: impl Fn(&State) -> T) -> T {
        let state = self.state.lock().unwrap();
        let (state, _) = self.changed.wait_timeout_while(state, max, |state| !until(state)).unwrap();
        look(&state)
    }
}

/// How a reader reads.
#[derive(Clone, Copy, Debug)]
enum Manner {
    Quick,
    /// Takes a page, then waits until the writer is a good deal further.
    Slow,
    /// Goes away after so many events and comes back: in the middle of a page, most of the time.
    Fickle(u64),
}

#[derive(Deserialize)]
struct Event {
    position: String,
    r#type: String,
    follower: String,
    followee: String,
}

/// What a reader has seen.
#[derive(Default)]
struct Seen {
    last_id: String,
    /// The position that the last id stands for.
    last_id_position: u64,
    /// The position of the newest event on this connection.
    connection_position: u64,
    position: u64,
    edges: HashSet<(u64, u64)>,
    is_complete: bool,
}

impl Seen {
    fn take(&mut self, id: Option<String>, data: &str) {
        let event: Event = serde_json::from_str(data).unwrap();
        let position = event.position.strip_prefix("0-").unwrap().parse().unwrap();
        assert_eq!(position, self.connection_position + 1, "the next event, not one before and none after");
        self.connection_position = position;
        if let Some(id) = id {
            (self.last_id, self.last_id_position) = (id, position);
        }
        if position <= self.position {
            return;
        }
        let edge = (event.follower.parse().unwrap(), event.followee.parse().unwrap());
        let is_news = match event.r#type.as_str() {
            "follow" => self.edges.insert(edge),
            "unfollow" => self.edges.remove(&edge),
            other => panic!("an event of type {other}"),
        };
        assert!(is_news, "{} {edge:?} changes nothing", event.r#type);
        self.position = position;
        self.is_complete = edge == LAST;
    }
}

/// Reads the body of a chunked answer.
struct Chunks {
    stream: BufReader<TcpStream>,
    left: usize,
}

impl Chunks {
    fn open(address: &str, last_id: &str) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address.trim_start_matches("http://"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let resume = if last_id.is_empty() { String::new() } else { format!("last-event-id: {last_id}\r\n") };
        write!(stream, "GET /v1/changes/stream HTTP/1.1\r\nhost: localhost\r\n{resume}\r\n")?;
        let mut chunks = Self { stream: BufReader::new(stream), left: 0 };
        let status = chunks.line()?;
        // A server that is starting or stopping says so.
        if status.contains(" 503 ") {
            return Err(ended());
        }
        assert!(status.contains(" 200 "), "{status}");
        while !chunks.line()?.is_empty() {}
        Ok(chunks)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 || !line.ends_with('\n') {
            return Err(ended());
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            self.left = usize::from_str_radix(&self.line()?, 16).map_err(|_| ended())?;
            if self.left == 0 {
                return Ok(0);
            }
        }
        let most = self.left.min(buffer.len());
        let count = self.stream.read(&mut buffer[..most])?;
        self.left -= count;
        if count > 0 && self.left == 0 {
            self.line()?;
        }
        Ok(count)
    }
}

fn ended() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// Reads one stream until it ends or the reader wants another.
fn listen(address: &str, manner: Manner, place: &Place, seen: &mut Seen) -> io::Result<()> {
    let mut stream = BufReader::new(Chunks::open(address, &seen.last_id)?);
    seen.connection_position = seen.last_id_position;
    let (mut id, mut data) = (None, String::new());
    let mut taken = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 || !line.ends_with('\n') {
            return Err(ended());
        }
        match line.trim_end().split_once(": ") {
            Some(("id", value)) => id = Some(value.to_owned()),
            Some(("data", value)) => value.clone_into(&mut data),
            Some(("event", name)) => assert_ne!(name, "problem"),
            // The end of an event; what comes before it counts only now.
            None if !data.is_empty() => {
                seen.take(id.take(), &data);
                data.clear();
                taken += 1;
                match manner {
                    _ if seen.is_complete => return Ok(()),
                    Manner::Quick => {}
                    Manner::Slow if taken % 1_000 == 0 => {
                        let enough = place.wait(Duration::ZERO, |_| true, |state| state.written) + 5;
                        place.wait(RETRY, |state| state.is_done || state.written >= enough, |_| ());
                    }
                    Manner::Slow => {}
                    Manner::Fickle(after) if taken == after => return Ok(()),
                    Manner::Fickle(_) => {}
                }
            }
            _ => {}
        }
    }
}

fn read(manner: Manner, place: &Place) -> Seen {
    let mut seen = Seen::default();
    let mut in_vain = 0;
    while !seen.is_complete {
        let (server, http) =
            place.wait(Duration::ZERO, |_| true, |state| (state.servers, state.http.clone()));
        let before = seen.position;
        if listen(&http, manner, place, &mut seen).is_err() {
            place.wait(RETRY, |state| state.servers > server, |_| ());
        }
        in_vain = if seen.position > before { 0 } else { in_vain + 1 };
        assert!(in_vain < PATIENCE.as_secs(), "{manner:?}: nothing after position {before}");
    }
    seen
}

/// Sends a command until it is answered, by whichever server. Repeating it changes nothing.
fn write(place: &Place, connection: &mut Option<TcpStream>, command: &str) {
    for _ in 0..PATIENCE.as_secs() {
        let (server, resp) =
            place.wait(Duration::ZERO, |_| true, |state| (state.servers, state.resp.clone()));
        let answered = (|| {
            let mut stream = match connection.take() {
                Some(stream) => stream,
                None => TcpStream::connect(&resp)?,
            };
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(command.as_bytes())?;
            let mut line = String::new();
            if BufReader::new(&stream).read_line(&mut line)? == 0 || !line.ends_with('\n') {
                return Err(ended());
            }
            assert!(line.starts_with(':'), "{line}");
            *connection = Some(stream);
            Ok(())
        })();
        if answered.is_ok() {
            return place.change(|state| state.written += 1);
        }
        place.wait(RETRY, |state| state.servers > server, |_| ());
    }
    panic!("no server answers");
}

/// The commands that make so many events: users follow many, and unfollow some of them.
fn commands(events: u64) -> Vec<String> {
    let many = events.div_ceil(COMMANDS);
    let members =
        |user: u64, count: u64| (0..count).map(|id| format!(" {}", user * 7 + id + 1)).collect::<String>();
    let mut left = events - 1;
    let mut commands = Vec::new();
    for user in 1.. {
        for (name, count) in [("SADD", many), ("SREM", many.div_ceil(4))] {
            let count = count.min(left);
            if count == 0 {
                break;
            }
            // Nobody follows itself: no user's members reach down to its own number.
            commands.push(format!("{name} following:{user}{}\r\n", members(user, count)));
            left -= count;
        }
        if left == 0 {
            break;
        }
    }
    commands.push(format!("SADD following:{} {}\r\n", LAST.0, LAST.1));
    commands
}

#[test]
fn every_event_arrives_once_across_restarts() {
    let events = std::env::var("KINFOLK_STREAM_EVENTS").map_or(EVENTS_DEFAULT, |text| text.parse().unwrap());
    let sandbox = Sandbox::new();
    let place = Place::default();
    let start = || {
        let server = Running::start(&sandbox, "--limit-changes none --grace 1s");
        place.change(|state| {
            (state.http, state.resp) = (server.http.clone(), server.resp.clone());
            state.servers += 1;
        });
        server
    };
    let commands = commands(events);
    std::thread::scope(|scope| {
        let mut server = start();
        let readers =
            [Manner::Quick, Manner::Slow, Manner::Slow, Manner::Fickle(events / 26 + 1)].map(|manner| {
                let place = &place;
                scope.spawn(move || read(manner, place))
            });
        scope.spawn(|| {
            let mut connection = None;
            commands.iter().for_each(|command| write(&place, &mut connection, command));
            place.change(|state| state.is_done = true);
        });
        for restart in 1..=RESTARTS {
            let reached = commands.len() as u64 * restart / (RESTARTS + 1);
            let written = place.wait(10 * PATIENCE, |state| state.written >= reached, |state| state.written);
            assert!(written >= reached, "the writer stands still at {written}");
            server.end(if restart % 2 == 0 { "TERM" } else { "KILL" });
            server = start();
        }
        let seen = readers.map(|reader| reader.join().unwrap());
        for reader in &seen {
            assert_eq!(reader.position, events);
            assert_eq!(reader.edges, seen[0].edges);
        }
        assert_eq!(server.end("TERM").0, 0);
        let exported = sandbox.export("kinfolk-data");
        let lines = exported.lines().skip(1).map(|line| {
            let mut columns = line.split(',').map(|column| column.parse().unwrap_or_default());
            (columns.next().unwrap(), columns.next().unwrap())
        });
        assert_eq!(lines.collect::<HashSet<(u64, u64)>>(), seen[0].edges);
        println!("{events} events, {RESTARTS} restarts, {} readers: each event, in order", seen.len());
    });
}
