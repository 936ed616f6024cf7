//! The text is read back by a strict parser of the format, written here for that.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::*;

#[derive(Debug, Default)]
struct Family {
    kind: String,
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// Reads the whole text; panics at anything that the format does not allow.
fn parse(text: &str) -> HashMap<String, Family> {
    assert!(text.ends_with('\n'));
    let mut families: HashMap<String, Family> = HashMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, words) = help.split_once(' ').unwrap();
            assert!(!words.is_empty() && is_name(name), "{line}");
            assert!(families.insert(name.to_owned(), Family::default()).is_none(), "{name} appears twice");
            name.clone_into(&mut current);
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(matches!(kind, "gauge" | "counter" | "histogram"), "{line}");
            assert_eq!(name, current, "a type belongs to the help before it");
            let family = families.get_mut(name).unwrap();
            assert!(family.kind.is_empty(), "{line}");
            kind.clone_into(&mut family.kind);
        } else {
            let sample = parse_sample(line);
            let family = families.get_mut(&current).unwrap();
            let suffix = sample.name.strip_prefix(&current).expect("a sample belongs to its family");
            let allowed: &[&str] =
                if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(allowed.contains(&suffix), "{line}");
            assert!(family.kind != "counter" || current.ends_with("_total"), "{current} is a counter");
            family.samples.push(sample);
        }
    }
    families
}

fn is_name(name: &str) -> bool {
    let first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.bytes().next().is_some_and(first) && name.bytes().all(|byte| first(byte) || byte.is_ascii_digit())
}

fn parse_sample(line: &str) -> Sample {
    let end = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, quoted) = rest.split_once("=\"").unwrap();
            assert!(is_name(label), "{line}");
            let (value, after) = unquote(quoted);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            rest = &after[1..];
            match after.as_bytes()[0] {
                b',' => {}
                b'}' => break,
                other => panic!("{other} in {line}"),
            }
        }
    }
    let value = rest.strip_prefix(' ').unwrap();
    assert!(!value.contains(' ') && !matches!(value, "inf" | "-inf"), "{line}");
    Sample { name: name.to_owned(), labels, value: value.parse().unwrap() }
}

/// The text up to the closing quote, and what follows it.
fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => value.push(match characters.next().unwrap().1 {
                'n' => '\n',
                quoted @ ('\\' | '"') => quoted,
                other => panic!("\\{other} is no escape"),
            }),
            other => value.push(other),
        }
    }
    panic!("no closing quote in {text}");
}

fn value(families: &HashMap<String, Family>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let family = name.trim_end_matches("_count").trim_end_matches("_sum").trim_end_matches("_bucket");
    let has = |sample: &&Sample| {
        sample.name == name && labels.iter().all(|(label, text)| sample.labels[*label] == *text)
    };
    families[family].samples.iter().find(has).unwrap_or_else(|| panic!("{name} {labels:?}")).value
}

#[test]
fn histograms_are_cumulative() {
    let metrics = Metrics::default();
    metrics.observe(Protocol::Resp, Operation::Check, 64, Duration::from_micros(3));
    metrics.observe(Protocol::Resp, Operation::Check, 1, Duration::from_millis(7));
    metrics.observe(Protocol::Resp, Operation::Check, 2, Duration::from_secs(60));
    let families = parse(&metrics.render(&[], &[]));
    let durations = &families["kinfolk_request_duration_seconds"];
    assert!(
        durations.samples.iter().all(|sample| sample.labels["operation"] == "check"),
        "others were not seen"
    );

    let bucket = |le| value(&families, "kinfolk_request_duration_seconds_bucket", &[("le", le)]);
    assert_eq!([bucket("0.000002"), bucket("0.000003"), bucket("0.005")], [0.0, 64.0, 64.0]);
    assert_eq!([bucket("0.007"), bucket("10"), bucket("+Inf")], [65.0, 65.0, 67.0]);
    let mut buckets = durations.samples.iter().filter(|sample| sample.name.ends_with("_bucket"));
    let first = buckets.next().unwrap();
    let mut last = (first.labels["le"].parse::<f64>().unwrap(), first.value);
    for sample in buckets {
        let next = (sample.labels["le"].parse::<f64>().unwrap(), sample.value);
        assert!(next.0 > last.0 && next.1 >= last.1, "{sample:?}");
        last = next;
    }
    let labels = [("protocol", "resp"), ("operation", "check")];
    assert_eq!(value(&families, "kinfolk_request_duration_seconds_count", &labels), 67.0);
    let sum = value(&families, "kinfolk_request_duration_seconds_sum", &labels);
    assert!((sum - (64.0 * 3e-6 + 7e-3 + 120.0)).abs() < 1e-9, "{sum}");
}

/// Two layers, of which one was passed through three times.
fn layers() -> [LayerTimes; 2] {
    let histogram = kinfolk_core::histogram::Histogram::default();
    histogram.observe(1, Duration::from_millis(2));
    histogram.observe(2, Duration::from_micros(30));
    let mut times = HistogramSnapshot::default();
    histogram.add_to(&mut times);
    [LayerTimes { layer: "rows", times }, LayerTimes { layer: "index", times: HistogramSnapshot::default() }]
}

#[test]
fn layers_are_rendered_also_before_the_first_time() {
    let text = Metrics::default().render(&[], &layers());
    let families = parse(&text);
    let name = |suffix: &str| format!("kinfolk_layer_duration_seconds_{suffix}");
    let of = |suffix, labels: &[(&str, &str)]| value(&families, &name(suffix), labels);
    assert_eq!(families["kinfolk_layer_duration_seconds"].kind, "histogram");
    assert_eq!(of("count", &[("layer", "rows")]), 3.0);
    assert_eq!(of("bucket", &[("layer", "rows"), ("le", "0.00003")]), 2.0);
    assert_eq!(of("bucket", &[("layer", "rows"), ("le", "+Inf")]), 3.0);
    assert!((of("sum", &[("layer", "rows")]) - 0.00206).abs() < 1e-9);
    assert_eq!(of("count", &[("layer", "index")]), 0.0);
    assert!(text.contains("single checks are not measured"), "the help says what is missing: {text}");
    let without = Metrics::default().render(&[], &[]);
    assert!(!without.contains("kinfolk_layer"), "a store that measures nothing has none");
}

#[test]
fn failures_are_told_apart_and_alarms_have_their_series() {
    let metrics = Metrics::default();
    let quiet = parse(&metrics.render(&[], &[]));
    assert_eq!(value(&quiet, "kinfolk_rate_limited_total", &[("protocol", "rest")]), 0.0);
    for operation in [Operation::Follow, Operation::Check] {
        metrics.failed(Protocol::Rest, operation, ErrorCode::RateLimited);
    }
    metrics.failed(Protocol::Resp, Operation::Other, ErrorCode::Unauthenticated);
    metrics.failed(Protocol::Resp, Operation::Other, ErrorCode::NotAvailable);
    let families = parse(&metrics.render(&[], &[]));
    let failures = |labels: &[_]| value(&families, "kinfolk_request_failures_total", labels);
    assert_eq!(failures(&[("operation", "follow"), ("code", "rate_limited")]), 1.0);
    assert_eq!(failures(&[("protocol", "resp"), ("code", "not_available")]), 1.0);
    assert_eq!(value(&families, "kinfolk_rate_limited_total", &[("protocol", "rest")]), 2.0);
    assert_eq!(value(&families, "kinfolk_unauthenticated_total", &[("protocol", "resp")]), 1.0);
    assert_eq!(families["kinfolk_request_failures_total"].samples.len(), 4);
}

#[test]
fn connections_are_counted() {
    let metrics = Metrics::default();
    for _ in 0..3 {
        metrics.connected(Protocol::Resp);
    }
    metrics.disconnected(Protocol::Resp);
    let families = parse(&metrics.render(&[], &[]));
    assert_eq!(value(&families, "kinfolk_connections", &[("protocol", "resp")]), 2.0);
    assert_eq!(value(&families, "kinfolk_connections", &[("protocol", "rest")]), 0.0);
    assert_eq!(value(&families, "kinfolk_connections_opened_total", &[("protocol", "resp")]), 3.0);
}

#[test]
fn figures_are_shown_once_whatever_they_are() {
    let stat = |name, value| Stat { name, help: "a \\ and\na break", kind: StatKind::Gauge, of: None, value };
    let stats = [
        stat("kinfolk_index_bytes", 1.5e12),
        stat("kinfolk_index_bytes", 2.0),
        stat("process_open_fds", -1.0),
        stat("kinfolk_infinite", f64::INFINITY),
        stat("kinfolk_undefined", f64::NAN),
        Stat { of: Some(("shard", "0".to_owned())), ..stat("kinfolk_marks", 3.0) },
        Stat { of: Some(("shard", "1".to_owned())), ..stat("kinfolk_marks", 4.0) },
    ];
    let families = parse(&Metrics::default().render(&stats, &[]));
    assert_eq!(value(&families, "kinfolk_index_bytes", &[]), 1.5e12);
    assert_eq!(value(&families, "process_open_fds", &[]), -1.0);
    assert_eq!(value(&families, "kinfolk_infinite", &[]), f64::INFINITY);
    assert!(value(&families, "kinfolk_undefined", &[]).is_nan());
    assert_eq!(value(&families, "kinfolk_marks", &[("shard", "0")]), 3.0);
    assert_eq!(value(&families, "kinfolk_marks", &[("shard", "1")]), 4.0);
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(value(&families, "kinfolk_build_info", &[("version", version)]), 1.0);
}

#[test]
fn labels_are_escaped() {
    let mut text = Text { out: String::new(), families: Vec::new() };
    let odd = "a \"quoted\" \\ and\nbroken";
    text.sample("name", &[("label", odd), ("other", "")], 7);
    let sample = parse_sample(text.out.trim_end_matches('\n'));
    assert_eq!((sample.labels["label"].as_str(), sample.labels["other"].as_str()), (odd, ""));
}
