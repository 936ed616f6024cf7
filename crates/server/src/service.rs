//! What both protocols serve: the graph, who may use it and how much, and what is counted on the way.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

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

/// Where requests come in: open once the store is loaded, closing before the process ends.
pub struct Door<S> {
    service: OnceLock<Arc<Service<S>>>,
    closing: AtomicBool,
}

impl<S> Door<S> {
    /// Nothing to serve yet.
    pub fn closed() -> Arc<Self> {
        Arc::new(Self { service: OnceLock::new(), closing: AtomicBool::new(false) })
    }

    /// The store is loaded: serve.
    pub fn open(&self, service: Arc<Service<S>>) {
        assert!(self.service.set(service).is_ok(), "a door is opened once");
    }

    /// The service, once there is one.
    pub fn service(&self) -> Option<&Arc<Service<S>>> {
        self.service.get()
    }

    /// New requests should go elsewhere: the process is about to end.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
    }

    /// Whether a load balancer may send requests here.
    pub fn is_ready(&self) -> bool {
        self.service.get().is_some() && !self.closing.load(Ordering::Acquire)
    }
}
