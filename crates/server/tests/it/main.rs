//! Behaviour of the protocols through real sockets on loopback, on the reference store.
#![allow(clippy::unwrap_used, reason = "a test panics where something is wrong")]

mod administration;
mod backing;
mod console;
mod content;
mod graph_only;
mod resp;
mod rest;
mod store;
