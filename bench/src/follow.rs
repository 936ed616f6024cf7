//! `follow`: durable follows a second in process, beside PostgreSQL upserts on the same disk.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use kinfolk_embedded::{Embedded, Settings};

use crate::dataset::Dataset;
use crate::histogram::Histogram;
use crate::load::closed_loop;
use crate::measurement::{Recorder, Row, Target};
use crate::options::Options;
use crate::postgres::Postgres;

const NAME: &str = "follow";
const CLIENTS: u64 = 64;

const ROWS: &[Row] = &[
    Row::new("follow_1", "durable follows, 1 outstanding", "/s"),
    Row::new("follow_1_p50", "durable follow, 1 outstanding, p50", "ms"),
    Row::new("follow_1_p99", "durable follow, 1 outstanding, p99", "ms"),
    Row::new("follow_64", "durable follows, 64 outstanding", "/s").target(Target::AtLeast(100_000.0)),
    Row::new("follow_64_p50", "durable follow, 64 outstanding, p50", "ms"),
    Row::new("follow_64_p99", "durable follow, 64 outstanding, p99", "ms"),
    Row::new("follow_1024", "durable follows, 1,024 outstanding", "/s").target(Target::AtLeast(200_000.0)),
    Row::new("follow_1024_p50", "durable follow, 1,024 outstanding, p50", "ms"),
    Row::new("follow_1024_p99", "durable follow, 1,024 outstanding, p99", "ms"),
    Row::new("postgres_64", "PostgreSQL upserts, 64 clients of pgbench", "/s"),
    Row::new("postgres_64_mean", "PostgreSQL upsert, 64 clients of pgbench, mean", "ms"),
    Row::new("times_postgres", "64 outstanding in process / 64 clients of PostgreSQL", "×"),
    Row::new("disk_sync", "write of 4 KiB and fdatasync on the same disk, p50", "ms"),
];

pub fn run(options: &Options) -> Result<()> {
    let data = Dataset::prepare(options)?;
    let scratch = data.scratch_store()?;
    let store = Embedded::open(scratch.path(), Settings::default())?;
    let postgres = start_postgres(options, &data)?;
    let mut recorder = Recorder::new(ROWS);
    for round in 1..=options.rounds {
        eprintln!("{NAME}, round {round}");
        recorder.record("disk_sync", disk_sync_ms(data.folder())?);
        let mut with_clients = 0.0;
        for outstanding in [1, CLIENTS, 1_024] {
            let seed = u64::from(round) << 32 | outstanding;
            let follows = closed_loop(&store, data.survey.users, outstanding, options.round_time(), seed)?;
            let key = format!("follow_{outstanding}");
            recorder.record(&key, follows.per_second());
            recorder.record(&format!("{key}_p50"), follows.latency.percentile_ms(0.5));
            recorder.record(&format!("{key}_p99"), follows.latency.percentile_ms(0.99));
            if outstanding == CLIENTS {
                with_clients = follows.per_second();
            }
        }
        if let Some(postgres) = &postgres {
            let upserts = postgres.upserts(CLIENTS, options.seconds, data.survey.users)?;
            recorder.record("postgres_64", upserts.per_second);
            recorder.record("postgres_64_mean", upserts.mean_ms);
            recorder.record("times_postgres", with_clients / upserts.per_second);
        }
    }
    store.close()?;
    let notes = vec![
        format!("rounds of {} s; every follow is a new edge between two users at random", options.seconds),
        "the store starts with the whole graph, PostgreSQL's table starts empty, which favours PostgreSQL"
            .to_owned(),
        "Kinfolk is called in process, PostgreSQL through its socket by pgbench with prepared statements"
            .to_owned(),
    ];
    recorder.finish(NAME, data.size, notes).publish(&options.results)
}

fn start_postgres(options: &Options, data: &Dataset) -> Result<Option<Postgres>> {
    if options.without_postgres {
        return Ok(None);
    }
    let postgres = Postgres::start(&data.folder().join("postgres"))?;
    postgres.create_table()?;
    postgres.create_indexes()?;
    Ok(Some(postgres))
}

/// What the disk itself takes for the smallest durable write.
fn disk_sync_ms(folder: &Path) -> Result<f64> {
    let path = folder.join("sync-probe");
    let mut file = File::create(&path)?;
    let mut latency = Histogram::default();
    for _ in 0..200 {
        let started = Instant::now();
        file.write_all(&[7; 4_096])?;
        file.sync_data()?;
        latency.record(started.elapsed());
    }
    std::fs::remove_file(&path)?;
    Ok(latency.percentile_ms(0.5))
}
