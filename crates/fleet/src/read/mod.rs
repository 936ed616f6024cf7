//! Reads: each is one statement on each host that it concerns, which shows at least a frontier or says why not.

mod acknowledged;
mod checks;
mod counts;
mod freshness;
mod friends;
mod lists;
mod overlap;
mod ports;
mod readiness;
mod staleness;

pub(crate) use acknowledged::Acknowledged;
pub(crate) use freshness::{GUARD_COLUMNS, Guard, HostPart, Reader};
pub(crate) use lists::Page;
pub(crate) use staleness::{STALENESS_MAX, Sampled, Staleness, sample};
