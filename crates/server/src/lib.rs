//! REST and RESP in front of the graph: decode, authenticate, limit, ask the core, encode.
//!
//! It knows `kinfolk-core` and no adapter: what it serves is a [`Service`] over any store, and what operators ask of
//! that store comes in as an [`Administration`]. Rules of the graph are not here.

mod access;
mod administration;
mod inner;
mod limits;
mod metrics;
pub mod payload;
pub mod resp;
pub mod rest;
mod service;
mod socket;
mod tls;
mod watched;

pub use access::{
    Access, AccessSettings, Caller, Identity, KeyEntry, KeyFile, NewKey, Scope, Scopes, TokenSettings,
    require_safe_binding,
};
pub use administration::{
    Administration, ExportRequest, Figure, FigureKind, ImportDone, ImportRequest, LayerTimes,
    NoAdministration,
};
pub use kinfolk_api::{ExportContent, FileFormat};
pub use limits::{Budget, LimitSettings, Limits, Rate, RateState, Taken};
pub use metrics::{Metrics, Operation, Protocol, STORE_FIGURES};
pub use service::{Capability, Door, Service, ServiceSettings};
pub use tls::{Tls, TlsSettings};
