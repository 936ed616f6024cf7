//! The scenarios of both protocols, which `crates/server` runs on the reference store, on a fleet: the same files, with another
//! store behind their servers.

#[path = "../../../../../server/tests/it/administration.rs"]
mod administration;
mod backing;
mod resp;
mod rest;
#[path = "../../../../../server/tests/it/store.rs"]
#[expect(dead_code, reason = "some of it is for tests that do not run here")]
mod store;
