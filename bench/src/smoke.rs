//! Every benchmark that needs no other program, run for a moment on a small graph. What they measure is not judged.

use std::collections::BTreeSet;
use std::fs;

use clap::Parser;
use kinfolk_core::IdKind;
use kinfolk_embedded::{Embedded, Settings};
use tempfile::TempDir;

use crate::dataset::add_edges;
use crate::everyone_graph::Graph;
use crate::measurement::Results;
use crate::options::Options;
use crate::random::Random;
use crate::survey::{Pair, Survey, Users};
use crate::{Arguments, Benchmark, check, everyone, follow, mixed, overlap, pages, suggest};

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
    Survey::of(&csv, |_| Ok(())).unwrap().write(&graph.join("survey.json")).unwrap();
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
    let results = Results::read(&options.results.join(format!("{name}-50k.json"))).unwrap();
    assert!(results.figures.iter().all(|figure| figure.rounds.len() == 1 && figure.median > 0.0));
    results.figures.into_iter().map(|figure| figure.key).collect()
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
