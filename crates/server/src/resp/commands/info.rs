//! `INFO [section …]`: as much about the server as clients need to know; always all sections. Metrics are elsewhere.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use super::prelude::*;

/// The version of Redis whose commands these are; libraries choose their commands by it.
pub(super) const REDIS_VERSION: &str = "7.2.0";

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "info",
        summary: "describes the server",
        arity: -1,
        ..Command::server(|session, out| Box::pin(run(session, out)))
    }
}

async fn run<S: Store>(session: &Session<S>, out: &mut Output) -> Result<()> {
    let position = session.shared.service.log_end().await?;
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
    line("position", &position);
    out.verbatim(&text);
    Ok(())
}
