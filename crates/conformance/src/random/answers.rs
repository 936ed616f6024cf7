//! What a store answers while others are at work. It may refuse any operation for a while, and it may lose the outcome of a
//! write: a refused write is no event, and a read that failed is no observation. Too few observations are a failure.

use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::{Error, Result};

use crate::random::compare::walk_by;

/// At least one operation in so many is answered.
const ANSWERED_SHARE: u64 = 4;

/// What came of a write.
#[derive(Debug)]
pub(crate) enum Attempt<T> {
    /// It was acknowledged.
    Done(T),
    /// A rule refused it.
    Refused(Error),
    /// The store could not take it: nothing changed.
    Unavailable,
    /// It may or may not have happened, or may happen later.
    Unknown,
}

/// Counts the operations of a history, and those that were answered.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    reads: Tally,
    writes: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    tried: AtomicU64,
    answered: AtomicU64,
}

impl Tally {
    fn count(&self, is_answered: bool) {
        self.tried.fetch_add(1, Ordering::Relaxed);
        self.answered.fetch_add(u64::from(is_answered), Ordering::Relaxed);
    }

    fn is_enough(&self) -> bool {
        let (tried, answered) = (self.tried.load(Ordering::Relaxed), self.answered.load(Ordering::Relaxed));
        answered > 0 && answered * ANSWERED_SHARE >= tried
    }
}

/// Whether an operation failed in a way that a store may fail at any time, without an effect.
fn is_unavailable(error: &Error) -> bool {
    matches!(error, Error::Unavailable { .. } | Error::Overloaded { .. })
}

impl Answers {
    /// What was read, unless the store could not answer. Panics if it failed in another way.
    pub(crate) fn read<T>(&self, result: Result<T>) -> Option<T> {
        self.reads.count(result.is_ok());
        match result {
            Ok(found) => Some(found),
            Err(Error::NotYetVisible { .. } | Error::TimedOut) => None,
            Err(error) if is_unavailable(&error) => None,
            Err(error) => panic!("a read failed: {error}"),
        }
    }

    /// A list that was read to its end in pages, unless one of them could not be read. Panics if a page is wrong.
    pub(crate) fn walk<T, K>(
        &self,
        key: impl Fn(&T) -> K,
        page_limit: usize,
        mut read: impl FnMut(Option<K>) -> Result<Vec<T>>,
    ) -> Option<Vec<T>> {
        let mut has_failed = false;
        let walked = walk_by(key, page_limit, |after| {
            let page = self.read(read(after));
            has_failed |= page.is_none();
            page.ok_or_else(String::new)
        });
        (!has_failed).then(|| walked.unwrap_or_else(|wrong| panic!("{wrong}")))
    }

    /// What came of a write.
    pub(crate) fn write<T>(&self, result: Result<T>) -> Attempt<T> {
        let attempt = match result {
            Ok(done) => Attempt::Done(done),
            Err(error) if error.is_outcome_unknown() => Attempt::Unknown,
            Err(error) if is_unavailable(&error) => Attempt::Unavailable,
            Err(error) => Attempt::Refused(error),
        };
        self.writes.count(matches!(attempt, Attempt::Done(_) | Attempt::Refused(_)));
        attempt
    }

    /// Panics if nearly everything failed: such a history shows nothing.
    pub(crate) fn require_enough(&self) {
        assert!(self.reads.is_enough() && self.writes.is_enough(), "too little was answered: {self:?}");
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn unavailable<T>() -> Result<T> {
        Err(Error::Unavailable { what: "a host".into(), retry_after: Duration::from_secs(1) })
    }

    fn with(answered: u64, failed: u64) -> Answers {
        let answers = Answers::default();
        for _ in 0..answered {
            answers.read(Ok(()));
            answers.write(Ok(()));
        }
        for _ in 0..failed {
            assert!(answers.read::<()>(unavailable()).is_none());
            assert!(matches!(answers.write::<()>(unavailable()), Attempt::Unavailable));
        }
        answers
    }

    #[test]
    fn enough_must_be_answered() {
        with(1, 3).require_enough();
        for few in [with(0, 0), with(0, 9), with(2, 7)] {
            assert!(!few.reads.is_enough() && !few.writes.is_enough(), "{few:?}");
        }
    }

    #[test]
    fn a_walk_is_whole_or_no_observation() {
        let answers = Answers::default();
        let pages = [vec![1, 2], vec![3]];
        let whole = answers.walk(|entry| *entry, 2, |after| Ok(pages[usize::from(after.is_some())].clone()));
        assert_eq!(whole, Some(vec![1, 2, 3]));
        let cut = answers.walk(
            |entry| *entry,
            2,
            |after: Option<i32>| match after {
                None => Ok(vec![1, 2]),
                Some(_) => unavailable(),
            },
        );
        assert_eq!(cut, None);
    }
}
