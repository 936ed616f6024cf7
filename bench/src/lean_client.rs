//! A client that costs little, so that the server is what limits a rate: requests that were encoded before, one thread, and
//! connections that each send a batch and wait for all of its replies.
//!
//! It knows how long the replies of a batch are, and compares what they say with what they said before.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fd::OwnedFd;

use crate::histogram::Histogram;

const READ_BYTES: usize = 64 << 10;

/// Commands that are sent at once.
#[derive(Debug)]
pub struct Batch {
    request: Vec<u8>,
    reply_bytes: usize,
}

impl Batch {
    pub fn new() -> Self {
        Self { request: Vec::new(), reply_bytes: 0 }
    }

    /// Adds a command whose reply has so many bytes.
    pub fn add(&mut self, words: &[&str], reply_bytes: usize) {
        encode(words, &mut self.request);
        self.reply_bytes += reply_bytes;
    }
}

/// Appends a command as an array of strings.
pub fn encode(words: &[&str], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
}

/// Batches that are sent one after the other, again and again.
#[derive(Debug)]
pub struct Requests {
    batches: Vec<Batch>,
    /// How often the digit 1 was in the replies of each batch: how many checks were answered with yes, and a constant. Empty if
    /// replies are not compared.
    ones: Vec<Option<usize>>,
}

impl Requests {
    /// Panics without a batch.
    pub fn new(batches: Vec<Batch>) -> Self {
        assert!(!batches.is_empty(), "there is something to send");
        Self { ones: vec![None; batches.len()], batches }
    }

    /// Batches whose replies say what they have changed. Panics without one.
    pub fn of_writes(batches: Vec<Batch>) -> Self {
        Self { ones: Vec::new(), ..Self::new(batches) }
    }

    /// Servers with the same edges reply the same, always.
    fn compare(&mut self, batch: usize, ones: usize) -> Result<()> {
        match self.ones.get_mut(batch).map(|known| *known.get_or_insert(ones)) {
            Some(known) if known != ones => {
                bail!("the replies to batch {batch} have {ones} times 1, and had {known}")
            }
            _ => Ok(()),
        }
    }
}

/// What a load measured.
#[derive(Debug)]
pub struct Measured {
    pub batches: u64,
    /// How often the digit 1 was in the replies.
    pub ones: u64,
    pub elapsed: Duration,
    /// From sending a batch to the last of its replies.
    pub latency: Histogram,
}

/// Connections to one server.
#[derive(Debug)]
pub struct LeanClient {
    connections: Vec<Connection>,
    ready: OwnedFd,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    batch: usize,
    sent: Instant,
    missing: usize,
    ones: usize,
}

impl LeanClient {
    /// Connects, with a key if there is one.
    pub fn connect(address: SocketAddr, key: Option<&str>, count: usize) -> Result<Self> {
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let connections = (0..count).map(|number| {
            let stream = open(address, key)?;
            epoll::add(&ready, &stream, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
            Ok(Connection { stream, batch: 0, sent: Instant::now(), missing: 0, ones: 0 })
        });
        Ok(Self { connections: connections.collect::<Result<_>>()?, ready })
    }

    /// Sends batches on all connections for a time, then waits for the last replies.
    pub fn run(&mut self, requests: &mut Requests, time: Duration) -> Result<Measured> {
        let mut measured =
            Measured { batches: 0, ones: 0, elapsed: Duration::ZERO, latency: Histogram::default() };
        let mut turns = (0..requests.batches.len()).cycle();
        let mut buffer = vec![0; READ_BYTES];
        let mut events = Vec::with_capacity(self.connections.len());
        let begun = Instant::now();
        let mut waiting = 0;
        for (connection, batch) in self.connections.iter_mut().zip(turns.by_ref()) {
            connection.send(batch, &requests.batches)?;
            waiting += 1;
        }
        while waiting > 0 {
            epoll::wait(&self.ready, spare_capacity(&mut events), None)?;
            for event in events.drain(..) {
                let connection = &mut self.connections[event.data.u64() as usize];
                if !connection.receive(&mut buffer)? {
                    continue;
                }
                let now = Instant::now();
                measured.latency.record(now - connection.sent);
                measured.batches += 1;
                measured.ones += connection.ones as u64;
                requests.compare(connection.batch, connection.ones)?;
                match turns.next() {
                    Some(batch) if now - begun < time => connection.send(batch, &requests.batches)?,
                    _ => waiting -= 1,
                }
            }
        }
        measured.elapsed = begun.elapsed();
        Ok(measured)
    }
}

impl Connection {
    fn send(&mut self, batch: usize, batches: &[Batch]) -> Result<()> {
        let Batch { request, reply_bytes } = &batches[batch];
        self.sent = Instant::now();
        (self.batch, self.missing, self.ones) = (batch, *reply_bytes, 0);
        self.stream.write_all(request).context("the server does not take commands")
    }

    /// Reads what is there; returns whether all replies are.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<bool> {
        let read = self.stream.read(buffer)?;
        let received = &buffer[..read];
        let is_error = received.contains(&b'-');
        if read == 0 || read > self.missing || is_error {
            bail!("the server replied {:?}", String::from_utf8_lossy(&received[..read.min(200)]));
        }
        self.ones += received.iter().filter(|&&byte| byte == b'1').count();
        self.missing -= read;
        Ok(self.missing == 0)
    }
}

/// A connection, with a key if there is one.
pub fn open(address: SocketAddr, key: Option<&str>) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    if let Some(key) = key {
        write!(stream, "AUTH {key}\r\n")?;
        let mut reply = [0; 5];
        stream.read_exact(&mut reply)?;
        if reply != *b"+OK\r\n" {
            bail!("the server refused the key");
        }
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Replies to every `*3` command with what `reply` makes of how many came before it, on each connection.
    fn server(reply: fn(usize) -> &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                thread::spawn(move || {
                    let (mut buffer, mut count) = ([0; 4_096], 0);
                    while let Ok(read @ 1..) = stream.read(&mut buffer) {
                        let commands = buffer[..read].iter().filter(|&&byte| byte == b'*').count();
                        for _ in 0..commands {
                            // In two pieces.
                            let (first, second) = reply(count).split_at(1);
                            stream.write_all(first.as_bytes()).unwrap();
                            stream.write_all(second.as_bytes()).unwrap();
                            count += 1;
                        }
                    }
                });
            }
        });
        address
    }

    fn requests() -> Requests {
        let batch = |followee: &str| {
            let mut batch = Batch::new();
            (0..3).for_each(|_| batch.add(&["SISMEMBER", "following:7", followee], 4));
            batch
        };
        Requests::new(vec![batch("8"), batch("9")])
    }

    fn run(reply: fn(usize) -> &'static str, time: Duration) -> Result<Measured> {
        LeanClient::connect(server(reply), None, 2)?.run(&mut requests(), time)
    }

    #[test]
    fn commands_are_arrays_of_strings() {
        let mut batch = Batch::new();
        batch.add(&["PING", "ab"], 8);
        assert_eq!(
            (batch.request.as_slice(), batch.reply_bytes),
            (&b"*2\r\n$4\r\nPING\r\n$2\r\nab\r\n"[..], 8)
        );
    }

    #[test]
    fn every_batch_has_its_replies() {
        let measured = run(|_| ":1\r\n", Duration::from_millis(20)).unwrap();
        assert!(measured.batches >= 2 && measured.latency.total() == measured.batches);
        assert!(measured.elapsed >= Duration::from_millis(20));
    }

    #[test]
    fn wrong_replies_end_a_run() {
        let errors = run(|_| "-NO\r\n", Duration::from_secs(60)).unwrap_err().to_string();
        assert!(errors.contains("replied"), "{errors}");
        let changing = |count| if count < 30 { ":1\r\n" } else { ":0\r\n" };
        let changed = run(changing, Duration::from_secs(60)).unwrap_err().to_string();
        assert!(changed.contains("and had 3"), "{changed}");
    }
}
