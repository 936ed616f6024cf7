//! What a read costs that looks at many rows: a budget limits work, and one request can be the work of thousands.

use kinfolk_core::Result;

use super::Budget;

/// A read is charged one request for every so many rows.
const ROWS_PER_REQUEST: usize = 1_000;

/// Charges a caller's budget for the rows that a read looks at.
#[derive(Debug)]
pub(crate) struct RowCost<'a> {
    budget: &'a Budget,
    rows: usize,
}

impl<'a> RowCost<'a> {
    pub(crate) fn new(budget: &'a Budget) -> Self {
        Self { budget, rows: 0 }
    }

    /// Charges so many rows more. Refuses when the budget is used up.
    pub(crate) fn charge(&mut self, rows: usize) -> Result<()> {
        let charged = self.rows / ROWS_PER_REQUEST;
        self.rows += rows;
        match self.rows / ROWS_PER_REQUEST - charged {
            0 => Ok(()),
            due => self.budget.take(due as u32),
        }
    }
}
