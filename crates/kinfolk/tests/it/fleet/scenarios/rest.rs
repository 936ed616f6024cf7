//! REST on a fleet.

#[path = "../../../../../server/tests/it/rest/access.rs"]
#[allow(dead_code, reason = "some of it is for tests that do not run here")]
mod access;
#[path = "../../../../../server/tests/it/rest/changes.rs"]
mod changes;
#[path = "../../../../../server/tests/it/rest/client.rs"]
#[allow(dead_code, reason = "some of it is for tests that do not run here")]
mod client;
#[path = "../../../../../server/tests/it/rest/document.rs"]
mod document;
#[path = "../../../../../server/tests/it/rest/errors.rs"]
mod errors;
#[path = "../../../../../server/tests/it/rest/graph.rs"]
mod graph;
#[path = "../../../../../server/tests/it/rest/overlaps.rs"]
mod overlaps;
#[path = "../../../../../server/tests/it/rest/server.rs"]
#[allow(dead_code, reason = "some of it is for tests that do not run here")]
mod server;
#[path = "../../../../../server/tests/it/rest/suggestions.rs"]
mod suggestions;
#[path = "../../../../../server/tests/it/rest/tokens.rs"]
mod tokens;
