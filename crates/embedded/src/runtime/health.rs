//! Whether an open store works: why it refuses writes, if it does, and whether one of its threads has died. A store whose
//! storage failed goes on reading; one that has lost a thread should be opened again.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use kinfolk_core::{Error, Result};

/// The first failures; nothing mends them but another start.
#[derive(Debug, Default)]
pub(crate) struct Health {
    refusal: OnceLock<String>,
    death: OnceLock<String>,
}

impl Health {
    /// Refuses writes from now on. The first reason stays.
    pub(crate) fn refuse_writes(&self, reason: &str) {
        let _ = self.refusal.set(reason.to_owned());
    }

    /// Why writes are refused, if they are.
    pub(crate) fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }

    /// Returns an error if writes are refused.
    pub(crate) fn require_writable(&self) -> Result<()> {
        self.refusal().map_or(Ok(()), |reason| Err(Error::ReadOnly { reason: reason.to_owned() }))
    }

    /// Which thread has died, and why, if one has.
    pub(crate) fn death(&self) -> Option<&str> {
        self.death.get().map(String::as_str)
    }

    /// The error of a request that the writer can't take any more.
    pub(crate) fn gone(&self) -> Error {
        self.require_writable().err().unwrap_or(Error::Closed)
    }

    fn note_death(&self, thread: &str, cause: &str) {
        let reason = format!("the thread {thread} has died: {cause}");
        self.refuse_writes(&reason);
        tracing::error!(%reason, "the store has failed: writes are refused until it is opened again");
        let _ = self.death.set(reason);
    }

    /// Starts a thread of the store. If it panics, the store has failed.
    pub(crate) fn spawn<T: Send + 'static>(
        self: &Arc<Self>,
        name: &'static str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>> {
        let health = Arc::clone(self);
        let work = move || {
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
                health.note_death(name, cause_of(&*panic));
                resume_unwind(panic)
            })
        };
        let spawned = std::thread::Builder::new().name(name.into()).spawn(work);
        spawned.map_err(|error| Error::storage(format!("no thread could be started: {error}")))
    }
}

fn cause_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it panicked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_is_noticed_and_named() {
        let health = Arc::new(Health::default());
        health.spawn("kinfolk-good", || ()).unwrap().join().unwrap();
        assert!(health.death().is_none() && matches!(health.gone(), Error::Closed));
        let dead = health.spawn("kinfolk-bad", || panic!("number {}", 7)).unwrap();
        assert!(dead.join().is_err());
        assert_eq!(health.death(), Some("the thread kinfolk-bad has died: number 7"));
        assert_eq!(health.refusal(), health.death());
        health.refuse_writes("something else");
        assert!(matches!(health.gone(), Error::ReadOnly { reason } if reason.contains("number 7")));
    }
}
