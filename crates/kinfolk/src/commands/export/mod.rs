//! `export`: writes all edges or all comments to a file. What a server exports is read in `edge_csv` and `comment_csv`.

mod comment_csv;
mod edge_csv;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use kinfolk_api::{ExportContent, FileFormat};
use kinfolk_core::Deployment;
use serde::Serialize;

use self::comment_csv::CommentReader;
use crate::bulk;
use crate::client::{Client, LocalGraph};
use crate::context::Context;
use crate::interrupt;
use crate::output::{Comments, EdgeRow, Edges, FileWriter};
use crate::print::{Outcome, Print, grouped, write_stats};
use crate::profile::Profile;
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
    /// The file to write; '-' is standard output
    file: PathBuf,
    /// Write all comments instead of all edges
    #[arg(long)]
    comments: bool,
}

impl Export {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let begin = Instant::now();
        let (file, reporter) = (self.file.as_path(), &context.reporter);
        let count = context.call(|client| match (client, self.comments) {
            (Client::Local(graph), false) => local_edges(graph, file, reporter),
            (Client::Local(graph), true) => local_comments(graph, file, reporter),
            // Always CSV: the rows can be counted, and a truncated export is detected.
            (Client::Remote(server), false) => {
                edge_csv::write(server.export(ExportContent::Edges, FileFormat::Csv)?, file, reporter)
            }
            (Client::Remote(server), true) => {
                remote_comments(server.export(ExportContent::Comments, FileFormat::Csv)?, file, reporter)
            }
        })?;
        context.reporter.finish();
        if self.file != Path::new("-") {
            let (edges, comments) = if self.comments { (None, Some(count)) } else { (Some(count), None) };
            context.print(&Exported { edges, comments, seconds: begin.elapsed().as_secs_f64() })?;
        }
        Ok(Outcome::Done)
    }
}

fn local_edges<P: Profile>(graph: &LocalGraph<P>, file: &Path, reporter: &Reporter) -> Result<u64> {
    let mut writer = FileWriter::create(file, Edges { ids: graph.store().id_kind(), since: true })?;
    let report = |progress| reporter.report(progress);
    let edges = bulk::export(graph.store(), &report, |edge, since| writer.write(&EdgeRow { edge, since }))?;
    writer.finish()?;
    Ok(edges)
}

fn local_comments<P: Profile>(graph: &LocalGraph<P>, file: &Path, reporter: &Reporter) -> Result<u64> {
    let mut writer = FileWriter::create(file, Comments { ids: graph.store().id_kind() })?;
    let report = |progress| reporter.report(progress);
    let comments = bulk::export_comments(graph.store(), &report, |comment| writer.write(comment))?;
    writer.finish()?;
    Ok(comments)
}

fn remote_comments(lines: impl Read, file: &Path, reporter: &Reporter) -> Result<u64> {
    let mut reader = CommentReader::new(lines)?;
    let mut writer = FileWriter::create(file, reader.table())?;
    while let Some(comment) = reader.next()? {
        writer.write(&comment)?;
        reporter.report(reader.progress());
    }
    writer.finish()?;
    Ok(reader.progress().done)
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
