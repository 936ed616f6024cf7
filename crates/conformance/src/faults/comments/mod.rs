//! Faults of comment threads.

mod reading;
pub(super) mod writing;
