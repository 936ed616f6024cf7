//! The Redis protocol through real sockets.

mod access;
mod client;
mod commands;
mod connections;
mod equivalence;
mod frames;
mod metrics;
mod pipelines;
mod reads;
mod server;
mod store;
mod tls;
mod transactions;
