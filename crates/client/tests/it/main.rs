//! The client against the real server on an embedded store, and against servers that fail on purpose.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod administration;
mod changes;
mod jobs;
mod operations;
mod paging;
mod retries;
mod scripted;
mod server;
mod tls;
mod tokens;
