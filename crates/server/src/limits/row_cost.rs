//! The cost of reads of many rows: a budget limits work, and one request can be as much work as thousands of others.

use kinfolk_core::Result;

use super::Budget;

/// A read is charged one request for this number of rows.
const ROWS_PER_REQUEST: usize = 1_000;

/// Charges a caller's budget for the rows of a read.
#[derive(Debug)]
pub(crate) struct RowCost<'a> {
    budget: &'a Budget,
    rows: usize,
}

impl<'a> RowCost<'a> {
    pub(crate) fn new(budget: &'a Budget) -> Self {
        Self { budget, rows: 0 }
    }

    /// Charges more rows. Returns an error when the budget is used up.
    pub(crate) fn charge(&mut self, rows: usize) -> Result<()> {
        let charged = self.rows / ROWS_PER_REQUEST;
        self.rows += rows;
        match self.rows / ROWS_PER_REQUEST - charged {
            0 => Ok(()),
            due => self.budget.take(due as u32),
        }
    }
}
