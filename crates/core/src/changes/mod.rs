//! The change log: what its events say, the port that keeps it, and the operations on it.

mod model;
mod operations;
mod ports;

pub use model::{Change, ChangeBody};
pub use operations::{Changes, ChangesPage};
pub use ports::{ChangeLog, LogPage, LogSpan};
