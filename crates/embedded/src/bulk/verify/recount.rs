//! Counts that seem wrong, counted again. What is counted is taken as of one moment between two batches; counting it, which
//! takes long where there are millions, holds up nobody, and what is written meanwhile does not disturb it.

use kinfolk_core::graph::Side;
use kinfolk_core::{EdgeKind, Id, Result};

use super::Difference;
use crate::comments::Tally;
use crate::engine::store::Store;

/// For each row, whether it counts.
pub type Counting = Box<dyn Iterator<Item = Result<bool>> + Send>;

/// What is counted.
#[derive(Clone, Copy, Debug)]
enum Counted {
    Followers { kind: EdgeKind, id: Id },
    Comments(Tally),
}

/// A count as it was stored at a moment, and the rows of that moment.
pub struct Recount {
    counted: Counted,
    stored: u64,
    found: u64,
    rows: Counting,
    /// How many differences had been repaired in the store then.
    repairs: u64,
}

impl Recount {
    /// Begins to count what a difference is about; `None` if that is no count. Runs on the writer's thread.
    pub fn begin(store: &Store, suspected: &Difference) -> Result<Option<Self>> {
        let (counted, stored, rows): (_, _, Counting) = match *suspected {
            Difference::FollowerCount { kind, id, .. } => {
                let rows = store.edges.rows.frozen_list((kind, Side::Followers, id));
                let rows = Box::new(rows.map(|row| row.map(|_| true)));
                (Counted::Followers { kind, id }, store.edges.index.counts(kind, id).followers, rows)
            }
            Difference::CommentCount(tally) => {
                let rows = store.comments.counted_rows(tally)?;
                (Counted::Comments(tally), store.comments.stored_count(tally)?, rows)
            }
            _ => return Ok(None),
        };
        let repairs = store.counters.repairs();
        Ok(Some(Self { counted, stored, found: 0, rows, repairs }))
    }

    /// Counts up to so many rows more; returns how many of them there were. Fewer than asked for mean that it is done.
    pub fn count(&mut self, rows: usize) -> Result<usize> {
        let mut counted = 0;
        for row in self.rows.by_ref().take(rows) {
            self.found += u64::from(row?);
            counted += 1;
        }
        Ok(counted)
    }

    /// The difference that was found, once everything is counted.
    pub fn difference(&self) -> Option<Difference> {
        let differs = self.stored != self.found;
        differs.then_some(match self.counted {
            Counted::Followers { kind, id } => {
                Difference::FollowerCount { kind, id, counted: self.stored, is: self.found }
            }
            Counted::Comments(tally) => Difference::CommentCount(tally),
        })
    }

    /// Corrects the count by as much as it was wrong: what was written since has changed it and the rows alike.
    fn correct(&self, store: &Store) -> Result<()> {
        let step = self.found.wrapping_sub(self.stored).cast_signed();
        match self.counted {
            Counted::Followers { kind, id } => {
                let count = store.edges.index.counts(kind, id).followers.saturating_add_signed(step);
                store.edges.index.set_follower_count(kind, id, u32::try_from(count).unwrap_or(u32::MAX));
                Ok(())
            }
            Counted::Comments(tally) => store.comments.correct_count(tally, step),
        }
    }
}

/// Corrects counts that were found wrong, all of them counted to the end; returns how many. What else was repaired since may
/// have changed rows without their counts: then nothing is corrected, and the next pass counts again. Runs on the writer's
/// thread.
pub fn correct(store: &Store, recounts: &[Recount]) -> Result<usize> {
    let wrong: Vec<&Recount> = recounts.iter().filter(|recount| recount.difference().is_some()).collect();
    let is_current = |recount: &&Recount| recount.repairs == store.counters.repairs();
    if wrong.is_empty() || !wrong.iter().all(is_current) {
        return Ok(0);
    }
    wrong.iter().try_for_each(|recount| recount.correct(store))?;
    super::repaired(store, wrong.len());
    Ok(wrong.len())
}
