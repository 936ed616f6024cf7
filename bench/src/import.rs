//! `import`: from a CSV file to the first right answer, beside `COPY` and index builds in PostgreSQL.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use kinfolk_embedded::{Embedded, Settings};

use crate::dataset::{Dataset, KIND, Scratch, edge};
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::postgres::Postgres;
use crate::process::Usage;
use crate::size::Size;

const NAME: &str = "import";
const GIB: f64 = (1_u64 << 30) as f64;

const ROWS: &[Row] = &[
    Row::new("import", "import, CSV to serving", "edges/s")
        .target(Target::AtLeast(1_500_000.0))
        .target_from(Size::HUNDRED_MILLION),
    Row::new("import_seconds", "import, CSV to serving, whole time", "s"),
    Row::new("import_without_times", "import, CSV without times to serving", "edges/s"),
    Row::new("import_memory", "import, memory of the process at most", "GiB").target(Target::AtMost(2.0)),
    Row::new("postgres", "PostgreSQL, COPY, primary key and index", "edges/s"),
    Row::new("postgres_copy_seconds", "PostgreSQL, COPY", "s"),
    Row::new("postgres_index_seconds", "PostgreSQL, primary key and index", "s"),
    Row::new("times_postgres", "import / PostgreSQL", "×")
        .target(Target::AtLeast(5.0))
        .target_from(Size::HUNDRED_MILLION),
];

pub fn run(options: &Options) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let edges = data.survey.edges as f64;
    let postgres = match options.without_postgres {
        true => None,
        false => Some(Postgres::start(&data.folder().join("postgres"))?),
    };
    let mut recorder = Recorder::new(ROWS);
    for round in 1..=options.rounds {
        eprintln!("{NAME}, round {round}");
        let with_times = import(&data, &data.csv()?)?;
        let without_times = import(&data, &data.csv_without_times())?;
        let memory_bytes_max = with_times.memory_bytes_max.max(without_times.memory_bytes_max);
        let seconds = with_times.elapsed.as_secs_f64();
        recorder.record("import", edges / seconds);
        recorder.record("import_seconds", seconds);
        recorder.record("import_without_times", edges / without_times.elapsed.as_secs_f64());
        recorder.record("import_memory", memory_bytes_max as f64 / GIB);
        if let Some(postgres) = &postgres {
            let started = Instant::now();
            postgres.create_table()?;
            postgres.copy(&data.csv()?)?;
            let copied = started.elapsed().as_secs_f64();
            postgres.create_indexes()?;
            let finished = started.elapsed().as_secs_f64();
            recorder.record("postgres_copy_seconds", copied);
            recorder.record("postgres_index_seconds", finished - copied);
            recorder.record("postgres", edges / finished);
            recorder.record("times_postgres", finished / seconds);
        }
    }
    let notes = vec![
        "the time is that of `kinfolk import` as a process, and of opening the store after it until the first right answer"
            .to_owned(),
        "PostgreSQL builds its indexes after COPY, with 1 GiB of maintenance_work_mem".to_owned(),
    ];
    recorder.finish(NAME, data.size, notes).publish(&options.results)
}

/// Imports a file and opens the store; the time is until the first right answer.
fn import(data: &Dataset, csv: &Path) -> Result<Usage> {
    let scratch = Scratch::new(data.folder().join("import-scratch"))?;
    let usage = data.import(csv, scratch.path())?;
    let opened = Instant::now();
    let store = Embedded::open(scratch.path(), Settings::default())?;
    if !store.follows(KIND, edge(data.survey.sample[0])) {
        bail!("an imported edge is missing");
    }
    let elapsed = usage.elapsed + opened.elapsed();
    store.close()?;
    Ok(Usage { elapsed, ..usage })
}
