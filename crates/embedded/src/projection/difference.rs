//! A place where a projection seems to differ from the truth: how it is described, looked at again, and repaired. What can be wrong is
//! said by each room.

use std::fmt;
use std::sync::Arc;

use kinfolk_core::{Result, Timestamp};

/// For each row, whether it counts.
pub type Counting = Box<dyn Iterator<Item = Result<bool>> + Send>;

/// What can be wrong with a projection.
///
/// Nothing is repaired where it is found, since a write in the middle of a comparison can look like a fault: between two batches of the
/// writer it is looked at again.
pub trait Fault<P>: fmt::Display + Clone + Send + Sync + 'static {
    /// The fault as it is now, if it is there. Between two batches that is certain; elsewhere a write may come in between. `now` is not
    /// earlier than any event.
    fn recheck(&self, of: &P, now: Timestamp) -> Result<Option<Self>>;

    /// Brings what differs back to the truth. Runs on the writer's thread.
    fn repair(&self, of: &P, now: Timestamp) -> Result<()>;

    /// Whether other projections may be built from what differs.
    fn spreads(&self) -> bool {
        true
    }

    /// Whether a count is wrong. Counting takes as long as there are many: it is left to a [`super::Recount`].
    fn is_count(&self) -> bool {
        false
    }

    /// The count as it is stored.
    fn stored_count(&self, _of: &P) -> Result<u64> {
        Ok(0)
    }

    /// The rows that are counted, as of now. Runs on the writer's thread.
    fn counted_rows(&self, _of: &P) -> Result<Counting> {
        Ok(Box::new(std::iter::empty()))
    }

    /// Adds to a stored count. Runs on the writer's thread.
    fn correct_count(&self, _of: &P, _step: i64) -> Result<()> {
        Ok(())
    }

    /// The fault, with what is stored and what was found.
    fn with_counts(&self, _stored: u64, _found: u64) -> Self {
        self.clone()
    }
}

/// A fault of some projection.
pub type Difference = Arc<dyn AnyFault>;

/// The difference that a fault of a projection is.
pub fn difference<P: Send + Sync + 'static>(of: &Arc<P>, fault: impl Fault<P>) -> Difference {
    Arc::new(FaultOf { of: Arc::clone(of), fault })
}

/// A [`Fault`] together with the projection that has it, whichever that is.
pub trait AnyFault: fmt::Display + Send + Sync {
    fn recheck(&self, now: Timestamp) -> Result<Option<Difference>>;
    fn repair(&self, now: Timestamp) -> Result<()>;
    fn spreads(&self) -> bool;
    fn is_count(&self) -> bool;
    fn stored_count(&self) -> Result<u64>;
    fn counted_rows(&self) -> Result<Counting>;
    fn correct_count(&self, step: i64) -> Result<()>;
    fn with_counts(&self, stored: u64, found: u64) -> Difference;
}

struct FaultOf<P, F> {
    of: Arc<P>,
    fault: F,
}

impl<P, F: fmt::Display> fmt::Display for FaultOf<P, F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(out)
    }
}

impl<P: Send + Sync + 'static, F: Fault<P>> AnyFault for FaultOf<P, F> {
    fn recheck(&self, now: Timestamp) -> Result<Option<Difference>> {
        Ok(self.fault.recheck(&self.of, now)?.map(|fault| difference(&self.of, fault)))
    }

    fn repair(&self, now: Timestamp) -> Result<()> {
        self.fault.repair(&self.of, now)
    }

    fn spreads(&self) -> bool {
        self.fault.spreads()
    }

    fn is_count(&self) -> bool {
        self.fault.is_count()
    }

    fn stored_count(&self) -> Result<u64> {
        self.fault.stored_count(&self.of)
    }

    fn counted_rows(&self) -> Result<Counting> {
        self.fault.counted_rows(&self.of)
    }

    fn correct_count(&self, step: i64) -> Result<()> {
        self.fault.correct_count(&self.of, step)
    }

    fn with_counts(&self, stored: u64, found: u64) -> Difference {
        difference(&self.of, self.fault.with_counts(stored, found))
    }
}
