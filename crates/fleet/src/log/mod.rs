//! The change log: its entries, its pages, what is kept of it.

mod changes;
mod entry;
mod pages;
mod retention;

pub use entry::LoggedChange;
pub(crate) use entry::{Entry, PlannedEvent, floor_after};
pub(crate) use pages::{LogReader, ShardSpan};
pub use retention::{Retention, Trimmed};
