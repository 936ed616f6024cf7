//! The end of the change log, watched once for all event streams: however many there are, a store that has grown
//! has one waiter to wake. What was written is not here: streams read it themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kinfolk_core::{Error, Position};
use tokio::sync::watch;

use super::{Shared, Store};

/// Where the log ends, or nothing once the store can't tell any more.
pub type Newest = Option<Position>;

/// Tells streams that the log has grown. It watches from the first stream on.
#[derive(Debug)]
pub struct Tail {
    newest: watch::Sender<Newest>,
    watched: AtomicBool,
}

impl Default for Tail {
    fn default() -> Self {
        Self { newest: watch::Sender::new(Some(Position::START)), watched: AtomicBool::new(false) }
    }
}

impl Tail {
    fn tell(&self, newest: Newest) {
        self.newest.send_if_modified(|known| {
            let news = *known != newest;
            *known = newest;
            news
        });
    }
}

/// Follows the end of the log.
pub fn follow<S: Store>(shared: &Shared<S>) -> watch::Receiver<Newest> {
    if !shared.tail.watched.swap(true, Ordering::AcqRel) {
        tokio::spawn(watch(Arc::clone(shared)));
    }
    shared.tail.newest.subscribe()
}

async fn watch<S: Store>(shared: Shared<S>) {
    let Some(service) = shared.door.service() else { return };
    let store = service.graph.store();
    loop {
        let newest = store.span().newest;
        shared.tail.tell(Some(newest));
        let grown = tokio::select! {
            () = shared.stop.cancelled() => break,
            grown = store.visible(newest.next()) => grown,
        };
        match grown {
            Ok(()) => {}
            // It waits for a second before it says so. Others get their turn even if a store does not.
            Err(Error::NotYetVisible { .. }) => tokio::task::yield_now().await,
            Err(error) => {
                tracing::warn!(%error, "the change log can't be watched; its streams end");
                break;
            }
        }
    }
    shared.tail.tell(None);
}
