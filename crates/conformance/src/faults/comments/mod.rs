//! Faults of comment threads.

pub(super) mod declared;
mod reading;
pub(super) mod writing;
