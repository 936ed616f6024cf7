//! The change log: its entries, its pages, what is kept of it.

mod changes;
mod entry;
mod pages;
mod retention;

pub(crate) use entry::{Entry, floor_after};
pub(crate) use pages::{LogReader, ShardSpan};
pub use retention::{Retention, Trimmed};
