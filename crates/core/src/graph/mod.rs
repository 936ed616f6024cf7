//! The follow graph: what it is made of, the ports that keep it, and the operations on it.

mod model;
mod operations;
mod overlap;
mod ports;

pub use model::{
    Change, ChangeBody, Counts, Edge, EdgeAction, EdgeCommand, ListEntry, ListKey, Overlap, Relationship,
    Side, UserSet,
};
pub use operations::{ChangesPage, Freshness, Graph, GraphSettings, ListPage, PageRequest, Written};
pub use overlap::OverlapPage;
pub use ports::{ChangeLog, EdgeStore, LogSpan, OVERLAP_WALK_MAX, Receipt, WriteRequest};
