//! The graph of edges: its types, ports and operations, and the planning of writes.

mod model;
mod operations;
mod overlap;
mod plan;
mod ports;

pub use model::{
    Counts, Edge, EdgeAction, EdgeCommand, ListEntry, ListKey, Overlap, Relationship, Side, UserSet,
};
pub use operations::{FollowerChanges, Graph, GraphSettings, ListPage};
pub use overlap::OverlapPage;
pub use plan::{EdgeEvent, EdgePlanner, EdgeView, PlannedEdges};
pub use ports::{
    CheckStore, EdgeList, EdgeStore, Effects, FollowerCommand, FollowerCommands, OVERLAP_WALK_MAX, Receipt,
    WriteRequest,
};
