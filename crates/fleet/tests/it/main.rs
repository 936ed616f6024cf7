//! The fleet store on real servers. Runs where `KINFOLK_TEST_POSTGRES` names PostgreSQL servers, and `KINFOLK_TEST_KAFKA` brokers of
//! Kafka, as `scripts/stack` starts them.
#![allow(clippy::unwrap_used, reason = "a test may stop where it is")]

mod audits;
mod backups;
mod budgets;
mod cache;
mod catalog;
mod check_faults;
mod conformance;
mod consumers;
mod deployments;
mod explain;
mod filters;
mod fleet_faults;
mod halted_moves;
mod history;
mod imports;
mod kafka;
mod large;
mod late;
mod layer_faults;
mod lost_commits;
mod moves;
mod nodes;
mod old_primary;
mod pairs;
mod processes;
mod projection;
mod proxy;
mod reconcile;
mod relay_faults;
mod restores;
mod retention;
mod staleness;
mod standby;
mod story;
mod topic;
mod verify;
mod workers;
