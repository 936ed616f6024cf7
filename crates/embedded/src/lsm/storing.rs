//! Changes of the trees' files. After one that failed, none is tried again: what a sync has once failed to make durable, a
//! later one may not make durable either, though it succeeds. The log has everything, and the next start stores it again.

use std::sync::{Arc, OnceLock};

use kinfolk_core::{Error, Result};

use crate::runtime::health::Health;

/// Whether files may be changed; shared by all trees of a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Storing {
    failure: Arc<OnceLock<String>>,
    health: Arc<Health>,
}

impl Storing {
    /// For a store that refuses writes after a change that failed.
    pub(crate) fn new(health: &Arc<Health>) -> Self {
        Self { failure: Arc::default(), health: Arc::clone(health) }
    }

    /// Why no more is stored, if a change has failed.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Changes files, unless a change has failed before or fails meanwhile: then nobody may count on this one. On a disk that is full
    /// it may be tried again.
    pub(crate) fn change<T>(&self, change: impl FnOnce() -> Result<T>) -> Result<T> {
        self.require_no_failure()?;
        let changed = change().inspect_err(|error| {
            if let Error::Storage { detail } = error {
                let reason = format!("row files could not be stored: {detail}");
                tracing::error!(reason, "no more rows are stored until the store is opened again");
                // At once: no write is acknowledged after another was refused for this.
                self.health.refuse_writes(&reason);
                let _ = self.failure.set(reason);
            }
        })?;
        self.require_no_failure()?;
        Ok(changed)
    }

    fn require_no_failure(&self) -> Result<()> {
        match self.failure.get() {
            Some(reason) => Err(Error::ReadOnly { reason: reason.clone() }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_tried_again_after_a_failure_of_the_storage() {
        let health = Arc::new(Health::default());
        let storing = Storing::new(&health);
        let other = storing.clone();
        let full = || Err::<(), _>(Error::StorageFull { detail: String::new() });
        assert!(matches!(storing.change(full), Err(Error::StorageFull { .. })));
        let damaged = || Err::<(), _>(Error::corrupt(String::new()));
        assert!(matches!(storing.change(damaged), Err(Error::Corrupt { .. })));
        assert_eq!(storing.change(|| Ok(7)).unwrap(), 7);
        assert_eq!(health.refusal(), None);
        let failed = || Err::<(), _>(Error::storage("the disk is gone"));
        assert!(matches!(storing.change(failed), Err(Error::Storage { .. })));
        assert!(other.failure().is_some_and(|reason| reason.contains("gone")));
        assert_eq!(health.refusal(), other.failure());
        let again = || -> Result<()> { panic!("it is tried again") };
        assert!(matches!(other.change(again), Err(Error::ReadOnly { reason }) if reason.contains("gone")));
    }

    #[test]
    fn a_change_beside_one_that_fails_is_not_counted_on() {
        let storing = Storing::new(&Arc::default());
        let beside = storing.clone();
        let failed = move || beside.change(|| Err::<(), _>(Error::storage("the disk is gone")));
        let changed = storing.change(|| {
            assert!(failed().is_err());
            Ok(())
        });
        assert!(matches!(changed, Err(Error::ReadOnly { reason }) if reason.contains("gone")));
    }
}
