//! What the dashboards of the documentation ask for, for tests that compare it with what servers give.

use std::collections::BTreeSet;

use serde_json::Value;

/// The metrics in the queries of a dashboard.
pub(super) fn metrics_of(dashboard: &str) -> BTreeSet<String> {
    let dashboard: Value = serde_json::from_str(dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let words = targets.flat_map(|target| {
        let query = target["expr"].as_str().unwrap();
        query.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
    });
    let is_metric = |word: &&str| word.starts_with("kinfolk_") || word.starts_with("process_");
    words.filter(is_metric).map(str::to_owned).collect()
}
