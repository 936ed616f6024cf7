//! The fleet store on a real PostgreSQL. Runs where `KINFOLK_TEST_POSTGRES` names one, as `scripts/stack` starts it.
#![allow(clippy::unwrap_used, reason = "a test may stop where it is")]

mod catalog;
mod conformance;
mod consumers;
mod deployments;
mod explain;
mod imports;
mod late;
mod lost_commits;
mod old_primary;
mod processes;
mod projection;
mod proxy;
mod restores;
mod retention;
mod staleness;
mod standby;
mod verify;
