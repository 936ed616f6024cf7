//! A place where a projection seems to differ from the truth: how it is described, looked at again, and repaired. What can be wrong is
//! said by each room.

use std::fmt;
use std::sync::Arc;

use kinfolk_core::{Result, Timestamp};

/// For each row, whether it counts.
pub(crate) type Counting = Box<dyn Iterator<Item = Result<bool>> + Send>;

/// A fault of some projection.
pub(crate) type Difference = Arc<dyn Fault>;

/// Something that is wrong with a projection.
///
/// Nothing is repaired where it is found, since a write in the middle of a comparison can look like a fault: between two batches of the
/// writer it is looked at again.
pub(crate) trait Fault: fmt::Display + Send + Sync {
    /// The fault as it is now, if it is there. Between two batches that is certain; elsewhere a write may come in between. `now` is not
    /// earlier than any event.
    fn recheck(&self, now: Timestamp) -> Result<Option<Difference>>;

    /// Brings what differs back to the truth. Runs on the writer's thread.
    fn repair(&self, now: Timestamp) -> Result<()>;

    /// Whether other projections may be built from what differs.
    fn spreads(&self) -> bool {
        true
    }

    /// The count that is wrong, if the fault is one. Counting takes as long as there are many: it is left to a [`super::Recount`].
    fn count(&self) -> Option<&dyn Count> {
        None
    }
}

/// A count that a projection keeps.
pub(crate) trait Count: fmt::Display + Send + Sync {
    /// The count as it is stored.
    fn stored(&self) -> Result<u64>;

    /// The rows that are counted, as of now. Runs on the writer's thread.
    fn rows(&self) -> Result<Counting>;

    /// Adds to the stored count. Runs on the writer's thread.
    fn correct(&self, step: i64) -> Result<()>;

    /// The difference between what is stored and what was found.
    fn difference(&self, stored: u64, found: u64) -> Difference;
}

/// A count may be wrong as soon as it is suspected; only a recount says so, and corrects it.
impl<C: Count> Fault for C {
    fn recheck(&self, _: Timestamp) -> Result<Option<Difference>> {
        Ok(None)
    }

    fn repair(&self, _: Timestamp) -> Result<()> {
        Ok(())
    }

    fn count(&self) -> Option<&dyn Count> {
        Some(self)
    }
}

/// A fault, with the projection that has it.
pub(crate) struct FaultOf<P, F> {
    pub of: Arc<P>,
    pub fault: F,
}

impl<P, F: fmt::Display> fmt::Display for FaultOf<P, F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(out)
    }
}

/// The difference that a fault of a projection is.
pub(crate) fn difference<P: 'static, F: 'static>(of: &Arc<P>, fault: F) -> Difference
where
    FaultOf<P, F>: Fault,
{
    Arc::new(FaultOf { of: Arc::clone(of), fault })
}
