//! `import`: adds the edges of files, all of them or none. Imports of a server are in `upload`.

mod merged;
mod upload;

use std::path::{Path, PathBuf};
use std::time::Instant;

use kinfolk_api::ImportOutcome;
use kinfolk_core::{Deployment, Error};

use self::upload::UploadOptions;
use super::prelude::*;
use crate::bulk::{self, ImportChoices};
use crate::client::LocalGraph;
use crate::failure::UsageError;
use crate::free_space;
use crate::input::{Source, Stop};
use crate::progress::Reporter;

/// Add the edges of files
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk import follows.csv\n  \
    kinfolk import part-*.csv.zst --skip-invalid\n  \
    zcat follows.tsv.gz | kinfolk import -\n\n\
    A line is 'follower,followee' or 'follower,followee,since', separated by commas, tabs or spaces as in the first line.\n\
    'since' is RFC 3339 or Unix milliseconds; without it, the time of the import. Lines that start with '#' are comments.\n\
    The first line may be a header: follower and followee (or from and to), and since.\n\
    Files ending in .gz and .zst are decompressed; .parquet files have columns of those names.\n\n\
    All files together are one import: a malformed line in any of them stops it before anything is visible. An\n\
    interrupted import of a folder resumes when it is run again with the same files and options; one of a server starts\n\
    over.")]
pub(crate) struct Import {
    /// The files; '-' reads standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Count and skip malformed lines
    #[arg(long)]
    skip_invalid: bool,
    /// Maximum number of followees of a user; edges beyond it are counted and skipped [default: the graph's following
    /// limit]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Import without a following limit
    #[arg(long, conflicts_with = "limit")]
    no_limit: bool,
    /// Memory for sorting, in MiB [default: 512]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    memory: Option<u32>,
}

impl Import {
    pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let begin = Instant::now();
        if self.files.iter().filter(|path| *path == Path::new("-")).count() > 1 {
            return Err(UsageError("standard input can be read only once".to_owned()).into());
        }
        let sources = self.files.iter().map(|path| Source::inspect(path)).collect::<Result<Vec<_>>>()?;
        let imported = match context.open_or_create_for(&[])? {
            Client::Local(graph) => self.import_locally(*graph, &sources, &context.reporter)?,
            Client::Remote(server) => {
                self.require_options_of_a_server(context)?;
                let options = UploadOptions { skip_invalid: self.skip_invalid, no_limit: self.no_limit };
                upload::import(&server, &sources, options, &context.reporter)?
            }
        };
        let seconds = begin.elapsed().as_secs_f64();
        let edges_per_second = (imported.edges() as f64 / seconds.max(1e-9)) as u64;
        context.print(&ImportStats { outcome: imported, seconds, edges_per_second })
    }

    fn import_locally(
        &self,
        graph: LocalGraph,
        sources: &[Source],
        reporter: &Reporter,
    ) -> Result<ImportOutcome> {
        let (store, profile) = (&graph.store, &graph.profile);
        let ids = store.id_kind();
        let needed = sources.iter().filter_map(|source| Some(free_space::of_edges(source.expected()?, ids)));
        let needed = needed.fold(0, u64::saturating_add);
        if let Err(error) = profile.require_import_space(store, needed) {
            graph.close_and_discard_if_new()?;
            return Err(error.into());
        }
        let limit = profile.service.graph.following_limit;
        let following_limit = (!self.no_limit).then(|| self.limit.unwrap_or(limit));
        let sort_memory = self.memory.map(|mebibytes| mebibytes as usize * (1 << 20));
        let choices = ImportChoices {
            skip_invalid: self.skip_invalid,
            following_limit,
            sort_memory: sort_memory.unwrap_or(profile.settings.sort_memory),
            fingerprint: self.fingerprint(sources, following_limit),
            bytes_total: sources.iter().map(Source::length).sum(),
        };
        let report = |progress| reporter.report(progress);
        let imported = bulk::import(store, &choices, &report, |rules, bytes_read, intake| {
            sources.iter().try_for_each(|source| source.read(rules, bytes_read, intake))
        });
        reporter.finish();
        let done = match imported {
            Ok(done) => done,
            Err(stop) => return Err(abandon(graph, stop)),
        };
        let mut seen = graph.seen.clone();
        seen.join(&done.report.frontier);
        let token = graph.graph.context.token(seen);
        graph.close()?;
        Ok(ImportOutcome::new(&done.report, done.invalid, token))
    }

    /// A server has its own limit and memory. Those of the configuration file and of variables are for imports of folders.
    fn require_options_of_a_server(&self, context: &Context) -> Result<()> {
        let is_typed = |key, is_present| is_present && !context.is_configured(key);
        if is_typed("import.limit", self.limit.is_some()) || is_typed("import.memory", self.memory.is_some())
        {
            let message = "--limit and --memory need a folder; a server uses its own settings".to_owned();
            return Err(UsageError(message).into());
        }
        Ok(())
    }

    /// Identifies the input and the options that decide how it is read; none for input that cannot be read again.
    fn fingerprint(&self, sources: &[Source], following_limit: Option<u32>) -> Option<String> {
        let files: Option<Vec<String>> = sources.iter().map(Source::fingerprint).collect();
        let skip_invalid = self.skip_invalid;
        Some(format!("{}\nskip_invalid {skip_invalid}, limit {following_limit:?}", files?.join("\n")))
    }
}

/// Ends an import that could not read its input; returns the error to report.
fn abandon(graph: LocalGraph, stop: Stop) -> anyhow::Error {
    match stop {
        Stop::Malformed(mut detail) => {
            // The user must see the malformed line, even if the cleanup fails too.
            if let Err(error) = graph.close_and_discard_if_new() {
                detail.push_str(&format!("; could not remove what was read: {error:#}"));
            }
            Error::InvalidInput { detail }.into()
        }
        // What was read stays for the next attempt. Dropping closes the store too; its first error is more useful than
        // an error from closing it.
        Stop::Unreadable(error) => error,
        Stop::Refused(error) => error.into(),
    }
}

#[derive(Serialize)]
struct ImportStats {
    #[serde(flatten)]
    outcome: ImportOutcome,
    seconds: f64,
    edges_per_second: u64,
}

impl Print for ImportStats {
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let stats = [
            ("added", grouped(self.outcome.added)),
            ("duplicates", grouped(self.outcome.duplicates)),
            ("self-follows", grouped(self.outcome.self_follows)),
            ("over the limit", grouped(self.outcome.over_limit)),
            ("invalid, skipped", grouped(self.outcome.invalid)),
            ("seconds", format!("{:.2}", self.seconds)),
            ("edges/s", grouped(self.edges_per_second)),
        ];
        write_stats(out, &stats)?;
        writeln!(out, "token {}", self.outcome.token)
    }
}
