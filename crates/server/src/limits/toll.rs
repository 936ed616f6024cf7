//! What a read that looks at many rows costs: a budget is about work, and one request can be the work of thousands.

use kinfolk_core::Result;

use super::Budget;

/// One request is charged for every so many rows.
const TOLL_ROWS: usize = 1_000;

/// How many rows a read has looked at.
#[derive(Debug, Default)]
pub(crate) struct Toll {
    rows: usize,
}

impl Toll {
    /// Charges so many rows more, to whoever is charged at all. Refuses when the budget is used up.
    pub fn pay(&mut self, budget: Option<&Budget>, rows: usize) -> Result<()> {
        let paid = self.rows / TOLL_ROWS;
        self.rows += rows;
        match (budget, self.rows / TOLL_ROWS - paid) {
            (Some(budget), due @ 1..) => budget.take(due as u32),
            _ => Ok(()),
        }
    }
}
