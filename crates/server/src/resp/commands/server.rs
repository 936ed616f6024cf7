//! `INFO` and `CONFIG GET`: as much about the server as clients need to know. Metrics are elsewhere.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use kinfolk_core::{Error, Result, Store};

use super::super::batch::Arguments;
use super::super::glob::Pattern;
use super::super::reply::Output;
use super::super::session::Session;
use super::{invalid, is};

/// The version of Redis whose commands these are; libraries choose their commands by it.
pub const REDIS_VERSION: &str = "7.2.0";
/// The most patterns in one call.
const PATTERNS_MAX: usize = 16;

/// `INFO [section …]`: always everything.
pub async fn info<S: Store>(session: &Session<S>, out: &mut Output) -> Result<()> {
    let span = session.shared.service.graph.store().span().await?;
    let mut text = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        let _ = write!(text, "{name}:{value}\r\n");
    };
    let shared = &session.shared;
    line("# Server\r\nredis_version", &REDIS_VERSION);
    line("kinfolk_version", &env!("CARGO_PKG_VERSION"));
    line("redis_mode", &"standalone");
    line("\r\n# Clients\r\nconnected_clients", &shared.connections.load(Ordering::Relaxed));
    line("maxclients", &shared.settings.connections_max);
    line("\r\n# Memory\r\nmem_clients_normal", &shared.pools.all.held());
    line("\r\n# Persistence\r\nloading", &0);
    line("\r\n# Stats\r\ntotal_connections_received", &shared.accepted.load(Ordering::Relaxed));
    line("\r\n# Replication\r\nrole", &"master");
    line("\r\n# Cluster\r\ncluster_enabled", &0);
    line("\r\n# Kinfolk\r\nid_kind", &shared.service.id_kind().name());
    line("position", &span.newest);
    out.verbatim(&text);
    Ok(())
}

/// `CONFIG GET pattern [pattern …]`.
pub fn config<S: Store>(session: &Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    if !arguments.get(1).is_some_and(|word| is(word, "GET")) || arguments.len() < 3 {
        return Err(invalid("only CONFIG GET is served; settings are in the server's configuration file"));
    }
    let patterns = arguments.skip(2);
    if patterns.len() > PATTERNS_MAX {
        return Err(Error::TooMany { what: "patterns", count: patterns.len(), max: PATTERNS_MAX });
    }
    let patterns: Vec<_> = patterns.iter().map(<[u8]>::to_ascii_lowercase).collect();
    let patterns = patterns.iter().map(|pattern| Pattern::new(pattern)).collect::<Result<Vec<_>>>()?;
    let limits = &session.shared.settings;
    let connections_max = limits.connections_max.to_string();
    let memory_bytes_max = limits.memory_bytes_max.to_string();
    let idle_seconds = limits.idle_max.unwrap_or_default().as_secs().to_string();
    let settings = [
        ("appendfsync", "always"),
        ("appendonly", "yes"),
        ("databases", "1"),
        ("maxclients", connections_max.as_str()),
        ("maxmemory", "0"),
        ("maxmemory-clients", memory_bytes_max.as_str()),
        ("save", ""),
        ("timeout", idle_seconds.as_str()),
    ];
    let asked = |name: &str| patterns.iter().any(|pattern| pattern.matches(name.as_bytes()));
    let found: Vec<_> = settings.into_iter().filter(|&(name, _)| asked(name)).collect();
    out.map(found.len());
    for (name, value) in found {
        out.bulk(name);
        out.bulk(value);
    }
    Ok(())
}
