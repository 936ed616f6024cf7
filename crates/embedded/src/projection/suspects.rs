//! What seems to differ while a projection is compared with the truth. It is looked at again some at a time, as it is found: however long
//! a pass takes and whatever is written meanwhile, no more than that is held.

use kinfolk_core::Result;
use kinfolk_core::bulk::{Progress, VerifyReport};

use super::difference::Difference;

/// How many differences are looked at together. The writer does nothing else meanwhile.
pub(crate) const TOGETHER: usize = 256;
/// How many counts wait until the rows that they count are repaired.
const COUNTS_MAX: usize = 16_384;
/// How many differences a report spells out.
const EXAMPLES_MAX: usize = 20;

/// Takes what seems to differ, and has it looked at again.
pub(crate) struct Suspects<'a> {
    /// Looks again, and returns what really differs.
    settle: &'a dyn Fn(Vec<Difference>) -> Result<Vec<Difference>>,
    progress: &'a dyn Fn(Progress),
    held: Vec<Difference>,
    /// Looked at last: a list that was repaired has another length.
    counts: Vec<Difference>,
    pub report: VerifyReport,
}

impl<'a> Suspects<'a> {
    /// Nothing yet.
    pub(crate) fn new(
        settle: &'a dyn Fn(Vec<Difference>) -> Result<Vec<Difference>>,
        progress: &'a dyn Fn(Progress),
    ) -> Self {
        Self { settle, progress, held: Vec::new(), counts: Vec::new(), report: VerifyReport::default() }
    }

    /// Something seems to differ.
    pub(crate) fn add(&mut self, suspected: Difference) -> Result<()> {
        if suspected.count().is_some() {
            self.counts.push(suspected);
        } else {
            self.held.push(suspected);
        }
        if self.counts.len() == COUNTS_MAX {
            return self.settle_all();
        }
        if self.held.len() == TOGETHER {
            let held = std::mem::take(&mut self.held);
            return self.settle(held);
        }
        Ok(())
    }

    fn settle(&mut self, suspected: Vec<Difference>) -> Result<()> {
        if suspected.is_empty() {
            return Ok(());
        }
        let real = (self.settle)(suspected)?;
        self.report.difference_count += real.len() as u64;
        let examples = &mut self.report.differences;
        examples.extend(real.iter().take(EXAMPLES_MAX - examples.len()).map(ToString::to_string));
        Ok(())
    }

    fn settle_all(&mut self) -> Result<()> {
        let (held, mut counts) = (std::mem::take(&mut self.held), std::mem::take(&mut self.counts));
        self.settle(held)?;
        while !counts.is_empty() {
            let rest = counts.split_off(counts.len().min(TOGETHER));
            self.settle(std::mem::replace(&mut counts, rest))?;
        }
        Ok(())
    }

    /// Says from time to time how far a stage has come.
    pub(crate) fn step(&self, stage: &'static str, done: u64) {
        if done.is_multiple_of(1 << 16) {
            (self.progress)(Progress { stage, done, total: None });
        }
    }

    /// The report, once everything is looked at.
    pub(crate) fn finish(mut self) -> Result<VerifyReport> {
        self.settle_all()?;
        Ok(self.report)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::Arc;

    use kinfolk_core::Timestamp;

    use super::*;
    use crate::projection::{Count, Counting, Fault};

    /// A fault of nothing.
    struct Nothing;

    /// A count of nothing.
    struct NoCount;

    impl fmt::Display for Nothing {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("nothing")
        }
    }

    impl fmt::Display for NoCount {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("no count")
        }
    }

    impl Fault for Nothing {
        fn recheck(&self, _: Timestamp) -> Result<Option<Difference>> {
            Ok(None)
        }

        fn repair(&self, _: Timestamp) -> Result<()> {
            Ok(())
        }
    }

    impl Count for NoCount {
        fn stored(&self) -> Result<u64> {
            Ok(0)
        }

        fn rows(&self) -> Result<Counting> {
            Ok(Box::new(std::iter::empty()))
        }

        fn correct(&self, _: i64) -> Result<()> {
            Ok(())
        }

        fn difference(&self, _: u64, _: u64) -> Difference {
            Arc::new(Self)
        }
    }

    /// However much seems to differ, no more is held than is looked at together; counts come after what they count.
    #[test]
    fn suspects_are_looked_at_some_at_a_time() {
        let seen = std::cell::RefCell::new(Vec::new());
        let settle = |suspected: Vec<Difference>| {
            assert!(suspected.len() <= TOGETHER);
            seen.borrow_mut().extend(suspected.iter().map(|difference| difference.count().is_some()));
            Ok(suspected.into_iter().skip(1).collect())
        };
        let mut suspects = Suspects::new(&settle, &|_| {});
        for _ in 0..20_000 {
            suspects.add(Arc::new(Nothing)).unwrap();
            suspects.add(Arc::new(NoCount)).unwrap();
            assert!(suspects.held.len() < TOGETHER && suspects.counts.len() < COUNTS_MAX);
        }
        let report = suspects.finish().unwrap();
        let looked = seen.into_inner();
        assert_eq!(looked.len(), 40_000);
        assert!(looked.last() == Some(&true) && !looked[..10_000].contains(&true));
        let chunks = looked.chunk_by(|one, next| one == next).map(|run| run.len().div_ceil(TOGETHER));
        assert!(report.difference_count >= 40_000 - 2 * chunks.sum::<usize>() as u64);
        assert_eq!(report.differences.len(), EXAMPLES_MAX);
    }
}
