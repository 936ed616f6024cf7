//! What reads see: the newest visible position, and those who wait for a later one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kinfolk_core::Sequence;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// How long a read waits for a position.
const PATIENCE: Duration = Duration::from_secs(1);

/// The newest visible position.
#[derive(Debug)]
pub(crate) struct Visibility {
    newest: AtomicU64,
    is_released: AtomicBool,
    waiters: Mutex<Vec<Waiter>>,
}

#[derive(Debug)]
struct Waiter {
    position: Sequence,
    expiry: Instant,
    reached: oneshot::Sender<()>,
}

impl Visibility {
    /// Everything up to `newest` is visible.
    pub(crate) fn new(newest: Sequence) -> Self {
        Self { newest: newest.0.into(), is_released: AtomicBool::new(false), waiters: Mutex::default() }
    }

    /// The newest visible position.
    pub(crate) fn position(&self) -> Sequence {
        Sequence(self.newest.load(Ordering::Acquire))
    }

    /// Everything up to `position` is visible from now on.
    pub(crate) fn publish(&self, position: Sequence) {
        self.newest.store(position.0, Ordering::SeqCst);
        self.release_up_to(position);
    }

    /// Resolves when a position is visible; fails when it is not within a second.
    pub(crate) fn wait_for(&self, position: Sequence) -> oneshot::Receiver<()> {
        let (reached, waiting) = oneshot::channel();
        let expiry = Instant::now() + PATIENCE;
        self.waiters.lock().push(Waiter { position, expiry, reached });
        // It may have been published before the waiter was in the list.
        self.release_up_to(Sequence(self.newest.load(Ordering::SeqCst)));
        if self.is_released.load(Ordering::SeqCst) {
            self.waiters.lock().clear();
        }
        waiting
    }

    fn release_up_to(&self, position: Sequence) {
        for waiter in self.waiters.lock().extract_if(.., |waiter| waiter.position <= position) {
            let _ = waiter.reached.send(());
        }
    }

    /// When the next waiter's patience ends.
    pub(crate) fn next_expiry(&self) -> Option<Duration> {
        let waiters = self.waiters.lock();
        waiters.iter().map(|waiter| waiter.expiry.saturating_duration_since(Instant::now())).min()
    }

    /// Lets all go: nobody keeps the time any more, and later ones do not wait.
    pub(crate) fn release(&self) {
        self.is_released.store(true, Ordering::SeqCst);
        self.waiters.lock().clear();
    }

    /// Lets those go whose patience has ended.
    pub(crate) fn expire(&self) {
        let now = Instant::now();
        self.waiters.lock().retain(|waiter| waiter.expiry > now);
    }
}
