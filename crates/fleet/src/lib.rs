//! The fleet store: the graph on PostgreSQL shards, each with a change log of its own.
//!
//! A shard's truth and its log change in one transaction; the follower side is a projection of the logs that can be dropped and
//! rebuilt. This crate knows PostgreSQL and the ports of [`kinfolk_core`]; it knows neither protocols nor the command line.
//!
//! | folder | what is in it |
//! |---|---|
//! | `catalog` | creates and describes a deployment: id kind, shards, hosts, keys |
//! | `postgres` | connections, statements, and what a failed one means |
//! | `sql` | the statements of requests, projection and verification, and the schema |
//! | `write` | one batcher for each shard: lock, read, plan, write, commit |
//! | `read` | reads that show at least a frontier |
//! | `log` | the change log: entries, pages, retention |
//! | `project` | the follower side, brought up to date from the logs |
//! | `bulk` | imports, exports, verification |
//! | `suggestions` | suggestions, found by a walk in the request |

#![warn(clippy::too_many_lines, unreachable_pub)]

mod bulk;
mod catalog;
mod fleet;
mod log;
mod postgres;
mod project;
mod read;
mod settings;
mod status;
mod suggestions;
mod write;

pub use bulk::{Edges, Import};
pub use catalog::{Catalog, NewDeployment};
pub use fleet::Fleet;
pub use log::{LoggedChange, Retention, Trimmed};
pub use postgres::Query;
pub use project::{ChangeSource, LogSource, Projection, SourceBatch};
pub use settings::{Settings, Timeouts};
pub use status::{FleetStatus, HostCondition, HostStatus, ProcessStatus};
