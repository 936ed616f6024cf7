//! Metrics as text in the exposition format of Prometheus, version 0.0.4.

use std::fmt::{self, Display, Write};
use std::sync::atomic::Ordering;

use kinfolk_core::ErrorCode;
use kinfolk_core::histogram::{BOUNDS_NANOS, HistogramSnapshot};

use super::{Metrics, Operation, Protocol, Source, process};
use crate::administration::{LayerTimes, Stat, StatKind};

pub(super) fn render(metrics: &Metrics, stats: &[Stat], layers: &[LayerTimes]) -> String {
    let mut text = Text { out: String::with_capacity(16 << 10), families: Vec::new() };
    text.family("kinfolk_build_info", "gauge", "The version that is running.");
    text.sample("kinfolk_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    render_durations(&mut text, metrics);
    render_failures(&mut text, metrics);
    render_connections(&mut text, metrics);
    render_suggestions(&mut text, metrics);
    for stat in stats.iter().chain(&process::stats()) {
        let kind = match stat.kind {
            StatKind::Gauge => "gauge",
            StatKind::Counter => "counter",
        };
        let label = stat.of.as_ref().map(|(name, value)| (*name, value.as_str()));
        // A family may appear once only, or nothing at all can be read.
        if text.family(stat.name, kind, stat.help) || label.is_some() {
            text.sample(stat.name, label.as_slice(), Number(stat.value));
        }
    }
    render_layers(&mut text, layers);
    text.out
}

fn render_durations(text: &mut Text, metrics: &Metrics) {
    const NAME: &str = "kinfolk_request_duration_seconds";
    text.family(NAME, "histogram", "Duration of requests, including failed ones.");
    for &protocol in Protocol::ALL {
        for &operation in Operation::ALL {
            let snapshot = metrics.durations(protocol, operation);
            if snapshot.count() > 0 {
                let labels = [("protocol", protocol.name()), ("operation", operation.name())];
                render_histogram(text, NAME, &labels, &snapshot);
            }
        }
    }
}

/// The layers of the store. A layer that nothing has passed through yet is there too, so that alarms find it.
fn render_layers(text: &mut Text, layers: &[LayerTimes]) {
    const NAME: &str = "kinfolk_layer_duration_seconds";
    const HELP: &str = "How long layers of the store took. writer_queue: until the writer takes a request. log_sync: a sync of the \
        change log. rows: a read of lists, posts or comments from the row trees. index: one look-up of an edge, as the mean of a \
        bulk check; single checks are not measured, because reading the clock would cost as much as they do.";
    if !layers.is_empty() {
        text.family(NAME, "histogram", HELP);
    }
    for LayerTimes { layer, times } in layers {
        render_histogram(text, NAME, &[("layer", layer)], times);
    }
}

fn render_histogram(text: &mut Text, name: &str, labels: &[(&str, &str)], snapshot: &HistogramSnapshot) {
    let mut below = 0;
    let bounds = BOUNDS_NANOS.iter().map(|&nanos| Seconds(nanos).to_string()).chain(["+Inf".to_owned()]);
    for (count, bound) in snapshot.buckets.iter().zip(bounds) {
        below += count;
        text.sample(&format!("{name}_bucket"), &[labels, &[("le", &bound)]].concat(), below);
    }
    text.sample(&format!("{name}_sum"), labels, Seconds(snapshot.sum_nanos));
    text.sample(&format!("{name}_count"), labels, below);
}

fn render_failures(text: &mut Text, metrics: &Metrics) {
    const NAME: &str = "kinfolk_request_failures_total";
    text.family(NAME, "counter", "Requests that were refused or failed, by the code of the error.");
    for &protocol in Protocol::ALL {
        for &operation in Operation::ALL {
            for code in ErrorCode::ALL {
                let count = metrics.failures(protocol, operation, code);
                if count > 0 {
                    let labels = [
                        ("protocol", protocol.name()),
                        ("operation", operation.name()),
                        ("code", code.name()),
                    ];
                    text.sample(NAME, &labels, count);
                }
            }
        }
    }
    // Alarms watch these two, so they are there before the first time.
    for (name, help, codes) in [
        ("kinfolk_rate_limited_total", "Requests over a rate limit.", &[ErrorCode::RateLimited][..]),
        (
            "kinfolk_unauthenticated_total",
            "Requests without a valid credential.",
            &[ErrorCode::Unauthenticated, ErrorCode::WrongCredential],
        ),
    ] {
        text.family(name, "counter", help);
        for &protocol in Protocol::ALL {
            let of_code = |&code: &ErrorCode| -> u64 {
                Operation::ALL.iter().map(|&operation| metrics.failures(protocol, operation, code)).sum()
            };
            let count: u64 = codes.iter().map(of_code).sum();
            text.sample(name, &[("protocol", protocol.name())], count);
        }
    }
}

fn render_connections(text: &mut Text, metrics: &Metrics) {
    // Read before the openings, so that no connection is seen as closed before it was opened.
    let closed: Vec<u64> = Protocol::ALL.iter().map(|&protocol| metrics.closed(protocol)).collect();
    text.family("kinfolk_connections", "gauge", "Connections that are open.");
    for (&protocol, closed) in Protocol::ALL.iter().zip(closed) {
        let open = metrics.opened(protocol).saturating_sub(closed);
        text.sample("kinfolk_connections", &[("protocol", protocol.name())], open);
    }
    text.family("kinfolk_connections_opened_total", "counter", "Connections that were opened.");
    for &protocol in Protocol::ALL {
        let labels = [("protocol", protocol.name())];
        text.sample("kinfolk_connections_opened_total", &labels, metrics.opened(protocol));
    }
}

fn render_suggestions(text: &mut Text, metrics: &Metrics) {
    const NAME: &str = "kinfolk_suggestions_served_total";
    text.family(NAME, "counter", "Responses with suggestions, by their source.");
    for &source in Source::ALL {
        let count = metrics.suggestions_served[source as usize].load(Ordering::Relaxed);
        text.sample(NAME, &[("source", source.name())], count);
    }
}

struct Text {
    out: String,
    /// The names of the families so far.
    families: Vec<String>,
}

impl Text {
    /// Begins a family, unless there is one of that name already. Says whether it did.
    fn family(&mut self, name: &str, kind: &str, help: &str) -> bool {
        if self.families.iter().any(|family| family == name) {
            return false;
        }
        self.families.push(name.to_owned());
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("text grows");
        true
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.out.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            let opening = if at == 0 { '{' } else { ',' };
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(self.out, "{opening}{label}=\"{text}\"").expect("text grows");
        }
        let closing = if labels.is_empty() { "" } else { "}" };
        writeln!(self.out, "{closing} {value}").expect("text grows");
    }
}

/// Nanoseconds in seconds, without the noise of a division.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if nanos == 0 {
            return seconds.fmt(out);
        }
        let fraction = format!("{nanos:09}");
        write!(out, "{seconds}.{}", fraction.trim_end_matches('0'))
    }
}

/// A number as the format spells it.
struct Number(f64);

impl Display for Number {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            f64::INFINITY => out.write_str("+Inf"),
            f64::NEG_INFINITY => out.write_str("-Inf"),
            number => number.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests;
