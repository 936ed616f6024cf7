//! The end of the change log, watched once for all event streams: however many there are, a store that has grown
//! has one waiter to wake. What was written is not here: streams read it themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kinfolk_core::{Error, Frontier, Result};
use tokio::sync::watch;

use super::{Shared, Store};

/// How long the watch rests at most when the log can't be reached.
const REST_MAX: Duration = Duration::from_secs(1);

/// What streams learn about the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Growth {
    /// It may have grown.
    #[default]
    Grown,
    /// It is not watched any more.
    Ended,
}

/// Notifies streams when the log has grown. It watches from the first stream on.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    growth: watch::Sender<Growth>,
    has_watcher: AtomicBool,
}

impl Tail {
    /// Follows the end of the log; `start` starts a watch, and is called if none goes on.
    fn follow(&self, start: impl FnOnce()) -> watch::Receiver<Growth> {
        // Before the look for a watcher: the end of the one that is found is not missed.
        let growth = self.growth.subscribe();
        if !self.has_watcher.swap(true, Ordering::AcqRel) {
            // Before the start: a watch that ends at once has the last word.
            self.announce(Growth::Grown);
            start();
        }
        growth
    }

    fn announce(&self, growth: Growth) {
        self.growth.send_replace(growth);
    }
}

/// Follows the end of the log.
pub(crate) fn follow<S: Store>(shared: &Shared<S>) -> watch::Receiver<Growth> {
    shared.tail.follow(|| drop(tokio::spawn(watch(Arc::clone(shared)))))
}

/// A watch that goes on. However it ends, also by a panic, its streams learn of it.
struct Watching<'a>(&'a Tail);

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        // In this order no stream waits for a watch that has ended; one that has just started another may end, and comes back.
        self.0.has_watcher.store(false, Ordering::Release);
        self.0.announce(Growth::Ended);
    }
}

async fn watch<S: Store>(shared: Shared<S>) {
    let _watching = Watching(&shared.tail);
    let grow = async {
        let mut newest = None;
        loop {
            match grown(&shared, newest.as_ref()).await {
                Ok(grown) => {
                    // The first look counts as growth: a stream may have read before it.
                    newest = Some(grown);
                    shared.tail.announce(Growth::Grown);
                }
                Err(error) => {
                    let Some(rest) = rest_after(&error) else { return error };
                    tokio::time::sleep(rest).await;
                }
            }
        }
    };
    if let Some(error) = shared.stop.run_until_cancelled(grow).await {
        tracing::warn!(%error, "the change log can't be watched; its streams end");
    }
}

/// How long to rest before the next look, if the error may pass.
fn rest_after(error: &Error) -> Option<Duration> {
    match error {
        Error::Unavailable { retry_after, .. } | Error::Overloaded { retry_after } => {
            Some((*retry_after).min(REST_MAX))
        }
        Error::TimedOut | Error::NotYetVisible { .. } => Some(REST_MAX),
        _ => None,
    }
}

/// Where the log ends, once that is further than it was.
async fn grown<S: Store>(shared: &Shared<S>, newest: Option<&Frontier>) -> Result<Frontier> {
    let service = shared.door.service().ok_or(Error::Loading)?;
    match newest {
        None => service.log_end().await,
        Some(newest) => service.log_end_after(newest).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A watch that ends at once.
    fn end_at_once(tail: &Tail) {
        drop(Watching(tail));
    }

    #[test]
    fn a_stream_learns_of_a_watch_that_ends_while_it_begins_to_follow() {
        let tail = Tail::default();
        let growth = tail.follow(|| end_at_once(&tail));
        assert!(growth.has_changed().unwrap() && *growth.borrow() == Growth::Ended);
    }

    #[test]
    fn a_stream_that_starts_a_watch_does_not_take_the_end_of_the_last_one_for_its_own() {
        let tail = Tail::default();
        tail.follow(|| end_at_once(&tail));
        let growth = tail.follow(|| {});
        assert_eq!(*growth.borrow(), Growth::Grown);
    }

    #[test]
    fn all_streams_share_one_watch() {
        let tail = Tail::default();
        let first = tail.follow(|| {});
        let second = tail.follow(|| panic!("there is a watch already"));
        end_at_once(&tail);
        assert_eq!([*first.borrow(), *second.borrow()], [Growth::Ended; 2]);
    }

    #[test]
    fn a_watch_rests_on_errors_that_pass() {
        let unavailable = |retry_after| Error::Unavailable { what: "a host".to_owned(), retry_after };
        let short = Duration::from_millis(20);
        assert_eq!(rest_after(&unavailable(short)), Some(short));
        assert_eq!(rest_after(&Error::Overloaded { retry_after: short }), Some(short));
        assert_eq!(rest_after(&unavailable(Duration::from_secs(60))), Some(REST_MAX));
        assert_eq!(rest_after(&Error::TimedOut), Some(REST_MAX));
        assert_eq!(rest_after(&Error::Storage { detail: "the disk failed".to_owned() }), None);
    }

    #[test]
    fn streams_learn_of_a_watch_that_panics() {
        let tail = Tail::default();
        tail.has_watcher.store(true, Ordering::Release);
        let growth = tail.growth.subscribe();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _watching = Watching(&tail);
            panic!("as the test says");
        }));
        assert!(panicked.is_err());
        assert!(growth.has_changed().unwrap() && *growth.borrow() == Growth::Ended);
        assert!(!tail.has_watcher.load(Ordering::Acquire));
    }
}
