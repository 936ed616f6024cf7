//! `CONFIG GET pattern [pattern …]`: the settings that clients ask for.

use super::super::glob::Pattern;
use super::prelude::*;

/// How many patterns one call has at most.
const PATTERNS_MAX: usize = 16;

const SUBCOMMANDS: &[Subcommand] = &[Subcommand {
    name: "get",
    summary: "the settings whose names match",
    syntax: "pattern [pattern …]",
    arity: -3,
}];

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "config",
        summary: "the settings that clients ask for",
        subcommands: SUBCOMMANDS,
        example: &["get", "save"],
        arity: -2,
        group: "server",
        ..Command::session(run)
    }
}

fn run<S: Store>(session: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    if arguments.get(1).is_some_and(|word| is(word, "SET")) {
        return Err(invalid("CONFIG SET is not supported; settings are in the server's configuration file"));
    }
    if subcommand::find("config", SUBCOMMANDS, arguments, out)?.is_none() {
        return Ok(());
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
    let slow_micros =
        limits.slow_log_threshold.map_or(-1, |threshold| threshold.as_micros() as i64).to_string();
    let tracked_max = limits.tracking_items_max.to_string();
    let slow_max = limits.slow_log_length.to_string();
    let settings = [
        ("appendfsync", "always"),
        ("appendonly", "yes"),
        ("databases", "1"),
        ("maxclients", connections_max.as_str()),
        ("maxmemory", "0"),
        ("maxmemory-clients", memory_bytes_max.as_str()),
        ("save", ""),
        ("slowlog-log-slower-than", slow_micros.as_str()),
        ("slowlog-max-len", slow_max.as_str()),
        ("timeout", idle_seconds.as_str()),
        ("tracking-table-max-keys", tracked_max.as_str()),
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
