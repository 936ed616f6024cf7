//! Writes: requests go to the batcher of their host, which commits many of them in one transaction.

mod aside;
mod batcher;
mod plan;
mod prepared;
mod rows;
mod settle;
mod transaction;

pub(crate) use batcher::Writers;
pub(crate) use plan::Subjects;
pub(crate) use rows::{NetEdge, Rows, net_edges};
pub(crate) use transaction::{BEGIN, BatchWriter, COMMIT, LOCK_CLASS, Sent, random_batch};
