//! REST and RESP in front of the graph: decode, authenticate, limit, call the core, encode.
//!
//! It knows `kinfolk-core` and no adapter: it serves a [`Service`] over any store, and administrators reach that store through
//! an [`Administration`]. The rules of the graph are in `kinfolk-core`.

#![warn(unreachable_pub, clippy::too_many_lines)]

#[macro_use]
mod named;

mod access;
mod administration;
mod console;
mod internal_error;
mod limits;
mod metrics;
pub mod payload;
pub mod resp;
pub mod rest;
mod service;
mod socket;
mod tls;
mod watched_file;

pub use access::{
    Access, AccessSettings, Caller, Identity, KeyEntry, KeyFile, NewKey, Scope, Scopes, TokenSettings,
    require_safe_binding,
};
pub use administration::{
    Administration, ExportRequest, ImportDone, LayerTimes, NumberedUsers, Stat, StatKind, StateColumn,
    StateTable, counter, gauge,
};
pub use console::{ConsoleSettings, EffectiveSetting};
pub use kinfolk_api::{ExportContent, FileFormat, Import};
pub use limits::{
    Budget, BudgetName, ExchangeCounts, LimitSettings, Limits, Rate, RateState, Round, SharedBudgets,
    Spending, Taken,
};
pub use metrics::{Metrics, Operation, Protocol};
pub use service::{Capability, Door, Service, ServiceSettings};
pub use tls::{Tls, TlsSettings};
