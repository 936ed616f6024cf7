//! Edges: rows on disk with their memtables, the check index in memory, and what is answered from both.

mod friends;
pub mod index;
pub mod load;
mod memtable;
mod overlap;
mod port;
pub mod recent_followees;
mod row_keys;
mod rows;
pub mod verify;

pub use rows::{Load, Row, Rows, Tree};
