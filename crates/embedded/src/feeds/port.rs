//! The ports of feeds and inboxes, for the embedded store. Inboxes are as others may look at them: pages read them in another
//! way, together with what is not delivered yet.

use std::sync::Arc;

use kinfolk_core::feeds::{FeedStore, Inbox, InboxStore, Post, PostKey};
use kinfolk_core::{Frontier, Id, Result, Shard};

use super::Wanted;
use super::inbox::unpack;
use crate::Embedded;
use crate::edges::index::Scratch;

impl FeedStore for Embedded {
    async fn feed(
        &self,
        of: Id,
        after: Option<PostKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Post>> {
        self.reach(at_least).await?;
        let (feeds, clock) = (Arc::clone(&self.store.feeds), Arc::clone(&self.clock));
        let work = move |_: &mut Scratch, is_given_up: &dyn Fn() -> bool| {
            super::page(&feeds, &clock, Wanted { of, after, limit }, is_given_up)
        };
        self.store.workers.run(of, work).await
    }
}

impl InboxStore for Embedded {
    async fn inbox(&self, of: Id, at_least: &Frontier) -> Result<Option<Inbox>> {
        self.reach(at_least).await?;
        let (feeds, ids) = (&self.store.feeds, self.store.identity.ids);
        // Before the inbox: what is delivered in between is then in it, and not promised.
        let as_of = Frontier::from(feeds.deliveries.delivered().on(Shard::ONLY));
        Ok(feeds.inboxes.look(of).map(|inbox| {
            let keys = inbox.keys().chunks(feeds.inboxes.capacity.key_len);
            let entries = keys.rev().filter_map(|key| unpack(ids, key)).collect();
            Inbox { entries, complete_from: inbox.complete_from().and_then(|key| unpack(ids, key)), as_of }
        }))
    }

    async fn drop_inbox(&self, of: Id) -> Result<()> {
        self.store.feeds.inboxes.forget(of);
        Ok(())
    }
}
