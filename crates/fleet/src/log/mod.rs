//! The change log: its entries, its pages, how far others have taken it, what is kept of it.

mod changes;
mod entry;
mod marks;
mod pages;
mod retention;

pub(crate) use changes::rotated;
pub use entry::LoggedChange;
pub(crate) use entry::{Entry, PlannedEvent, floor_after};
pub(crate) use marks::{Mark, kept_marks, marks, relay_marks};
pub(crate) use pages::{LogReader, ShardSpan};
pub use retention::{Retention, Trimmed};
