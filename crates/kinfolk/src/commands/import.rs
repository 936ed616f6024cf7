//! `import`: the edges of files, all of them or none.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::answer::{Answer, Outcome, grouped, write_figures};
use crate::context::Context;
use crate::failure::UsageError;
use crate::input::Source;
use crate::interrupt;
use crate::place::{ImportWish, Imported};

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
    was when it is run again with the same files and options. A server takes the files one by one, each all or\n\
    nothing, and always from the beginning.")]
pub struct Arguments {
    /// The files; '-' is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Count malformed lines and go on
    #[arg(long)]
    skip_invalid: bool,
    /// How many one user may follow; edges beyond are counted and skipped [default: the graph's following limit]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Let users follow as many as the files say
    #[arg(long, conflicts_with = "limit")]
    no_limit: bool,
    /// How much memory sorting may use, in MiB [default: 512]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    memory: Option<u32>,
}

impl Arguments {
    pub fn run(self, context: &Context) -> Result<Outcome> {
        interrupt::end_at_once()?;
        let begin = Instant::now();
        if self.files.iter().filter(|path| *path == Path::new("-")).count() > 1 {
            return Err(UsageError("standard input can be read only once".to_owned()).into());
        }
        let sources = self.files.iter().map(|path| Source::inspect(path)).collect::<Result<Vec<_>>>()?;
        let wish = ImportWish {
            skip_invalid: self.skip_invalid,
            limit: self.limit,
            no_limit: self.no_limit,
            memory: self.memory,
        };
        let target = context.place.open_to_add(&[])?;
        let imported = target.import(&sources, &wish, &context.reporter)?;
        context.print(&Figures::new(imported, begin.elapsed().as_secs_f64()))?;
        Ok(Outcome::Done)
    }
}

#[derive(Serialize)]
struct Figures {
    added: u64,
    duplicates: u64,
    self_follows: u64,
    over_limit: u64,
    invalid: u64,
    seconds: f64,
    edges_per_second: u64,
    token: String,
}

impl Figures {
    fn new(imported: Imported, seconds: f64) -> Self {
        Self {
            added: imported.added,
            duplicates: imported.duplicates,
            self_follows: imported.self_follows,
            over_limit: imported.over_limit,
            invalid: imported.invalid,
            seconds,
            edges_per_second: (imported.edges as f64 / seconds.max(1e-9)) as u64,
            token: imported.token,
        }
    }
}

impl Answer for Figures {
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
