//! The embedded store through its public interface.
#![allow(clippy::unwrap_used, reason = "a test may stop where it is")]

mod comments;
mod conformance;
mod fixtures;
mod imports;
mod posts;
mod store;
mod stores;
mod verify;
