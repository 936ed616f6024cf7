//! The fleet store: the graph on PostgreSQL shards, each with a change log of its own.
//!
//! A shard's truth and its log change in one transaction; the follower side is a projection of the logs that can be dropped and
//! rebuilt. Changes travel to it straight from the logs, or through a topic of Kafka that other systems can read, too. This crate
//! knows PostgreSQL, Kafka, Redis and the ports of [`kinfolk_core`]; it knows neither protocols nor the command line.
//!
//! | folder | what is in it |
//! |---|---|
//! | `catalog` | creates and describes a deployment: id kind, shards, hosts, keys |
//! | `postgres` | connections, statements, and what a failed one means |
//! | `sql` | the statements of requests, projection and verification, and the schema |
//! | `write` | one batcher for each host: lock, read, plan, write, commit |
//! | `check` | the layers of a check |
//! | `cache` | following sets in Redis: a layer of a check |
//! | `budgets` | rate limits of all processes together, in Redis |
//! | `redis` | a client of Redis Cluster |
//! | `read` | reads that show at least a frontier |
//! | `hot` | first pages and counts of accounts that are read often, kept for a moment |
//! | `log` | the change log: entries, pages, retention |
//! | `relay` | hands the logs to the topic |
//! | `topic` | the Kafka topic: its messages, its creation, reading it |
//! | `moves` | moving a shard to another host while it is read and written |
//! | `project` | the follower side, brought up to date from the topic or the logs |
//! | `compare` | what is derived against the truth, in ranges |
//! | `reconcile` | compares all the time, and repairs what has differed for a while |
//! | `bulk` | imports, exports, verification |
//! | `suggestions` | suggestions, found by a walk in the request |

#![warn(clippy::too_many_lines, unreachable_pub)]

mod background;
mod budgets;
mod bulk;
mod cache;
mod catalog;
mod check;
mod compare;
mod fleet;
mod hot;
mod log;
mod moves;
mod postgres;
mod project;
mod read;
mod reconcile;
mod redis;
mod relay;
mod settings;
mod status;
mod suggestions;
mod topic;
mod write;

pub use budgets::BudgetReport;
pub use bulk::{Edges, Import};
pub use cache::{CacheFeed, CacheState, CacheVerdict, CheckReport, FillOutcome, Warmed};
pub use catalog::{Catalog, Initialized, NewDeployment};
pub use check::{FilterSettings, FilterState, FilterVerdict, Filtering, LayerStates, ShardVerdict};
pub use fleet::Fleet;
pub use hot::{HotState, HotVerdict};
pub use log::{LoggedChange, Retention, Trimmed};
pub use moves::{MoveStatus, MoveStep, PlannedMove, plan_balance};
pub use postgres::Query;
pub use project::{ChangeSource, LogSource, Projection, SourceBatch};
pub use reconcile::{ReconcileState, Reconciler, Reconciling};
pub use redis::Redis;
pub use relay::{Relay, RelayCondition};
pub use settings::{Settings, Timeouts};
pub use status::{FleetStatus, HostCondition, HostStatus, ProcessStatus, ShardStatus};
pub use topic::{Kafka, Sasl, TopicSource};
