//! The embedded store through its public interface.
#![allow(clippy::unwrap_used, reason = "a test may stop where it is")]

mod clocks;
mod comments;
mod conformance;
mod fixtures;
mod health;
mod imports;
mod posts;
mod retention;
mod store;
mod stores;
mod verify;
