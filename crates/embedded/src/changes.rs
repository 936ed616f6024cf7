//! The port of the change log, for the embedded store: an event's payload is shown only while its comment or post has it.

use kinfolk_core::changes::{ChangeLog, LogPage, LogSpan};
use kinfolk_core::{Error, Frontier, Result, Shard};

use crate::Embedded;
use crate::log::EventBody;

impl ChangeLog for Embedded {
    async fn span(&self) -> Result<LogSpan> {
        let trimmed = self.store.log.trimmed().on(Shard::ONLY).into();
        Ok(LogSpan { epoch: self.store.identity.epoch, trimmed, newest: self.frontier() })
    }

    async fn changes(&self, after: &Frontier, limit: usize) -> Result<LogPage> {
        self.reach(after).await?;
        let named = after.get(Shard::ONLY);
        let (start, events) = loop {
            let start = named.unwrap_or_else(|| self.store.log.trimmed());
            match self.store.log.read(start, self.store.position(), limit) {
                // The oldest kept was trimmed meanwhile, and another is the oldest now.
                Err(Error::PositionExpired { .. }) if named.is_none() => {}
                read => break (start, read?),
            }
        };
        let end = events.last().map_or(start, |event| event.position);
        let changes = events.into_iter().map(|event| {
            let is_current = match &event.body {
                EventBody::Comment(body) => {
                    let of = |(head, version)| self.store.comments.is_current(head, version);
                    body.version().map_or(Ok(false), of)?
                }
                EventBody::Posted(registration) if registration.post.payload.is_some() => {
                    self.store.posts.is_present(registration.post.id)?
                }
                _ => false,
            };
            Ok(event.into_change(is_current))
        });
        let changes = changes.collect::<Result<_>>()?;
        let mut next = after.clone();
        next.advance(end.on(Shard::ONLY));
        Ok(LogPage { changes, next })
    }

    async fn wait_for_changes(&self, after: &Frontier) -> Result<bool> {
        let after = after.get(Shard::ONLY).unwrap_or_else(|| self.store.log.trimmed());
        match self.reach(&after.next().on(Shard::ONLY).into()).await {
            Ok(()) => Ok(true),
            Err(Error::NotYetVisible { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
