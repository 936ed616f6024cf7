//! `import`: the edges of files, all of them or none.

use std::cell::Cell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::Args;
use kinfolk_core::graph::{Edge, EdgeStore, GraphSettings};
use kinfolk_core::{Clock, Error, SystemClock, Timestamp};
use kinfolk_embedded::{Import, ImportOptions, ImportReport, Progress};
use serde::Serialize;

use super::KIND;
use crate::answer::{Answer, Outcome, grouped, write_figures};
use crate::context::Context;
use crate::failure::UsageError;
use crate::input::{Place, Rules, Sink, Source, Stop};
use crate::progress::{READING, Reporter};
use crate::target::OpenGraph;

/// How many edges pass between two reports of progress.
const REPORT_EDGES: u64 = 16_384;

/// What `import` is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kinfolk import follows.csv\n  \
    kinfolk import part-*.csv.zst --skip-invalid\n  \
    zcat follows.tsv.gz | kinfolk import -\n\n\
    A line is 'follower,followee' or 'follower,followee,since'; commas, tabs or spaces, as in the first line.\n\
    'since' is RFC 3339 or Unix milliseconds; without it, the time of the import. '#' begins a comment line.\n\
    The first line may be a header: follower and followee (or from and to), and since.\n\
    Files ending in .gz and .zst are decompressed; .parquet files have columns of those names.\n\n\
    A malformed line stops the import before anything is visible. An import that was interrupted goes on where it\n\
    was when it is run again with the same files and options.")]
pub struct Arguments {
    /// The files; '-' is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Count malformed lines and go on
    #[arg(long)]
    skip_invalid: bool,
    /// How many one user may follow; edges beyond are counted and skipped
    #[arg(long, value_name = "N", default_value_t = GraphSettings::default().following_limit)]
    limit: u32,
    /// Let users follow as many as the files say
    #[arg(long, conflicts_with = "limit")]
    no_limit: bool,
    /// How much memory sorting may use, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    memory: u32,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        let begin = Instant::now();
        if self.files.iter().filter(|path| *path == Path::new("-")).count() > 1 {
            return Err(UsageError("standard input can be read only once".to_owned()).into());
        }
        let sources = self.files.iter().map(|path| Source::inspect(path)).collect::<Result<Vec<_>>>()?;
        let sort_memory = self.memory as usize * (1 << 20);
        let mut folder = context.target.folder().clone();
        folder.settings.sort_memory = sort_memory;
        let open = folder.open_or_create()?;
        let import = open.store().import(&ImportOptions {
            kind: KIND,
            following_limit: (!self.no_limit).then_some(self.limit),
            fingerprint: self.fingerprint(&sources),
            sort_memory,
        })?;
        let rules = Rules::new(open.store().id_kind(), SystemClock.now());
        let bytes_read = Cell::new(0);
        let mut intake = Intake {
            still_taken: import.taken(),
            import,
            skip_invalid: self.skip_invalid,
            invalid: 0,
            edges: 0,
            bytes_read: &bytes_read,
            bytes_total: sources.iter().map(Source::length).sum(),
            reporter: &context.reporter,
        };
        let read = sources.iter().try_for_each(|source| source.read(rules, &bytes_read, &mut intake));
        let Intake { import, invalid, edges, .. } = intake;
        if let Err(stop) = read {
            context.reporter.finish();
            return Err(give_up(stop, import, open));
        }
        let report = import.finish(&|progress| context.reporter.report(progress))?;
        context.reporter.finish();
        let token = open.graph().token(report.position);
        open.close()?;
        let seconds = begin.elapsed().as_secs_f64();
        context.print(&Imported::new(report, Reading { invalid, edges, seconds }, token))?;
        Ok(Outcome::Done)
    }

    /// A name for the input and all that decides how it is read; one of its own for input that can't be read again.
    fn fingerprint(&self, sources: &[Source]) -> String {
        let files: Option<Vec<String>> = sources.iter().map(Source::fingerprint).collect();
        let files = files.map(|files| files.join("\n")).unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            format!("once {} {}", std::process::id(), now.as_nanos())
        });
        let Self { skip_invalid, limit, no_limit, .. } = self;
        format!("{files}\nskip_invalid {skip_invalid}, limit {limit}, no_limit {no_limit}")
    }
}

/// Ends an import that could not read its input; gives the error to report.
fn give_up(stop: Stop, import: Import, open: OpenGraph) -> anyhow::Error {
    match stop {
        Stop::Malformed(mut detail) => {
            // The malformed line is what the user must see, whatever else goes wrong.
            let tidied = import.abandon().map_err(anyhow::Error::from);
            if let Err(error) = tidied.and_then(|()| open.close_and_discard_if_new()) {
                detail.push_str(&format!("; nor could what was read be removed: {error:#}"));
            }
            Error::InvalidInput { detail }.into()
        }
        // What was taken so far stays for the next try. Dropping closes the store too; its first error says more
        // than what closing could add to it.
        Stop::Unreadable(error) => error,
        Stop::Refused(error) => error.into(),
    }
}

/// Hands edges to the store, apart from those that an earlier run has handed over.
struct Intake<'a> {
    import: Import,
    /// How many edges of the input an earlier run has made durable, less those that have passed since.
    still_taken: u64,
    skip_invalid: bool,
    invalid: u64,
    edges: u64,
    bytes_read: &'a Cell<u64>,
    bytes_total: Option<u64>,
    reporter: &'a Reporter,
}

impl Sink for Intake<'_> {
    #[inline]
    fn edge(&mut self, edge: Edge, since: Option<Timestamp>) -> Result<(), Stop> {
        self.edges += 1;
        if self.edges.is_multiple_of(REPORT_EDGES) {
            let (done, total) = (self.bytes_read.get(), self.bytes_total);
            self.reporter.report(Progress { stage: READING, done, total });
        }
        if self.still_taken > 0 {
            self.still_taken -= 1;
            return Ok(());
        }
        self.import.push(edge, since).map_err(Stop::Refused)
    }

    fn malformed(&mut self, place: Place<'_>, reason: &str) -> Result<(), Stop> {
        if !self.skip_invalid {
            return Err(Stop::malformed(place, reason));
        }
        self.invalid += 1;
        Ok(())
    }
}

/// What reading the files amounted to.
#[derive(Clone, Copy)]
struct Reading {
    invalid: u64,
    edges: u64,
    seconds: f64,
}

#[derive(Serialize)]
struct Imported {
    added: u64,
    duplicates: u64,
    self_follows: u64,
    over_limit: u64,
    invalid: u64,
    seconds: f64,
    edges_per_second: u64,
    token: String,
}

impl Imported {
    fn new(report: ImportReport, reading: Reading, token: String) -> Self {
        Self {
            added: report.added,
            duplicates: report.duplicates,
            self_follows: report.self_follows,
            over_limit: report.over_limit,
            invalid: reading.invalid,
            seconds: reading.seconds,
            edges_per_second: (reading.edges as f64 / reading.seconds.max(1e-9)) as u64,
            token,
        }
    }
}

impl Answer for Imported {
    fn write_plain(&self, out: &mut dyn Write) -> io::Result<()> {
        let figures = [
            ("added", grouped(self.added)),
            ("duplicates", grouped(self.duplicates)),
            ("self-follows", grouped(self.self_follows)),
            ("over the limit", grouped(self.over_limit)),
            ("invalid, skipped", grouped(self.invalid)),
            ("seconds", format!("{:.2}", self.seconds)),
            ("edges/s", grouped(self.edges_per_second)),
        ];
        write_figures(out, &figures)?;
        writeln!(out, "token {}", self.token)
    }
}
