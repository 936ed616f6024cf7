//! PostgreSQL: connections, statements, and what a failure means. Nothing here knows the graph.

mod failure;
mod host;
mod id;
mod statements;

pub(crate) use failure::{Failure, unavailable};
pub(crate) use host::{Host, Pooled, connect};
pub(crate) use id::IdValue;
pub use statements::Query;
pub(crate) use statements::{Statements, for_id_kind};
