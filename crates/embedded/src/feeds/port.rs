//! Inboxes as others may look at them. Pages read them in another way, together with what is not delivered yet.

use kinfolk_core::feed::{Inbox, InboxStore};
use kinfolk_core::{Id, Result};

use super::inbox::unpack;
use crate::Embedded;

impl InboxStore for Embedded {
    async fn inbox(&self, of: Id) -> Result<Option<Inbox>> {
        let (feeds, ids) = (&self.store.feeds, self.store.identity.ids);
        // Before the inbox: what is delivered in between is then in it, and not promised.
        let as_of = feeds.deliveries.delivered();
        Ok(feeds.inboxes.look(of).map(|inbox| {
            let keys = inbox.keys().chunks(feeds.inboxes.capacity().key_len);
            let entries = keys.rev().filter_map(|key| unpack(ids, key)).collect();
            Inbox { entries, complete_from: inbox.complete_from().and_then(|key| unpack(ids, key)), as_of }
        }))
    }

    async fn forget_inbox(&self, of: Id) -> Result<()> {
        self.store.feeds.inboxes.forget(of);
        Ok(())
    }
}
