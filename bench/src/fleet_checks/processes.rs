//! The binary: one, two and four processes that serve the API, and one that projects, under clients of the Redis protocol that pipeline.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::deployment::{Deployment, FILTER_BYTES, SHARDS};
use super::graph::{Expected, Graph};
use crate::client::Client;
use crate::measurement::Recorder;
use crate::random::Random;
use crate::server::{Running, Server, cpu_seconds};

/// How many processes serve the API, one measurement after another.
const COUNTS: [usize; 3] = [1, 2, 4];

/// Connections in all, spread over the processes, and commands that each sends at once.
pub const CONNECTIONS: usize = 16;
pub const PIPELINE: usize = 16;

/// Pipelines that a connection sends again and again.
const BATCHES: usize = 2_000;

/// A load before each that is measured: new processes connect to Redis.
const WARM_UP: Duration = Duration::from_secs(1);

/// A process has to have all filters within this.
const PATIENCE: Duration = Duration::from_secs(120);

/// Commands that are sent at once, and the replies that they have to have.
struct Batch {
    commands: String,
    replies: Vec<u8>,
}

impl Batch {
    fn new(checks: &[Expected]) -> Self {
        let (mut commands, mut replies) = (String::new(), String::new());
        for Expected { pair, exists } in checks {
            _ = write!(commands, "SISMEMBER following:{} {}\r\n", pair.follower, pair.followee);
            _ = write!(replies, ":{}\r\n", u8::from(*exists));
        }
        Self { commands, replies: replies.into_bytes() }
    }
}

/// The processes of a fleet.
pub struct Processes<'a> {
    pub kinfolk: &'a Path,
    pub deployment: &'a Deployment,
    pub graph: &'a Graph,
    /// How long each number of processes is measured.
    pub time: Duration,
}

impl Processes<'_> {
    /// Measures each number of processes once. The cache should be full.
    pub fn measure(&self, recorder: &mut Recorder, random: &mut Random) -> Result<()> {
        let configuration = self.deployment.configuration()?;
        let mut project = Command::new(self.kinfolk);
        project.arg("serve").arg("--config").arg(&configuration).args(["--role", "project"]);
        let mut project = Running::start(project)?;
        let mut servers = Vec::new();
        for count in COUNTS {
            while servers.len() < count {
                servers.push(self.start(&configuration, servers.len())?);
            }
            servers.iter().try_for_each(wait_for_filters)?;
            self.load(&servers, WARM_UP, random)?;
            let cpu = || servers.iter().map(|server| cpu_seconds(server.process())).sum::<f64>();
            let (before, cpu_before) = (Answered::of_all(&servers)?, cpu());
            let rate = self.load(&servers, self.time, random)?;
            let (answered, cpu) = (Answered::of_all(&servers)?.since(before), cpu() - cpu_before);
            recorder.record(&format!("api_{count}"), rate);
            recorder.record(&format!("api_{count}_cpu"), 1e6 * cpu / answered.all());
            answered.record(recorder, count);
        }
        servers.into_iter().try_for_each(Server::stop)?;
        project.stop()
    }

    fn start(&self, configuration: &Path, number: usize) -> Result<Server> {
        let mut command = Command::new(self.kinfolk);
        command.arg("serve").arg("--config").arg(configuration).args(["--role", "api"]);
        command.arg("--fleet-filter-memory").arg(FILTER_BYTES.to_string());
        let keys: PathBuf = configuration.with_extension(format!("{number}.keys.toml"));
        Server::launch(self.kinfolk, command, keys)
    }

    /// Checks a second of all connections.
    fn load(&self, servers: &[Server], time: Duration, random: &mut Random) -> Result<f64> {
        let mut connections = Vec::new();
        for number in 0..CONNECTIONS {
            let server = &servers[number % servers.len()];
            let checks = self.graph.mix(BATCHES * PIPELINE, random);
            let batches: Vec<Batch> = checks.chunks(PIPELINE).map(Batch::new).collect();
            connections.push((Client::resp(server.resp, Some(&server.key))?, batches));
        }
        let began = Instant::now();
        let run = |(client, batches): (Client, Vec<Batch>)| {
            thread::spawn(move || check_for(client, &batches, began + time))
        };
        let threads: Vec<_> = connections.into_iter().map(run).collect();
        let mut checks = 0;
        for thread in threads {
            checks += thread.join().map_err(|_| anyhow!("a connection panicked"))??;
        }
        Ok(checks as f64 / began.elapsed().as_secs_f64())
    }
}

/// Sends batches until a moment; returns how many checks that were.
fn check_for(mut client: Client, batches: &[Batch], end: Instant) -> Result<usize> {
    let mut checks = 0;
    for batch in batches.iter().cycle() {
        if Instant::now() >= end {
            break;
        }
        let replies = client.pipeline(&batch.commands, PIPELINE as u64)?;
        if replies != batch.replies {
            bail!("{:?} was answered with {:?}", batch.commands, String::from_utf8_lossy(replies));
        }
        checks += PIPELINE;
    }
    Ok(checks)
}

fn metrics(server: &Server) -> Result<String> {
    let mut client = Client::connect(server.http)?;
    Ok(String::from_utf8_lossy(client.get("/metrics", &server.key)?).into_owned())
}

/// The value of a metric with its labels, 0 if there is none.
fn value(metrics: &str, name: &str) -> f64 {
    let values = metrics.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    values.sum()
}

fn wait_for_filters(server: &Server) -> Result<()> {
    let began = Instant::now();
    while value(&metrics(server)?, "kinfolk_fleet_filter_shards ") < f64::from(SHARDS) {
        if began.elapsed() > PATIENCE {
            bail!("a process has no filters after {} s", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Checks that each layer has answered.
#[derive(Clone, Copy, Debug, Default)]
struct Answered {
    filter: f64,
    cache: f64,
    shard: f64,
}

impl Answered {
    fn of_all(servers: &[Server]) -> Result<Self> {
        let mut sum = Self::default();
        for server in servers {
            let one = Self::read(&metrics(server).context("a process has metrics")?);
            sum.filter += one.filter;
            sum.cache += one.cache;
            sum.shard += one.shard;
        }
        Ok(sum)
    }

    fn read(metrics: &str) -> Self {
        let verdict = |layer: &str, verdict: &str| {
            value(metrics, &format!("kinfolk_fleet_{layer}_checks_total{{verdict=\"{verdict}\"}} "))
        };
        let yes_or_no = |layer| verdict(layer, "yes") + verdict(layer, "no");
        Self { filter: verdict("filter", "no"), cache: yes_or_no("cache"), shard: yes_or_no("shard") }
    }

    fn since(self, before: Self) -> Self {
        Self {
            filter: self.filter - before.filter,
            cache: self.cache - before.cache,
            shard: self.shard - before.shard,
        }
    }

    fn all(self) -> f64 {
        (self.filter + self.cache + self.shard).max(1.0)
    }

    fn record(self, recorder: &mut Recorder, processes: usize) {
        for (layer, count) in [("filter", self.filter), ("cache", self.cache), ("shard", self.shard)] {
            recorder.record(&format!("api_{processes}_{layer}"), 100.0 * count / self.all());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::Pair;

    #[test]
    fn layers_are_read_from_metrics() {
        let metrics = "# HELP x\nkinfolk_fleet_filter_checks_total{verdict=\"no\"} 8\n\
                       kinfolk_fleet_filter_checks_total{verdict=\"perhaps\"} 90\n\
                       kinfolk_fleet_cache_checks_total{verdict=\"yes\"} 3\nkinfolk_fleet_cache_checks_total{verdict=\"no\"} 2\n\
                       kinfolk_fleet_shard_checks_total{verdict=\"failed\"} 7\nkinfolk_fleet_shard_checks_total{verdict=\"yes\"} 1\n";
        let answered = Answered::read(metrics);
        assert_eq!([answered.filter, answered.cache, answered.shard], [8.0, 5.0, 1.0]);
    }

    #[test]
    fn a_batch_knows_its_replies() {
        let check = |follower, exists| Expected { pair: Pair { follower, followee: 9 }, exists };
        let batch = Batch::new(&[check(1, true), check(2, false)]);
        assert_eq!(batch.commands, "SISMEMBER following:1 9\r\nSISMEMBER following:2 9\r\n");
        assert_eq!(batch.replies, b":1\r\n:0\r\n");
    }
}
