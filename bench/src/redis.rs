//! A Redis of its own for a comparison, and `redis-benchmark`, the client that loads both Redis and Kinfolk.

use std::io::{BufWriter, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};

use crate::process::run;
use crate::stack::Stack;
use crate::survey::for_each_edge;

/// A running Redis without persistence.
#[derive(Debug)]
pub struct Redis {
    _stack: Stack,
    pub address: SocketAddr,
    pub process: u32,
}

impl Redis {
    /// Starts an empty one in a folder.
    pub fn start(folder: &Path) -> Result<Self> {
        Self::start_with(folder, &[])
    }

    /// The same, with settings such as `io-threads=2`.
    pub fn start_with(folder: &Path, settings: &[&str]) -> Result<Self> {
        eprintln!("starting Redis");
        let stack = Stack::start("redis", folder, settings)?;
        let address = format!("127.0.0.1:{}", stack.fact("REDIS_PORT")?).parse()?;
        let process = stack.fact("REDIS_PID")?.parse()?;
        Ok(Self { _stack: stack, address, process })
    }

    /// Adds every edge to the set of its follower, as plain integers: Redis keeps these sets in its most compact encoding.
    pub fn load(&self, csv: &Path) -> Result<()> {
        eprintln!("loading Redis");
        self.fill(|commands| {
            for_each_edge(csv, |pair| {
                let (follower, followee) = (pair.follower, pair.followee);
                Ok(write!(commands, "SADD following:{follower} {followee}\r\n")?)
            })
        })
    }

    /// Sends commands that are answered with a number each, and waits for all answers.
    pub fn fill(&self, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        let mut replies = TcpStream::connect(self.address)?;
        let mut commands = BufWriter::with_capacity(1 << 20, replies.try_clone()?);
        let reader = thread::spawn(move || -> Result<()> {
            // Every reply is a line such as `:1\r\n`; the last command's is `+OK\r\n`.
            let mut buffer = vec![0; 1 << 16];
            loop {
                let read = replies.read(&mut buffer)?;
                if read == 0 || buffer[..read].contains(&b'-') {
                    bail!("Redis refused a command");
                }
                if buffer[..read].contains(&b'+') {
                    return Ok(());
                }
            }
        });
        write(&mut commands)?;
        write!(commands, "SELECT 0\r\n")?;
        commands.flush()?;
        reader.join().map_err(|_| anyhow!("the reader panicked"))??;
        Ok(())
    }
}

/// What `redis-benchmark` is to do.
#[derive(Clone, Copy, Debug)]
pub struct Benchmark<'a> {
    pub address: SocketAddr,
    pub password: Option<&'a str>,
    pub connections: u32,
    pub pipeline: u32,
    /// How many commands.
    pub count: u64,
    /// Each `__rand_int__` in the command becomes a number below this.
    pub ids: u64,
    pub command: &'a [&'a str],
}

/// What it measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

impl Benchmark<'_> {
    pub fn run(&self) -> Result<Measured> {
        let mut command = Command::new("redis-benchmark");
        command.args(["-h", "127.0.0.1", "--csv"]);
        let numbers = [
            ("-p", u64::from(self.address.port())),
            ("-c", u64::from(self.connections)),
            ("-P", u64::from(self.pipeline)),
            ("-n", self.count),
            ("-r", self.ids),
        ];
        for (flag, number) in numbers {
            command.arg(flag).arg(number.to_string());
        }
        if let Some(password) = self.password {
            command.args(["-a", password]);
        }
        let printed = run(command.args(self.command))?;
        parse(&printed).with_context(|| format!("redis-benchmark printed no rate: {printed}"))
    }
}

/// The last line has the figures, each in quotation marks: name, rate, then latencies.
fn parse(printed: &str) -> Option<Measured> {
    let line = printed.lines().rev().find(|line| line.starts_with('"'))?;
    let fields: Vec<&str> = line.trim().trim_matches('"').split("\",\"").collect();
    let from_end = |number: usize| fields.get(fields.len().checked_sub(number)?)?.parse().ok();
    Some(Measured { per_second: from_end(7)?, p50_ms: from_end(4)?, p99_ms: from_end(2)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_redis_benchmark_prints_is_read() {
        let printed = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
                       \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                       \"SISMEMBER a b\",\"86430.43\",\"0.297\",\"0.080\",\"0.287\",\"0.407\",\"0.607\",\"2.311\"\n";
        assert_eq!(parse(printed), Some(Measured { per_second: 86_430.43, p50_ms: 0.287, p99_ms: 0.607 }));
        assert_eq!(parse("Could not connect"), None);
    }
}
