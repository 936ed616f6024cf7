//! The port of the change log, for the embedded store: what is told of an event depends on what has become of its comment or post.

use kinfolk_core::graph::{Change, ChangeLog, LogSpan};
use kinfolk_core::{Position, Result};

use crate::Embedded;
use crate::log::EventBody;

impl ChangeLog for Embedded {
    fn span(&self) -> LogSpan {
        let trimmed = self.store.log.trimmed();
        LogSpan { epoch: self.store.identity.epoch, trimmed, newest: self.store.position() }
    }

    async fn changes(&self, after: Position, limit: usize) -> Result<Vec<Change>> {
        let events = self.store.log.read(after, self.store.position(), limit)?;
        let changes = events.into_iter().map(|event| {
            let is_current = match &event.body {
                EventBody::Thread(body) => {
                    let of = |(place, version)| self.store.threads.is_current(place, version);
                    body.version().map_or(Ok(false), of)?
                }
                EventBody::Posted(registration) if registration.post.payload.is_some() => {
                    self.store.posts.is_present(registration.post.id)?
                }
                _ => false,
            };
            Ok(event.into_change(is_current))
        });
        changes.collect()
    }
}
