//! The follow graph: what it is made of, the ports that keep it, and the operations on it.

mod model;
mod operations;
mod ports;

pub use model::{
    Change, ChangeBody, Counts, Edge, EdgeAction, EdgeCommand, ListEntry, ListKey, Relationship, Side,
};
pub use operations::{ChangesPage, Freshness, Graph, GraphSettings, ListPage, PageRequest, Written};
pub use ports::{ChangeLog, EdgeStore, LogSpan, Receipt, WriteRequest};
