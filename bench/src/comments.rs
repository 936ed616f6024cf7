//! `comments`: what a comment costs in a thread of ten and in one of a million, and one thread that many write to and read,
//! in process, over REST and beside PostgreSQL with the textbook's table.

use anyhow::Result;
use clap::Args;
use kinfolk_embedded::{Embedded, Settings};

use crate::commenting::{Commenter, PAGE};
use crate::dataset::Dataset;
use crate::hot_thread::{Load, READERS, WRITERS, in_process, over_rest};
use crate::measurement::{Recorder, Row, Target, number};
use crate::options::Options;
use crate::postgres::Postgres;
use crate::postgres_comments::PostgresComments;
use crate::server::Server;
use crate::threads::{STEP, Threads};

const NAME: &str = "comments";
/// A hot thread is one that the limits of a server are there to prevent.
const LIMITS: &[&str] = &["--limit-author-comments", "--limit-parent-comments"];
const COMMENTS: u64 = 1_000_000;
const PAGES: u32 = 1_000;

const WITHIN_2: Target = Target::AtMost(2.0);

const ROWS: &[Row] = &[
    Row::new("fill", "durable comments, 1,024 outstanding, in process", "/s"),
    Row::new("disk", "disk, all of the store with its change log, a comment", "bytes"),
    Row::new("disk_rows", "of these, without the change log", "bytes"),
    Row::new("postgres_disk", "PostgreSQL, table and indexes, a comment", "bytes"),
    Row::new("append_short_p50", "durable comment in a thread of ten, one at a time, p50", "ms"),
    Row::new("append_short_p99", "the same, p99", "ms"),
    Row::new("append_long_p50", "durable comment in the long thread, one at a time, p50", "ms"),
    Row::new("append_long_p99", "the same, p99", "ms"),
    Row::new("append_times", "the same, long / ten", "×").target(WITHIN_2),
    Row::new("oldest_10_short", "all comments of a thread of ten, oldest first, p50", "µs"),
    Row::new("oldest_10_long", "the first ten of the long thread, oldest first, p50", "µs"),
    Row::new("oldest_10_times", "the same, long / ten", "×").target(WITHIN_2),
    Row::new("oldest_short_p50", "first page of 50 of a thread of fifty, oldest first, p50", "µs"),
    Row::new("oldest_short_p99", "the same, p99", "µs"),
    Row::new("oldest_long_p50", "first page of 50 of the long thread, oldest first, p50", "µs"),
    Row::new("oldest_long_p99", "the same, p99", "µs"),
    Row::new("oldest_times", "the same, long / fifty", "×").target(WITHIN_2),
    Row::new("newest_10_short", "all comments of a thread of ten, newest first, p50", "µs"),
    Row::new("newest_10_long", "the first ten of the long thread, newest first, p50", "µs"),
    Row::new("newest_10_times", "the same, long / ten", "×").target(WITHIN_2),
    Row::new("newest_short_p50", "first page of 50 of a thread of fifty, newest first, p50", "µs"),
    Row::new("newest_short_p99", "the same, p99", "µs"),
    Row::new("newest_long_p50", "first page of 50 of the long thread, newest first, p50", "µs"),
    Row::new("newest_long_p99", "the same, p99", "µs"),
    Row::new("newest_times", "the same, long / fifty", "×").target(WITHIN_2),
    Row::new("one_short_p50", "one comment by its id, of threads of ten, p50", "µs"),
    Row::new("one_short_p99", "the same, p99", "µs"),
    Row::new("one_long_p50", "one comment by its id, of the long thread, p50", "µs"),
    Row::new("one_long_p99", "the same, p99", "µs"),
    Row::new("one_times", "the same, long / ten", "×").target(WITHIN_2),
    Row::new("edit_p50", "durable edit in the long thread, one at a time, p50", "ms"),
    Row::new("edit_p99", "the same, p99", "ms"),
    Row::new("erase", "erasing ten purged comments of the long thread from all files", "s"),
    Row::new("hot", "durable comments in one hot thread, 16 outstanding, in process", "/s"),
    Row::new("hot_p50", "the same, p50", "ms"),
    Row::new("hot_p99", "the same, p99", "ms"),
    Row::new("hot_pages", "first pages of it beside them, newest 50", "/s"),
    Row::new("hot_page_p50", "the same, p50", "ms"),
    Row::new("hot_page_p99", "the same, p99", "ms"),
    Row::new("hot_cpu", "processor time a comment, with pages and the load generator", "µs"),
    Row::new("rest", "POST /v1/posts/{id}/comments of one hot post, 16 connections", "/s"),
    Row::new("rest_p50", "the same, p50", "ms"),
    Row::new("rest_p99", "the same, p99", "ms"),
    Row::new("rest_pages", "GET /v1/posts/{id}/comments?order=newest beside them, 50 comments", "/s"),
    Row::new("rest_page_p50", "the same, p50", "ms"),
    Row::new("rest_page_p99", "the same, p99", "ms"),
    Row::new("rest_cpu", "server CPU a comment, with pages", "µs"),
    Row::new("postgres", "PostgreSQL, insert into comments of one hot post, 16 connections", "/s"),
    Row::new("postgres_p50", "the same, p50", "ms"),
    Row::new("postgres_p99", "the same, p99", "ms"),
    Row::new("postgres_pages", "select of the newest 50 beside them", "/s"),
    Row::new("postgres_page_p50", "the same, p50", "ms"),
    Row::new("postgres_page_p99", "the same, p99", "ms"),
    Row::new("postgres_cpu", "server CPU a comment, with pages", "µs"),
    Row::new("counted", "PostgreSQL, insert and update of the post's count, 16 connections", "/s"),
    Row::new("counted_p50", "the same, p50", "ms"),
    Row::new("counted_p99", "the same, p99", "ms"),
    Row::new("counted_pages", "select of the newest 50 beside them", "/s"),
    Row::new("counted_page_p50", "the same, p50", "ms"),
    Row::new("counted_page_p99", "the same, p99", "ms"),
    Row::new("counted_cpu", "server CPU a comment, with pages", "µs"),
    Row::new("times_postgres", "comments/s of a hot post, REST / PostgreSQL without a count", "×"),
    Row::new("times_counted", "comments/s of a hot post, REST / PostgreSQL with a count", "×"),
];

/// Flags of this benchmark.
#[derive(Clone, Debug, Args)]
pub struct Comments {
    #[command(flatten)]
    pub options: Options,
    /// How many comments the long thread has, a multiple of 1000
    #[arg(long, default_value_t = COMMENTS, value_parser = thousands)]
    pub comments: u64,
    /// How many pages a second the readers of a hot thread ask for, all together
    #[arg(long, default_value_t = PAGES, value_parser = clap::value_parser!(u32).range(i64::from(READERS)..))]
    pub pages: u32,
}

fn thousands(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number: &u64| *number > 0 && number.is_multiple_of(STEP));
    number.ok_or_else(|| format!("expected a multiple of {STEP}"))
}

/// As part of all benchmarks.
pub fn run_default(options: &Options) -> Result<()> {
    Comments { options: options.clone(), comments: COMMENTS, pages: PAGES }.run()
}

impl Comments {
    pub fn run(&self) -> Result<()> {
        let options = &self.options;
        let data = Dataset::prepare(options)?;
        let scratch = data.scratch_store()?;
        let open = || Embedded::open(scratch.path(), Settings::default());
        let load = Load { time: options.round_time(), pages_a_reader: self.pages / READERS };
        let mut recorder = Recorder::new(ROWS);
        let mut commenter = Commenter::new(6, data.survey.users);
        let mut store = open()?;
        let mut threads =
            Threads::fill((&store, scratch.path()), self.comments, &mut commenter, &mut recorder)?;
        let mut postgres = self.start_postgres(&data)?;
        if let Some(postgres) = &postgres {
            recorder.record("postgres_disk", postgres.disk_bytes()?);
        }
        for round in 1..=options.rounds {
            eprintln!("{NAME}, round {round}");
            threads.measure(&store, &mut commenter, &mut recorder)?;
            let hot = commenter.comment_thread(&store, PAGE)?;
            in_process(&store, hot, commenter.fork(), load)?.record(&mut recorder, "hot");
            let mut served = None;
            if !options.in_process {
                let hot = commenter.comment_thread(&store, PAGE)?;
                store.close()?;
                let server = Server::start_with(data.kinfolk(), scratch.path(), LIMITS)?;
                let rest = over_rest(&server, hot, commenter.fork(), load)?;
                server.stop()?;
                rest.record(&mut recorder, "rest");
                served = Some(rest.per_second());
                store = open()?;
            }
            if let Some(postgres) = &mut postgres {
                compare(&mut recorder, postgres, load, served)?;
            }
        }
        store.close()?;
        recorder.finish(NAME, data.size, self.notes()).publish(&options.results)
    }

    fn start_postgres(&self, data: &Dataset) -> Result<Option<PostgresComments>> {
        if self.options.without_postgres {
            return Ok(None);
        }
        let postgres = Postgres::start(&data.folder().join("postgres"))?;
        PostgresComments::fill(postgres, data.survey.users, self.comments).map(Some)
    }

    fn notes(&self) -> Vec<String> {
        vec![
            format!(
                "the long thread has {} comments of 120 characters on average at first, threads of ten have a hundredth \
                 of that together and were written at the same time; all are in one store, beside the graph",
                number(self.comments as f64)
            ),
            "appends, pages and reads by id take turns between the short and the long; pages and ids are in the page \
             cache; after every ten appends there is a new thread of ten"
                .to_owned(),
            "disk is after compaction; the change log keeps every comment a second time, for a week".to_owned(),
            format!(
                "a hot thread is new, for {} s: {WRITERS} writers without a pause, and {READERS} readers that ask for {} \
                 pages a second by the clock; clients are on the same cores",
                self.options.seconds, self.pages
            ),
            "every side checks idempotency keys; Kinfolk also looks for the post, counts comments and replies, and \
             keeps a change log"
                .to_owned(),
            format!(
                "PostgreSQL starts with {} comments too; it is loaded by pgbench with prepared statements over its \
                 socket; a count is updated in one pipeline with its insert",
                number(self.comments as f64)
            ),
        ]
    }
}

fn compare(
    recorder: &mut Recorder,
    postgres: &mut PostgresComments,
    load: Load,
    served: Option<f64>,
) -> Result<()> {
    for (key, counted, times) in [("postgres", false, "times_postgres"), ("counted", true, "times_counted")] {
        let hot = postgres.hot(load, counted)?;
        hot.record(recorder, key);
        if let Some(served) = served {
            recorder.record(times, served / hot.per_second());
        }
    }
    Ok(())
}
