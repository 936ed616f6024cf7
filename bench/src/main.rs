//! Measures Kinfolk beside its peers, one subcommand a benchmark. The README of this folder says what and how.

mod cast;
mod check;
mod client;
mod commenting;
mod comments;
mod crowd;
mod dataset;
mod design;
mod everyone;
mod everyone_graph;
mod fan_out;
mod feed;
mod feed_graph;
mod feed_redis;
mod feed_run;
#[cfg(feature = "fleet")]
mod fleet_checks;
mod follow;
mod friends;
mod growth;
mod histogram;
mod hot_thread;
mod import;
mod lean_client;
mod load;
mod machine;
mod measurement;
mod mixed;
mod open_loop;
mod options;
mod overlap;
mod pace;
mod pages;
mod plain;
mod plot;
mod postgres;
mod postgres_comments;
mod posting;
mod probe_check;
mod process;
mod random;
mod redis;
mod report;
mod resp;
mod rest;
mod scale;
mod server;
mod size;
#[cfg(test)]
mod smoke;
mod spark;
mod stack;
mod start;
mod suggest;
mod survey;
mod threads;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::comments::Comments;
use crate::design::Design;
use crate::everyone::{Everyone, EveryoneChild};
use crate::fan_out::FeedChild;
use crate::feed_run::FeedRun;
#[cfg(feature = "fleet")]
use crate::fleet_checks::FleetChecks;
use crate::options::Options;
use crate::probe_check::ProbeCheck;
use crate::scale::ScalePlot;
use crate::start::StartChild;

/// The allocator of the kinfolk program, so that memory figures are the same.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Kinfolk beside its peers
#[derive(Debug, Parser)]
#[command(name = "kinfolk-bench")]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// Checks in process, beside a dictionary and binary search
    Check(Options),
    /// Durable follows in process, beside PostgreSQL upserts
    Follow(Options),
    /// Checks while follows arrive, against checks alone
    Mixed(Options),
    /// CSV to serving, beside COPY and index builds in PostgreSQL
    Import(Options),
    /// Time to the first right answer, memory and disk for each edge
    Start(Options),
    /// List pages of the largest account and of small ones
    Pages(Options),
    /// Pages of friends of small and large accounts
    Friends(Options),
    /// Whom users follow in common, and known followers, beside SINTER in Redis
    Overlap(Options),
    /// Suggestions in a request, and what others notice of them
    Suggest(Options),
    /// Suggestions for everyone, beside PySpark
    Everyone(Everyone),
    /// Pages of home feeds, deliveries to inboxes and their memory, beside Redis
    Feed(Options),
    /// 1,000 posts a second for minutes: how far deliveries lag and how long pages take, with a plot
    FeedRun(FeedRun),
    /// Comments in a short and a long thread, and a hot one beside PostgreSQL
    Comments(Comments),
    /// Checks and durable follows over the Redis protocol, beside Redis and PostgreSQL
    Resp(Options),
    /// Checks over REST
    Rest(Options),
    /// The whole design load at once: 580,000 checks/s and 60,000 durable follows/s
    Design(Design),
    /// Checks of a fleet by layer and by number of processes, beside a cache-aside on Redis and PostgreSQL
    #[cfg(feature = "fleet")]
    FleetChecks(FleetChecks),
    /// Costs at 100m edges against 1m, from the results of both
    Growth(Options),
    /// The life of a graph of any size up to 1000m edges: import, start, load, kill, verify and backup
    Scale(Options),
    /// A plot of what operations cost at each size, from the results of `scale`
    ScalePlot(ScalePlot),
    /// Every benchmark but growth, scale and fleet-checks, one after the other
    All(Options),
    /// One page of all results
    Report(Options),
    /// A fixed load for counting instructions
    ProbeCheck(ProbeCheck),
    /// The process that `start` starts
    #[command(hide = true)]
    StartChild(StartChild),
    /// The process that `everyone` starts
    #[command(hide = true)]
    EveryoneChild(EveryoneChild),
    /// The process that `feed` starts
    #[command(hide = true)]
    FeedChild(FeedChild),
}

fn main() -> Result<()> {
    match Arguments::parse().benchmark {
        Benchmark::Check(options) => check::run(&options),
        Benchmark::Follow(options) => follow::run(&options),
        Benchmark::Mixed(options) => mixed::run(&options),
        Benchmark::Import(options) => import::run(&options),
        Benchmark::Start(options) => start::run(&options),
        Benchmark::Pages(options) => pages::run(&options),
        Benchmark::Friends(options) => friends::run(&options),
        Benchmark::Overlap(options) => overlap::run(&options),
        Benchmark::Suggest(options) => suggest::run(&options),
        Benchmark::Everyone(everyone) => everyone.run(),
        Benchmark::Feed(options) => feed::run(&options),
        Benchmark::FeedRun(run) => run.run(),
        Benchmark::Comments(comments) => comments.run(),
        Benchmark::Resp(options) => resp::run(&options),
        Benchmark::Rest(options) => rest::run(&options),
        Benchmark::Design(design) => design.run(),
        #[cfg(feature = "fleet")]
        Benchmark::FleetChecks(checks) => checks.run(),
        Benchmark::Growth(options) => growth::run(&options),
        Benchmark::Scale(options) => scale::run(&options),
        Benchmark::ScalePlot(plot) => plot.run(),
        Benchmark::All(options) => all(&options),
        Benchmark::Report(options) => report::run(&options.results),
        Benchmark::ProbeCheck(probe) => probe.run(),
        Benchmark::StartChild(child) => child.run(),
        Benchmark::EveryoneChild(child) => child.run(),
        Benchmark::FeedChild(child) => child.run(),
    }
}

fn all(options: &Options) -> Result<()> {
    let graph = [import::run, check::run, pages::run, follow::run, mixed::run, start::run];
    let walks = [friends::run, overlap::run, suggest::run, everyone::run_both];
    let served = [resp::run, rest::run, design::run_default];
    let served = served.into_iter().filter(|_| !options.in_process);
    let feeds = [feed::run, feed_run::run_default, comments::run_default];
    for run in graph.into_iter().chain(walks).chain(feeds).chain(served) {
        run(options)?;
    }
    Ok(())
}
