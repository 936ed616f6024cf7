//! `export`: writes all edges or all comments to a file. Exports of a server are in `download`.

mod download;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use kinfolk_server::{ExportContent, ExportRequest};

use super::prelude::*;
use crate::bulk;
use crate::client::LocalGraph;
use crate::input::format_of;
use crate::output::{OutputFile, could_not_write};
use crate::progress::Reporter;

/// Write all edges or all comments to a file
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk export follows.csv.zst\n  \
    kinfolk export follows.parquet\n  \
    kinfolk export - | head\n  \
    kinfolk export --comments comments.parquet\n\n\
    The extension selects the format: .parquet, .gz or .zst for compressed CSV, anything else for CSV.\n\
    Edges are sorted by follower, then followee; comments by parent, then by age. Comments that are not active are\n\
    included, with their bodies unless they were purged. The file appears when it is complete.")]
pub(crate) struct Export {
    /// The file to write; '-' is standard output, with --json an object per line
    file: PathBuf,
    /// Write all comments instead of all edges
    #[arg(long)]
    comments: bool,
}

impl Export {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let begin = Instant::now();
        let (file, reporter) = (ExportFile { path: &self.file, json: context.json }, &context.reporter);
        let content = if self.comments { ExportContent::Comments } else { ExportContent::Edges };
        let count = context.call(|client| match client {
            Client::Local(graph) => write(graph, content, file, reporter).map(Some),
            Client::Remote(server) => download::write(server, content, file, reporter),
        })?;
        context.reporter.finish();
        if self.file != Path::new("-") {
            let (edges, comments) = if self.comments { (None, count) } else { (count, None) };
            context.print(&Exported { edges, comments, seconds: begin.elapsed().as_secs_f64() })?;
        }
        Ok(Outcome::Done)
    }
}

/// The file to write.
#[derive(Clone, Copy)]
struct ExportFile<'a> {
    path: &'a Path,
    /// Whether standard output gets lines of JSON instead of CSV.
    json: bool,
}

fn write(
    graph: &LocalGraph,
    content: ExportContent,
    file: ExportFile<'_>,
    reporter: &Reporter,
) -> Result<u64> {
    let could_not = || could_not_write(file.path);
    let out = OutputFile::create_rows(file.path, file.json).with_context(could_not)?;
    let request = ExportRequest { content, format: format_of(file.path) };
    let exported = bulk::export(&graph.store, request, out, &|progress| reporter.report(progress));
    let exported = exported.with_context(could_not)?;
    exported.out.commit().with_context(could_not)?;
    Ok(exported.rows)
}

#[derive(Serialize)]
struct Exported {
    #[serde(skip_serializing_if = "Option::is_none")]
    edges: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comments: Option<u64>,
    seconds: f64,
}

impl Print for Exported {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let count = |name, count: Option<u64>| count.map(|count| (name, grouped(count)));
        let seconds = Some(("seconds", format!("{:.2}", self.seconds)));
        let stats = [count("edges", self.edges), count("comments", self.comments), seconds];
        write_stats(out, &stats.into_iter().flatten().collect::<Vec<_>>())
    }
}
