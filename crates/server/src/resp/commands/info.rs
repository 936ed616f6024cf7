//! `INFO [section …]`: the server as tools see it, in Redis' names. Every value is measured; what is not known is left out.
//! Metrics are elsewhere.

use std::fmt::{Display, Write};
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::prelude::*;
use crate::metrics::{Protocol, process};

/// The version of Redis whose commands these are. Libraries choose their commands by it, and some use client-side caching only
/// from 7.4 on.
pub(super) const REDIS_VERSION: &str = "7.4.0";

/// In the order of the reply.
const SECTIONS: &[&str] = &[
    "Server",
    "Clients",
    "Memory",
    "Persistence",
    "Stats",
    "Replication",
    "CPU",
    "Cluster",
    "Keyspace",
    "Kinfolk",
];

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "info",
        summary: "describes the server",
        syntax: "[section …]",
        arity: -1,
        ..Command::server(|session, arguments, out| Box::pin(run(session, arguments, out)))
    }
}

async fn run<S: Store>(session: &Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    let asked = arguments.skip(1);
    let is_asked = |section: &str| {
        let means_all = |word: &[u8]| ["all", "default", "everything"].iter().any(|all| is(word, all));
        asked.len() == 0 || asked.iter().any(|word| means_all(word) || is(word, section))
    };
    let mut text = String::new();
    for &section in SECTIONS.iter().filter(|section| is_asked(section)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let _ = write!(text, "# {section}\r\n");
        let lines = Lines(&mut text);
        match section {
            "Server" => server(session, lines),
            "Clients" => clients(session, lines),
            "Memory" => memory(session, lines),
            "Persistence" => persistence(lines),
            "Stats" => stats(session, lines),
            "Replication" => replication(lines),
            "CPU" => cpu(lines),
            "Cluster" => cluster(lines),
            "Keyspace" => keyspace(session, lines),
            _ => kinfolk(session, lines).await?,
        }
    }
    out.verbatim(&text);
    Ok(())
}

/// Lines of a section.
struct Lines<'a>(&'a mut String);

impl Lines<'_> {
    fn add(&mut self, name: &str, value: impl Display) {
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    fn add_known(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// A number of bytes, also for people.
    fn add_bytes(&mut self, name: &str, bytes: Option<u64>) {
        self.add_known(name, bytes);
        self.add_known(&format!("{name}_human"), bytes.map(for_people));
    }
}

fn for_people(bytes: u64) -> String {
    const UNITS: [(&str, f64); 4] = [
        ("T", (1_u64 << 40) as f64),
        ("G", (1_u64 << 30) as f64),
        ("M", (1_u64 << 20) as f64),
        ("K", 1_024.0),
    ];
    let found = UNITS.iter().find(|(_, size)| bytes as f64 >= *size);
    found.map_or_else(|| format!("{bytes}B"), |(unit, size)| format!("{:.2}{unit}", bytes as f64 / size))
}

fn server<S: Store>(session: &Session<S>, mut lines: Lines<'_>) {
    let uptime = session.shared.started_at.elapsed().as_secs();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    lines.add("redis_version", REDIS_VERSION);
    lines.add("kinfolk_version", env!("CARGO_PKG_VERSION"));
    lines.add("redis_mode", "standalone");
    lines.add("os", operating_system());
    lines.add("arch_bits", usize::BITS);
    lines.add("process_id", std::process::id());
    lines.add_known("tcp_port", session.client.addresses.local.map(|local| local.port()));
    lines.add("server_time_usec", now.as_micros());
    lines.add("uptime_in_seconds", uptime);
    lines.add("uptime_in_days", uptime / 86_400);
}

/// Its name, version and architecture.
fn operating_system() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let name = if cfg!(target_os = "linux") { "Linux" } else { std::env::consts::OS };
    [name, release.trim(), std::env::consts::ARCH]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn clients<S: Store>(session: &Session<S>, mut lines: Lines<'_>) {
    lines.add("connected_clients", session.shared.connections.load(Ordering::Relaxed));
    lines.add("maxclients", session.shared.settings.connections_max);
    // No command blocks.
    lines.add("blocked_clients", 0);
    lines.add("tracking_clients", session.shared.tracking.stats().clients);
}

/// The process has no other measure of its memory than what the system says.
fn memory<S: Store>(session: &Session<S>, mut lines: Lines<'_>) {
    let usage = process::usage();
    lines.add_bytes("used_memory", usage.resident_bytes);
    lines.add_bytes("used_memory_rss", usage.resident_bytes);
    lines.add_bytes("total_system_memory", usage.machine_bytes);
    lines.add_bytes("maxmemory", Some(0));
    lines.add("maxmemory_policy", "noeviction");
    lines.add("mem_clients_normal", session.shared.pools.all.held());
}

/// A store that loads has no connection that could ask.
fn persistence(mut lines: Lines<'_>) {
    for name in ["loading", "rdb_bgsave_in_progress", "aof_rewrite_in_progress"] {
        lines.add(name, 0);
    }
}

fn stats<S: Store>(session: &Session<S>, mut lines: Lines<'_>) {
    let shared = &session.shared;
    let commands = shared.service.metrics.total(Protocol::Resp);
    lines.add("total_connections_received", shared.accepted.load(Ordering::Relaxed));
    lines.add("total_commands_processed", commands);
    let rate = shared.rate.since_last(shared.started_at, Instant::now(), commands);
    lines.add("instantaneous_ops_per_sec", rate);
    let tracking = shared.tracking.stats();
    lines.add("tracking_total_keys", tracking.keys);
    lines.add("tracking_total_items", tracking.items);
    lines.add("tracking_total_prefixes", tracking.prefixes);
    lines.add("expired_keys", 0);
    lines.add("evicted_keys", 0);
}

/// The protocol knows of no replicas, in any profile.
fn replication(mut lines: Lines<'_>) {
    lines.add("role", "master");
    lines.add("connected_slaves", 0);
}

fn cpu(mut lines: Lines<'_>) {
    let usage = process::usage();
    let seconds = |seconds: f64| format!("{seconds:.6}");
    lines.add_known("used_cpu_sys", usage.system_seconds.map(seconds));
    lines.add_known("used_cpu_user", usage.user_seconds.map(seconds));
}

fn cluster(mut lines: Lines<'_>) {
    lines.add("cluster_enabled", 0);
}

/// As in Redis, a database without keys is left out.
fn keyspace<S: Store>(session: &Session<S>, mut lines: Lines<'_>) {
    let keys = session.shared.service.set_count().filter(|&keys| keys > 0);
    lines.add_known("db0", keys.map(|keys| format!("keys={keys},expires=0,avg_ttl=0")));
}

async fn kinfolk<S: Store>(session: &Session<S>, mut lines: Lines<'_>) -> Result<()> {
    let service = &session.shared.service;
    lines.add("id_kind", service.id_kind().name());
    lines.add("position", service.log_end().await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_redis_writes_them() {
        for (bytes, text) in
            [(0, "0B"), (1_023, "1023B"), (1_024, "1.00K"), (1_572_864, "1.50M"), (3 << 30, "3.00G")]
        {
            assert_eq!(for_people(bytes), text);
        }
    }
}
