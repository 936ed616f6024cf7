//! Every benchmark that needs no other program, run for a moment on a small graph. What they measure is not judged.

use std::collections::BTreeSet;
use std::fs;

use clap::Parser;
use kinfolk_core::IdKind;
use kinfolk_embedded::{Embedded, Settings};
use tempfile::TempDir;

use crate::comments::Comments;
use crate::dataset::add_edges;
use crate::everyone_graph::Graph;
use crate::fan_out::inbox_memory;
use crate::feed_run::FeedRun;
use crate::measurement::Results;
use crate::options::Options;
use crate::random::Random;
use crate::size::Size;
use crate::survey::{Pair, Survey, Users};
use crate::{Arguments, Benchmark, check, everyone, feed, follow, friends, mixed, overlap, pages, suggest};

/// Lays out what [`crate::dataset::Dataset::prepare`] would have generated, so that no kinfolk program is needed.
fn prepared() -> (TempDir, Options) {
    let folder = tempfile::tempdir().unwrap();
    let graph = folder.path().join("50k");
    fs::create_dir(&graph).unwrap();
    let mut random = Random::new(5);
    let users = Users { first: 1, last: 500 };
    let mut pairs: BTreeSet<Pair> = (0..50_000).map(|_| users.random_pair(&mut random)).collect();
    pairs.extend((1_001..3_501).map(|follower| Pair { follower, followee: 1 }));

    let lines: Vec<String> =
        pairs.iter().map(|pair| format!("{},{}\n", pair.follower, pair.followee)).collect();
    let csv = graph.join("edges.csv");
    fs::write(&csv, lines.concat()).unwrap();
    Survey::of(&csv).unwrap().write(&graph.join("survey.json")).unwrap();
    let store = Embedded::create(&graph.join("store"), IdKind::Integer, Settings::default()).unwrap();
    add_edges(&store, "smoke", |add| pairs.iter().try_for_each(|&pair| add(pair, None))).unwrap();
    store.close().unwrap();

    let results = folder.path().join("results");
    let arguments = Arguments::try_parse_from(
        [
            "kinfolk-bench",
            "check",
            "--edges=50k",
            "--rounds=1",
            "--seconds=1",
            "--without-postgres",
            "--without-spark",
            "--in-process",
            "--kinfolk=none",
        ]
        .map(Into::into)
        .into_iter()
        .chain(["--work".into(), folder.path().into(), "--results".into(), results.into_os_string()]),
    );
    match arguments.unwrap().benchmark {
        Benchmark::Check(options) => (folder, options),
        other => panic!("parsed as {other:?}"),
    }
}

fn figures(options: &Options, name: &str) -> Vec<String> {
    let results = results(options, name);
    assert!(results.figures.iter().all(|figure| figure.median > 0.0));
    results.figures.into_iter().map(|figure| figure.key).collect()
}

fn results(options: &Options, name: &str) -> Results {
    let results = Results::read(&options.results.join(format!("{name}-50k.json"))).unwrap();
    assert!(results.figures.iter().all(|figure| figure.rounds.len() == 1));
    results
}

#[test]
fn check_measures_and_agrees() {
    let (_folder, options) = prepared();
    check::run(&options).unwrap();
    assert!(figures(&options, "check").contains(&"plain_p99".to_owned()));
}

#[test]
fn follow_measures_without_postgres() {
    let (_folder, options) = prepared();
    follow::run(&options).unwrap();
    let figures = figures(&options, "follow");
    assert!(figures.contains(&"follow_1024_p99".to_owned()));
    assert!(!figures.contains(&"postgres_64".to_owned()));
}

#[test]
fn mixed_and_pages_measure() {
    let (_folder, options) = prepared();
    mixed::run(&options).unwrap();
    assert!(figures(&options, "mixed").contains(&"follow_p50".to_owned()));
    pages::run(&options).unwrap();
    assert!(figures(&options, "pages").contains(&"walk".to_owned()));
}

#[test]
fn friends_measure() {
    let (_folder, options) = prepared();
    friends::run(&options).unwrap();
    assert!(figures(&options, "friends").contains(&"mutual_times_small".to_owned()));
}

#[test]
fn overlap_and_suggest_measure_without_a_server() {
    let (_folder, options) = prepared();
    overlap::run(&options).unwrap();
    assert!(figures(&options, "overlap").contains(&"known_p99".to_owned()));
    suggest::run(&options).unwrap();
    assert!(figures(&options, "suggest").contains(&"many_cold_p99".to_owned()));
}

#[test]
fn everyone_is_suggested_somebody() {
    let (folder, options) = prepared();
    // The file that PySpark would read.
    let graph = folder.path().join("50k");
    fs::copy(graph.join("edges.csv"), graph.join("edges-without-times.csv")).unwrap();
    let graph = Graph::generated(&options).unwrap();
    everyone::measure(&options, &graph, everyone::compute).unwrap();
    assert!(figures(&options, "everyone").contains(&"paths".to_owned()));
    everyone::compute(&graph.store).unwrap();
    let (sums, sample) = everyone::stored(&graph.store, &graph).unwrap();
    assert!(sums.rows > 0 && sample.values().any(|told| !told.is_empty()));
}

#[test]
fn feeds_are_read_and_posts_delivered() {
    let (_folder, options) = prepared();
    feed::measure(&options, inbox_memory).unwrap();
    let results = results(&options, "feed");
    // How much the memory of this process grows depends on what else it has done.
    let is_positive = |key: &str| results.figure(key).is_some_and(|figure| figure.median > 0.0);
    for key in ["page_p99", "first_p99", "below_p99", "fan_out", "posts", "inbox_counted"] {
        assert!(is_positive(key), "{key}");
    }
    assert!(results.figure("inbox").is_some() && results.figure("redis_inbox").is_none());
}

#[test]
fn comments_are_written_and_read_in_threads_of_all_sizes() {
    let (_folder, options) = prepared();
    Comments { options: options.clone(), comments: 2_000, pages: 40 }.run().unwrap();
    let figures = figures(&options, "comments");
    for key in ["disk_rows", "append_times", "newest_long_p99", "one_times", "erase", "hot_p99", "hot_pages"]
    {
        assert!(figures.contains(&key.to_owned()), "{key}");
    }
    assert!(!figures.contains(&"rest".to_owned()) && !figures.contains(&"counted".to_owned()));
}

#[test]
fn a_run_of_posts_is_plotted() {
    let (folder, options) = prepared();
    let plot = folder.path().join("plots/run.svg");
    let run = FeedRun {
        edges: Size::of(50_000),
        seconds: 2,
        posts: 100,
        pages: 50,
        work: options.work.clone(),
        results: options.results.clone(),
        plot: plot.clone(),
    };
    run.run().unwrap();
    let results = results(&options, "feed-run");
    assert!(results.figure("posts").is_some_and(|figure| figure.median > 0.0));
    assert_eq!(results.series.iter().map(|series| series.values.len()).collect::<Vec<_>>(), [2; 5]);
    assert_eq!(fs::read_to_string(plot).unwrap().matches("<polyline").count(), 3);
}
