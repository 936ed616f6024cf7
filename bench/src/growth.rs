//! `growth`: how much more each operation costs at 100 M edges than at 1 M, from the results of both.

use std::path::Path;

use anyhow::{Context, Result};

use crate::measurement::{Recorder, Results, Row, Target};
use crate::options::Options;
use crate::size::Size;

const NAME: &str = "growth";

const ROWS: &[Row] = &[
    Row::new("check_p50", "check in process, p50, 100m / 1m", "×"),
    Row::new("check_mean", "check in process, mean, 100m / 1m", "×"),
    Row::new("plain_p50", "dictionary and binary search, p50, 100m / 1m", "×"),
    Row::new("follow_64", "durable follow, 64 outstanding, time, 100m / 1m", "×"),
    Row::new("follow_1024", "durable follow, 1,024 outstanding, time, 100m / 1m", "×"),
    Row::new("largest_p50", "page of the longest list, p50, 100m / 1m", "×").target(Target::AtMost(2.0)),
    Row::new("small_p50", "page of a small account, p50, 100m / 1m", "×").target(Target::AtMost(2.0)),
];

/// From which benchmark a row comes, and whether its figure is a rate: then a smaller one costs more.
const SOURCES: &[(&str, &str, bool)] = &[
    ("check_p50", "check", false),
    ("check_mean", "check", false),
    ("plain_p50", "check", false),
    ("follow_64", "follow", true),
    ("follow_1024", "follow", true),
    ("largest_p50", "pages", false),
    ("small_p50", "pages", false),
];

pub fn run(options: &Options) -> Result<()> {
    ratios(&options.results)?.publish(&options.results)
}

fn ratios(folder: &Path) -> Result<Results> {
    let mut recorder = Recorder::new(ROWS);
    for &(key, benchmark, is_rate) in SOURCES {
        let median = |size: Size| -> Result<f64> {
            let results = Results::read(&folder.join(format!("{benchmark}-{size}.json")))?;
            let figure = results.figure(key).with_context(|| format!("{benchmark} has no figure {key}"))?;
            Ok(figure.median)
        };
        let (small, large) = (median(Size::MILLION)?, median(Size::HUNDRED_MILLION)?);
        recorder.record(key, if is_rate { small / large } else { large / small });
    }
    let notes = vec![
        "ratios of medians; in process a check at 1 M edges is answered from the processor's caches"
            .to_owned(),
    ];
    Ok(recorder.finish(NAME, Size::HUNDRED_MILLION, notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_source() {
        let rows: Vec<_> = ROWS.iter().map(|row| row.key).collect();
        let sources: Vec<_> = SOURCES.iter().map(|&(key, ..)| key).collect();
        assert_eq!(rows, sources);
    }

    #[test]
    fn missing_results_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = format!("{:#}", ratios(folder.path()).unwrap_err());
        assert!(error.contains("check-1m.json"), "{error}");
    }
}
