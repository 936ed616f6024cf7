//! The Kafka topic that carries the changes of all shards: how its messages look, how it is created, and reading it for a
//! projection.
//!
//! A shard is a partition. Only the shard of the follower ever writes an edge, so that the changes of an edge are in order.

mod create;
mod event;
mod settings;
mod source;
mod windows;

pub(crate) use create::{Quiet, require_fitting, require_topic};
pub(crate) use event::encode;
pub use settings::{Kafka, Sasl};
pub use source::TopicSource;
