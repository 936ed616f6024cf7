//! The figures of the overview, as text by name. Which of them there are depends on the profile.

use kinfolk_core::{Clock, SystemClock, Timestamp};

use super::markup;
use crate::administration::Stat;
use crate::metrics::{Operation, process};
use crate::rest::{Rest, Store};
use crate::service::{Capability, Service};

/// A figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Figure {
    /// What the script finds it by.
    pub(super) name: &'static str,
    /// What people read.
    pub(super) label: &'static str,
    pub(super) text: String,
}

/// How a statistic is written.
#[derive(Clone, Copy)]
enum Unit {
    Count,
    Bytes,
    Seconds,
    /// A moment, in seconds since 1970.
    Ago,
}

/// The statistics that are shown: the name of the figure, its label, the statistic, its unit.
#[rustfmt::skip]
const SHOWN: &[(&str, &str, &str, Unit)] = &[
    ("edges", "Edges", "kinfolk_edges", Unit::Count),
    ("users", "Users", "kinfolk_index_users", Unit::Count),
    ("position", "Log position", "kinfolk_log_position_newest", Unit::Count),
    ("log", "Change log on disk", "kinfolk_log_bytes", Unit::Bytes),
    ("disk", "Disk", "kinfolk_disk_bytes", Unit::Bytes),
    ("index", "Memory of the index", "kinfolk_index_bytes", Unit::Bytes),
    ("inboxes", "Inboxes", "kinfolk_inboxes", Unit::Count),
    ("fan-out", "Fan-out lag", "kinfolk_fan_out_lag_seconds", Unit::Seconds),
    ("suggestions", "Suggestions last computed", "kinfolk_suggest_finished_timestamp_seconds", Unit::Ago),
    ("hosts", "Hosts", "kinfolk_fleet_hosts", Unit::Count),
    ("shards", "Shards", "kinfolk_fleet_shards", Unit::Count),
    ("behind", "Changes not projected", "kinfolk_fleet_changes_behind", Unit::Count),
    ("relay", "Changes not in Kafka", "kinfolk_fleet_relay_behind", Unit::Count),
];

/// All figures that there are.
pub(super) fn figures<S: Store>(shared: &Rest<S>, service: &Service<S>, stats: &[Stat]) -> Vec<Figure> {
    let shown = SHOWN.iter().filter_map(|&(name, label, stat, unit)| {
        let value = stats.iter().find(|known| known.name == stat)?.value;
        Some(Figure { name, label, text: text(value, unit) })
    });
    let mut figures: Vec<Figure> = shown.collect();
    if let Some(bytes) = process::usage().resident_bytes {
        let figure =
            Figure { name: "memory", label: "Memory of the process", text: markup::bytes(bytes as f64) };
        figures.insert(figures.len().min(2), figure);
    }
    let uptime = markup::duration(shared.console.started.elapsed().as_secs());
    figures.push(Figure { name: "uptime", label: "Up for", text: uptime });
    let jobs = JOBS.iter().filter(|(.., capability)| service.has(*capability));
    figures.extend(jobs.map(|&(name, label, operation, _)| {
        let text = service.metrics.last_job(operation).map_or_else(
            || "none since the start".to_owned(),
            |job| format!("{}{}", if job.succeeded { "" } else { "failed " }, ago(job.at)),
        );
        Figure { name, label, text }
    }));
    figures
}

/// The jobs whose last end is shown.
const JOBS: [(&str, &str, Operation, Capability); 2] = [
    ("verify", "Last verification", Operation::Verify, Capability::Verification),
    ("backup", "Last backup", Operation::Backup, Capability::Backups),
];

fn text(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count => markup::number(value as u64),
        Unit::Bytes => markup::bytes(value),
        Unit::Seconds if value < 10.0 => format!("{value:.1} s"),
        Unit::Seconds => markup::duration(value as u64),
        Unit::Ago if value == 0.0 => "never".to_owned(),
        Unit::Ago => ago(Timestamp::from_millis((value * 1_000.0) as u64)),
    }
}

/// How long ago something was.
pub(super) fn ago(at: Timestamp) -> String {
    let seconds = SystemClock.now().millis().saturating_sub(at.millis()) / 1_000;
    format!("{} ago", markup::duration(seconds))
}
