//! REST and RESP in front of the graph: decode, authenticate, limit, ask the core, encode.
//!
//! It knows `kinfolk-core` and no adapter: what it serves is a [`Service`] over any store, and what operators ask of
//! that store comes in as an [`Administration`]. Rules of the graph are not here.

mod access;
mod administration;
mod limits;
mod metrics;
pub mod resp;
pub mod rest;
mod service;

pub use access::{Access, Caller, Identity, Scope, Scopes};
pub use administration::{
    Administration, ExportRequest, Figure, FigureKind, FileFormat, ImportOutcome, ImportRequest, Progress,
    VerifyOutcome,
};
pub use limits::{Budget, Limits};
pub use metrics::{Metrics, Operation, Protocol};
pub use service::{Door, Service};
