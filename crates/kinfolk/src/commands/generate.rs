//! `generate`: writes a file of generated edges. The generator is in the library.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use kinfolk::generate::{LARGE_MAX, PowerLaw};
use kinfolk_core::bulk::Progress;
use kinfolk_core::{IdKind, Timestamp};

use super::prelude::*;
use crate::failure::UsageError;
use crate::input::format_of;
use crate::output::{EdgeRow, Edges, Encoder, OutputFile, could_not_write};

/// How many edges pass between two reports of progress.
const REPORT_EDGES: u64 = 65_536;

/// Write a file of generated edges with power-law degrees
#[derive(Debug, Args)]
#[command(
    after_help = "Example: kinfolk generate follows.csv.zst --edges 1000000 --users 50000 --seed 7\n\n\
    The same arguments give the same file. Edges are distinct; nobody follows themselves or more than 10,000 users.\n\
    The large accounts have the ids 1, 2, …: the first has a tenth of all edges as followers, the second a\n\
    twentieth, the third a thirtieth. At most half of the users follow a large account; if that is not enough,\n\
    extra users beyond --users follow large accounts only."
)]
pub(crate) struct Generate {
    /// The file to write, as in export; '-' is standard output, with --json an object per line
    file: PathBuf,
    /// Exact number of edges
    #[arg(long, value_name = "N")]
    edges: u64,
    /// Number of users
    #[arg(long, value_name = "M")]
    users: u64,
    /// The seed: another one gives another graph of the same size
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Number of very large accounts
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=LARGE_MAX))]
    large: u64,
    /// Spread the ids over 63 bits instead of counting from 1
    #[arg(long)]
    sparse: bool,
}

impl Generate {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let begin = Instant::now();
        let Self { edges, users, seed, large, sparse, .. } = self;
        let graph = PowerLaw { edges, users, seed, large, sparse };
        let generated = graph.edges().map_err(|impossible| UsageError(impossible.to_string()))?;
        let could_not = || could_not_write(&self.file);
        let (format, table) = (format_of(&self.file), Edges { ids: IdKind::Integer, since: false });
        let out = OutputFile::create_rows(&self.file, context.json).with_context(could_not)?;
        let mut encoder = Encoder::new(out, format, table).with_context(could_not)?;
        for (edge, count) in generated.zip(0_u64..) {
            encoder.write(&EdgeRow { edge, since: Timestamp::MIN }).with_context(could_not)?;
            if count % REPORT_EDGES == 0 {
                let progress = Progress { stage: "generating", done: count, total: Some(edges) };
                context.reporter.report(progress);
            }
        }
        encoder.finish().and_then(|out| Ok(out.commit()?)).with_context(could_not)?;
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
    /// Including the extra users.
    users: u64,
    seconds: f64,
}

impl Print for Generated {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let seconds = format!("{:.2}", self.seconds);
        let stats = [("edges", grouped(self.edges)), ("users", grouped(self.users)), ("seconds", seconds)];
        write_stats(out, &stats)
    }
}
