//! The Redis protocol through real sockets.

mod access;
mod capabilities;
mod checks;
mod client;
mod commands;
mod connections;
mod equivalence;
mod frames;
mod memory;
mod metrics;
mod overlaps;
mod pipelines;
mod posts;
mod reads;
mod server;
mod suggestions;
mod tls;
mod tools;
mod tracking;
mod transactions;
