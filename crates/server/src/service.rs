//! What both protocols serve: the graph, who may use it and how much, and what is counted on the way.

use std::sync::Arc;

use kinfolk_core::graph::Graph;

use crate::access::Access;
use crate::administration::Administration;
use crate::limits::Limits;
use crate::metrics::Metrics;

/// The graph as a service. One for the life of a process, shared by all connections.
pub struct Service<S> {
    /// The rules, on a store.
    pub graph: Graph<S>,
    /// Who may do what.
    pub access: Access,
    /// How much of it.
    pub limits: Limits,
    /// What was done, and how long it took.
    pub metrics: Metrics,
    /// What operators may ask of the store.
    pub administration: Arc<dyn Administration>,
}
