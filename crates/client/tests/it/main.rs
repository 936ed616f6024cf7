//! The client against the real server on an embedded store, and against servers that fail on purpose.

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
