//! Counts that seem wrong, counted again. What is counted is taken as of one moment between two batches; counting it, which
//! takes long where there are millions, holds up nobody, and what is written meanwhile does not disturb it.

use kinfolk_core::Result;

use super::difference::{Counting, Difference};

/// A count as it was stored at a moment, and the rows of that moment.
pub(crate) struct Recount {
    of: Difference,
    stored: u64,
    found: u64,
    rows: Counting,
    /// How many differences had been repaired in the store then.
    pub repairs: u64,
}

impl Recount {
    /// Begins to count what a difference is about; `None` if that is no count. Runs on the writer's thread.
    pub(crate) fn begin(suspected: &Difference, repairs: u64) -> Result<Option<Self>> {
        let Some(count) = suspected.count() else { return Ok(None) };
        let (rows, stored) = (count.rows()?, count.stored()?);
        Ok(Some(Self { of: suspected.clone(), stored, found: 0, rows, repairs }))
    }

    /// Counts up to so many rows more; returns how many of them there were. Fewer than asked for mean that it is done.
    pub(crate) fn count(&mut self, rows: usize) -> Result<usize> {
        let mut counted = 0;
        for row in self.rows.by_ref().take(rows) {
            self.found += u64::from(row?);
            counted += 1;
        }
        Ok(counted)
    }

    /// The difference that was found, once everything is counted.
    pub(crate) fn difference(&self) -> Option<Difference> {
        let count = self.of.count().filter(|_| self.stored != self.found)?;
        Some(count.difference(self.stored, self.found))
    }

    /// Corrects the count by as much as it was wrong: what was written since has changed it and the rows alike.
    pub(crate) fn correct(&self) -> Result<()> {
        let step = self.found.wrapping_sub(self.stored).cast_signed();
        self.of.count().map_or(Ok(()), |count| count.correct(step))
    }
}
