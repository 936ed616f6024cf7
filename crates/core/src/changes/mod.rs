//! The change log: its events, its port, and the operations on it.

mod model;
mod operations;
mod ports;

pub use model::{Change, ChangeBody};
pub use operations::Changes;
pub use ports::{ChangeLog, LogPage, LogSpan};
