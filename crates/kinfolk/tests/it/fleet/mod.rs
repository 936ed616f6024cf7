//! The fleet profile of the binary on a real PostgreSQL. Runs where `KINFOLK_TEST_POSTGRES` names one, as `scripts/stack` starts
//! it.

mod budgets;
mod cache;
mod commands;
mod configuration;
mod databases;
mod encryption;
mod files;
mod kafka;
mod processes;
mod readiness;
mod reconciler;
mod rolling;
mod same_results;
mod scenarios;
mod shards;
mod spread;
