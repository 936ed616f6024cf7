//! Work that goes on until it is dropped. If it panics, that is said, and it begins again.

use std::future::Future;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinSet};

/// The pause before work that has panicked begins again.
const AFTER_PANIC: Duration = Duration::from_secs(1);

/// Work in the background.
pub(crate) struct Background(Option<AbortHandle>);

impl Background {
    /// Starts work on a runtime, and again whenever it panics.
    pub(crate) fn start<F: Future<Output = ()> + Send + 'static>(
        runtime: &Handle,
        name: &'static str,
        work: impl Fn() -> F + Send + 'static,
    ) -> Self {
        let keep = async move {
            // Ended together with this task.
            let mut task = JoinSet::new();
            loop {
                task.spawn(work());
                match task.join_next().await {
                    Some(Err(error)) if error.is_panic() => {
                        tracing::error!(name, %error, "work in the background has panicked, and begins again");
                        tokio::time::sleep(AFTER_PANIC).await;
                    }
                    _ => return,
                }
            }
        };
        Self(Some(runtime.spawn(keep).abort_handle()))
    }

    /// Lets it go on until the runtime ends.
    pub(crate) fn detach(mut self) {
        self.0 = None;
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_panics_begins_again_and_what_is_dropped_ends() {
        let (starts, went_on) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let (counted, told) = (Arc::clone(&starts), Arc::clone(&went_on));
        let background = Background::start(&Handle::current(), "test", move || {
            let (counted, told) = (Arc::clone(&counted), Arc::clone(&told));
            async move {
                assert!(counted.fetch_add(1, Ordering::Relaxed) > 0, "the first time");
                told.notify_one();
                std::future::pending::<()>().await;
            }
        });
        went_on.notified().await;
        assert_eq!(starts.load(Ordering::Relaxed), 2);
        drop(background);
        tokio::time::sleep(AFTER_PANIC * 2).await;
        assert_eq!(Arc::strong_count(&starts), 1, "its work is gone");
    }
}
