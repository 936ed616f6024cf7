//! The Redis protocol on a fleet.

#[path = "../../../../../server/tests/it/resp/access.rs"]
#[allow(dead_code, reason = "some of it is for tests that do not run here")]
mod access;
#[path = "../../../../../server/tests/it/resp/checks.rs"]
mod checks;
#[path = "../../../../../server/tests/it/resp/client.rs"]
#[allow(dead_code, reason = "some of it is for tests that do not run here")]
mod client;
#[path = "../../../../../server/tests/it/resp/commands.rs"]
mod commands;
#[path = "../../../../../server/tests/it/resp/equivalence.rs"]
mod equivalence;
#[path = "../../../../../server/tests/it/resp/overlaps.rs"]
mod overlaps;
#[path = "../../../../../server/tests/it/resp/pipelines.rs"]
mod pipelines;
#[path = "../../../../../server/tests/it/resp/reads.rs"]
mod reads;
#[path = "../../../../../server/tests/it/resp/server.rs"]
#[allow(dead_code, reason = "some of it is for tests that do not run here")]
mod server;
#[path = "../../../../../server/tests/it/resp/suggestions.rs"]
mod suggestions;
#[path = "../../../../../server/tests/it/resp/tracking.rs"]
mod tracking;
#[path = "../../../../../server/tests/it/resp/transactions.rs"]
mod transactions;
