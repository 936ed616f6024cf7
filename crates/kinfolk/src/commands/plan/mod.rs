//! `plan`: how many machines a fleet takes for a number of users, with the formula of each figure. It connects to nothing: the
//! arithmetic is in `arithmetic`, what was measured in `measured`, the lines and notes that are printed in the other files.

mod arithmetic;
mod lines;
mod measured;
mod notes;
mod output;

use kinfolk_core::IdKind;

use self::arithmetic::{Figures, HostSize, RedisSize, SHARDS_MAX, Sizes, TooLarge, Workload};
use super::prelude::*;
use crate::failure::UsageError;
use crate::settings::{Bytes, Configuration, Fraction, Value};

/// The years that growth is shown for.
const YEARS: [i32; 3] = [0, 1, 3];

const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

/// Rates for each 100,000 users, where none are given: 580,000 checks and 60,000 writes a second for 500 million users.
const CHECKS_PER_100K_USERS: u64 = 116;
const WRITES_PER_100K_USERS: u64 = 12;

/// Compute the machines that a fleet needs, with the formula of each figure
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk plan --users 1_000_000 --following 200\n\n\
    Nothing is connected to or changed. Rates are averages; machines are planned for --peak times as much. The kind of\n\
    ids is --ids. Shares are from 0 to 1. Connections, replicas of the topic, log.keep, redis.keep and redis.fills are\n\
    those of the configuration. Measured figures are from two cores and small graphs: check them on your machines.")]
pub(crate) struct Plan {
    #[command(flatten)]
    workload: WorkloadArguments,
    #[command(flatten)]
    machines: MachineArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
struct WorkloadArguments {
    /// Number of users
    #[arg(long, value_name = "N", default_value = "500_000_000", value_parser = number::<1, 100_000_000_000>)]
    users: u64,
    /// Followees of a user, on average
    #[arg(long, value_name = "N", default_value = "400", value_parser = number::<1, 10_000>)]
    following: u64,
    /// Checks a second, on average [default: 116 for each 100,000 users]
    #[arg(long, value_name = "N", value_parser = number::<1, 1_000_000_000_000>)]
    checks_per_second: Option<u64>,
    /// Follows and unfollows a second, on average [default: 12 for each 100,000 users]
    #[arg(long, value_name = "N", value_parser = number::<1, 1_000_000_000_000>)]
    writes_per_second: Option<u64>,
    /// The highest rates as a multiple of the average ones
    #[arg(long, value_name = "FACTOR", default_value = "2", value_parser = factor)]
    peak: f64,
    /// Share of checks of edges that do not exist
    #[arg(long, value_name = "SHARE", default_value = "0.8", value_parser = Fraction::parse)]
    negative: Fraction,
    /// Share of users that are active: their sets are in Redis, their index pages in the hosts' memory
    #[arg(long, value_name = "SHARE", default_value = "0.1", value_parser = Fraction::parse)]
    active: Fraction,
    /// Share of the checks in Redis that find the follower's set
    #[arg(long, value_name = "SHARE", default_value = "0.95", value_parser = Fraction::parse)]
    cache_hits: Fraction,
    /// Percent by which users and rates grow in a year
    #[arg(long, value_name = "PERCENT", default_value = "30", value_parser = number::<0, 1_000>)]
    growth: u64,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Machines")]
struct MachineArguments {
    /// Number of logical shards, which cannot be changed later
    #[arg(long, value_name = "N", default_value = "256", value_parser = number::<1, SHARDS_MAX>)]
    shards: u64,
    /// Memory for filters in each api process; 0 for none
    #[arg(long, value_name = "SIZE", default_value = "16 GiB", value_parser = Bytes::parse)]
    filter_memory: Bytes,
    /// Days that changes stay in the log and in Kafka [default: log.keep]
    #[arg(long, value_name = "N", value_parser = number::<1, 3_650>)]
    log_days: Option<u64>,
    /// Standbys of each host
    #[arg(long, value_name = "N", default_value = "1", value_parser = number::<0, 10>)]
    standbys: u64,
    /// Disk of a host
    #[arg(long, value_name = "SIZE", default_value = "4 TiB", value_parser = size)]
    host_disk: Bytes,
    /// Share of a host's disk that stays free
    #[arg(long, value_name = "SHARE", default_value = "0.3", value_parser = free_share)]
    disk_free: Fraction,
    /// Memory of a host
    #[arg(long, value_name = "SIZE", default_value = "256 GiB", value_parser = size)]
    host_memory: Bytes,
    /// Follows and unfollows a second that a host can take
    #[arg(long, value_name = "N", default_value = "5_000", value_parser = number::<1, 1_000_000_000>)]
    host_writes: u64,
    /// Checks a second that a host can answer
    #[arg(long, value_name = "N", default_value = "20_000", value_parser = number::<1, 1_000_000_000>)]
    host_checks: u64,
    /// Memory of a Redis node, its maxmemory
    #[arg(long, value_name = "SIZE", default_value = "32 GiB", value_parser = size)]
    redis_memory: Bytes,
    /// Checks a second that a Redis node can answer
    #[arg(long, value_name = "N", default_value = "50_000", value_parser = number::<1, 1_000_000_000>)]
    redis_checks: u64,
    /// Replicas of each Redis master
    #[arg(long, value_name = "N", default_value = "1", value_parser = number::<0, 10>)]
    redis_replicas: u64,
    /// Cores of an api process
    #[arg(long, value_name = "N", default_value = "4", value_parser = number::<1, 1_024>)]
    api_cores: u64,
}

/// How busy the cores of api processes may be at the peak.
const API_BUSY: f64 = 0.6;

/// What was asked for, and all figures.
struct Planned {
    work: Workload,
    sizes: Sizes,
    /// Settings that the notes compare with what is needed.
    log_changes: u64,
    fills: u64,
    /// The figures of each of the [`YEARS`].
    figures: [Figures; YEARS.len()],
}

impl Plan {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        let configuration = &context.configuration;
        let work = self.workload.workload(configuration.data.ids.unwrap_or(IdKind::Integer));
        let sizes = self.machines.sizes(configuration)?;
        let figures = figures(&work, &sizes).map_err(|too_large| UsageError(too_large.to_string()))?;
        let log_changes = configuration.fleet.log_changes.0 as u64;
        let fills = configuration.redis.fills.0 as u64;
        context.print(&output::Report::of(&Planned { work, sizes, log_changes, fills, figures }))
    }
}

fn figures(work: &Workload, sizes: &Sizes) -> Result<[Figures; YEARS.len()], TooLarge> {
    let [now, next, later] = YEARS.map(|years| Figures::of(&work.after(years)?, sizes));
    Ok([now?, next?, later?])
}

impl WorkloadArguments {
    fn workload(&self, ids: IdKind) -> Workload {
        let rate = |per_100k: u64| (self.users * per_100k).div_ceil(100_000);
        Workload {
            ids,
            users: self.users,
            following: self.following,
            checks_per_second: self.checks_per_second.unwrap_or_else(|| rate(CHECKS_PER_100K_USERS)),
            writes_per_second: self.writes_per_second.unwrap_or_else(|| rate(WRITES_PER_100K_USERS)),
            peak: self.peak,
            negative: self.negative.0,
            active: self.active.0,
            hits: self.cache_hits.0,
            growth: self.growth as f64 / 100.0,
        }
    }
}

impl MachineArguments {
    fn sizes(&self, configuration: &Configuration) -> Result<Sizes> {
        let keep = configuration.redis.keep.0.as_secs();
        if keep == 0 {
            return Err(UsageError("redis.keep is below a second: nothing would be cached".to_owned()).into());
        }
        let fleet = &configuration.fleet;
        Ok(Sizes {
            shards: self.shards,
            host: HostSize {
                disk: self.host_disk.0,
                free: self.disk_free.0,
                memory: self.host_memory.0,
                writes_per_second: self.host_writes,
                checks_per_second: self.host_checks,
                standbys: self.standbys,
            },
            redis: RedisSize {
                memory: self.redis_memory.0,
                checks_per_second: self.redis_checks,
                replicas: self.redis_replicas,
                keep_seconds: keep,
            },
            log_seconds: self
                .log_days
                .map_or(configuration.log.keep.0.as_secs(), |days| days * SECONDS_PER_DAY),
            kafka_replication: configuration.kafka.replication.0 as u64,
            filter_memory: self.filter_memory.0,
            connections: fleet.read_connections.0.saturating_add(fleet.write_connections.0) as u64,
            api_cores: self.api_cores,
            api_busy: API_BUSY,
        })
    }
}

/// A whole number, in which underscores may separate digits.
fn number<const MIN: u64, const MAX: u64>(text: &str) -> Result<u64, String> {
    let number = text.replace('_', "").parse().ok().filter(|number| (MIN..=MAX).contains(number));
    number.ok_or_else(|| format!("expected a whole number from {MIN} to {MAX}"))
}

fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (1.0..=100.0).contains(number));
    number.ok_or_else(|| "expected a number from 1 to 100".to_owned())
}

/// A size of a machine: from a mebibyte on.
fn size(text: &str) -> Result<Bytes, String> {
    let size = Bytes::parse(text)?;
    if size.0 < 1 << 20 { Err("expected at least 1 MiB".to_owned()) } else { Ok(size) }
}

fn free_share(text: &str) -> Result<Fraction, String> {
    let share = Fraction::parse(text).ok().filter(|share| share.0 <= 0.9);
    share.ok_or_else(|| "expected a number from 0 to 0.9".to_owned())
}
