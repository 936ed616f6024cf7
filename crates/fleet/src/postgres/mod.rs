//! PostgreSQL: connections, statements, and what a failure means. Nothing here knows the graph.

mod encryption;
mod failure;
mod host;
mod id;
mod statements;

pub(crate) use encryption::Encryption;
pub(crate) use failure::{Failure, unavailable};
pub(crate) use host::{Host, Pooled, Target, connect, process_of};
pub(crate) use id::{IdValue, id_max, id_min};
pub use statements::Query;
pub(crate) use statements::{Statements, for_id_kind};

/// A limit as a parameter: more than a table can have is all of it.
pub(crate) fn limit_value(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
