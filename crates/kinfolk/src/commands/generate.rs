//! `generate`: a file of made-up edges. The graph itself: see the library's `generate`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use kinfolk::generate::{LARGE_MAX, PowerLaw};
use kinfolk_core::bulk::Progress;
use kinfolk_core::{IdKind, Timestamp};
use serde::Serialize;

use crate::answer::{Answer, Outcome, grouped, write_figures};
use crate::context::Context;
use crate::failure::UsageError;
use crate::interrupt;
use crate::output::{Edges, FileWriter};

/// How many edges pass between two reports of progress.
const REPORT_EDGES: u64 = 65_536;

/// What `generate` is given.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: kinfolk generate follows.csv.zst --edges 1000000 --users 50000 --seed 7\n\n\
    The same arguments give the same file. No edge comes twice, nobody follows itself or more than 10,000.\n\
    With ids from 1 on, the large accounts are 1, 2, …: the first has a tenth of all edges as followers, the\n\
    second a twentieth, the third a thirtieth. At most half of the users follow a large account; if that is not\n\
    enough, there are extra users beyond --users who follow nobody else."
)]
pub struct Arguments {
    /// The file to write, as in export; '-' is standard output
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How many edges, exactly
    #[arg(long, value_name = "N")]
    edges: u64,
    /// How many users
    #[arg(long, value_name = "M")]
    users: u64,
    /// What makes one graph differ from another of the same size
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// How many very large accounts
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=LARGE_MAX))]
    large: u64,
    /// Spread the ids over 63 bits instead of counting from 1
    #[arg(long)]
    sparse: bool,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let begin = Instant::now();
        let Self { edges, users, seed, large, sparse, .. } = self;
        let graph = PowerLaw { edges, users, seed, large, sparse };
        let generated = graph.edges().map_err(|impossible| UsageError(impossible.to_string()))?;
        let mut writer = FileWriter::create(&self.file, Edges { ids: IdKind::Integer, since: false })?;
        for (edge, count) in generated.zip(0_u64..) {
            writer.write(&(edge, Timestamp::MIN))?;
            if count % REPORT_EDGES == 0 {
                let progress = Progress { stage: "generating", done: count, total: Some(edges) };
                context.reporter.report(progress);
            }
        }
        writer.finish()?;
        context.reporter.finish();
        if self.file != Path::new("-") {
            let users = users + graph.audience();
            context.print(&Generated { edges, users, seconds: begin.elapsed().as_secs_f64() })?;
        }
        Ok(Outcome::Done)
    }
}

#[derive(Serialize)]
struct Generated {
    edges: u64,
    /// With the extra ones.
    users: u64,
    seconds: f64,
}

impl Answer for Generated {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        let seconds = format!("{:.2}", self.seconds);
        let figures = [("edges", grouped(self.edges)), ("users", grouped(self.users)), ("seconds", seconds)];
        write_figures(out, &figures)
    }
}
