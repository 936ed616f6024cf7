//! Invalidations that a connection has not sent yet. Filled by any thread, emptied by the connection's own.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use kinfolk_core::Position;
use parking_lot::Mutex;

/// With more keys than this, the client drops everything instead: a client that does not read costs no more.
const KEYS_MAX: usize = 10_000;

/// A key that has changed.
#[derive(Clone, Debug)]
pub(super) struct Invalidation {
    /// As the client wrote it.
    pub name: Arc<[u8]>,
    /// The change; none if the key was only forgotten.
    pub position: Option<Position>,
}

/// What a client has to drop from its cache.
#[derive(Debug)]
pub(super) enum Pending {
    Keys(Vec<Invalidation>),
    Everything,
}

impl Default for Pending {
    fn default() -> Self {
        Self::Keys(Vec::new())
    }
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Keys(keys) if keys.is_empty())
    }
}

/// What one connection has to send.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pending: Mutex<Pending>,
    waker: AtomicWaker,
}

impl Outbox {
    pub(crate) fn add(&self, invalidation: Invalidation) {
        let mut pending = self.pending.lock();
        match &mut *pending {
            Pending::Everything => return,
            Pending::Keys(keys) if keys.len() < KEYS_MAX => keys.push(invalidation),
            Pending::Keys(_) => *pending = Pending::Everything,
        }
        drop(pending);
        self.waker.wake();
    }

    pub(crate) fn add_everything(&self) {
        *self.pending.lock() = Pending::Everything;
        self.waker.wake();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.lock().is_empty()
    }

    pub(crate) fn take(&self) -> Pending {
        std::mem::take(&mut *self.pending.lock())
    }

    /// Ready when there is something to send.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        // In this order nothing is missed.
        self.waker.register(context.waker());
        if self.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_does_not_read_has_to_drop_everything() {
        let outbox = Outbox::default();
        let invalidation = Invalidation { name: b"following:1"[..].into(), position: None };
        for _ in 0..KEYS_MAX {
            outbox.add(invalidation.clone());
        }
        outbox.add(invalidation.clone());
        assert!(matches!(outbox.take(), Pending::Everything));
        assert!(outbox.take().is_empty());
        outbox.add(invalidation);
        assert!(matches!(outbox.take(), Pending::Keys(keys) if keys.len() == 1));
    }
}
