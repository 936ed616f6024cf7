//! The flags that the benchmarks share.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::size::Size;

/// Flags of every benchmark. Run from the root of the repository: the defaults are relative to it.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// How many edges the graph has, such as 1m, 10m or 100m
    #[arg(long, default_value = "1m")]
    pub edges: Size,
    /// How often everything is measured
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// How long one round of a timed load takes
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Where generated graphs and stores are kept between runs
    #[arg(long, default_value = "target/bench")]
    pub work: PathBuf,
    /// Where the JSON files go
    #[arg(long, default_value = "bench/results")]
    pub results: PathBuf,
    /// The kinfolk program to measure; without it, cargo builds one
    #[arg(long)]
    pub kinfolk: Option<PathBuf>,
    /// Leave PostgreSQL out
    #[arg(long)]
    pub without_postgres: bool,
    /// Leave Redis out
    #[arg(long)]
    pub without_redis: bool,
    /// Leave PySpark out
    #[arg(long)]
    pub without_spark: bool,
    /// Leave out what needs a server
    #[arg(long)]
    pub in_process: bool,
}

impl Options {
    pub fn round_time(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}
