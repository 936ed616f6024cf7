//! Compares inboxes with what their contract says: complete from their key on, nothing else, in order, bounded. One that
//! differs is dropped, and filled again when its user comes.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use kinfolk_core::feeds::{Delivery as Mode, PostKey};
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Error, Id, Result, Timestamp};

use super::Feeds;
use super::inbox::{Inbox, pack, unpack};
use super::snapshot::forget_stored;
use crate::posts::Record;
use crate::projection::{Difference, Fault, FaultOf, Suspects, difference};

/// How many posts that an inbox seems to lack are looked at again: one is enough to drop it.
const LACKING_MAX: usize = 8;

/// What is wrong with an inbox.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InboxFault {
    /// A post that belongs into it is not there.
    Lacks(PostKey),
    /// A key is there that is of no post that is pushed.
    Stray(PostKey),
    /// Keys are out of order or older than it reaches, or too many.
    Disorder,
}

/// A user's inbox, and what seems to be wrong with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongInbox {
    pub of: Id,
    pub fault: InboxFault,
}

impl fmt::Display for WrongInbox {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = self.of;
        match self.fault {
            InboxFault::Lacks(key) => write!(out, "the inbox of {of} lacks post {} of {}", key.id, key.since),
            InboxFault::Stray(key) => {
                write!(out, "the inbox of {of} has post {} of {}, which was not pushed", key.id, key.since)
            }
            InboxFault::Disorder => write!(out, "the inbox of {of} is out of order or too long"),
        }
    }
}

impl Fault for FaultOf<Feeds, WrongInbox> {
    fn recheck(&self, _: Timestamp) -> Result<Option<Difference>> {
        Ok(differs(&self.of, self.fault)?.then(|| difference(&self.of, self.fault)))
    }

    /// Drops the inbox, also where it is stored.
    fn repair(&self, _: Timestamp) -> Result<()> {
        self.of.inboxes.forget(self.fault.of);
        forget_stored(&self.of)
    }

    fn spreads(&self) -> bool {
        false
    }
}

/// Compares all inboxes. Deliveries and writes go on meanwhile: what seems to differ is looked at again.
pub(crate) fn compare(feeds: &Arc<Feeds>, suspects: &mut Suspects<'_>) -> Result<()> {
    let users = RefCell::new(Vec::new());
    let mut done = 0;
    feeds.inboxes.visit(
        |of, _| users.borrow_mut().push(of),
        || {
            for of in users.take() {
                done += 1;
                suspects.step("comparing inboxes", done);
                for fault in faults(feeds, of)? {
                    suspects.add(difference(feeds, WrongInbox { of, fault }))?;
                }
            }
            Ok::<(), Error>(())
        },
    )
}

/// What seems to be wrong with a user's inbox.
fn faults(feeds: &Feeds, of: Id) -> Result<Vec<InboxFault>> {
    let Some(inbox) = feeds.inboxes.look(of) else { return Ok(Vec::new()) };
    let capacity = feeds.inboxes.capacity;
    if !inbox.is_in_order(capacity) {
        return Ok(vec![InboxFault::Disorder]);
    }
    let mut faults = Vec::new();
    for key in inbox.keys().chunks(capacity.key_len).filter_map(|key| unpack(feeds.identity.ids, key)) {
        if is_stray(feeds, key)? {
            faults.push(InboxFault::Stray(key));
        }
    }
    let mut lacking = 0;
    for author in feeds.edges.index.of(EdgeKind::Follow).followees(of) {
        for post in feeds.posts.by_author(author, None) {
            let (key, mode) = post?;
            if !reaches(&inbox, key) || lacking == LACKING_MAX {
                break;
            }
            if mode == Mode::Push && !inbox.has(&pack(key), capacity.key_len) {
                lacking += 1;
                faults.push(InboxFault::Lacks(key));
            }
        }
    }
    Ok(faults)
}

fn reaches(inbox: &Inbox, key: PostKey) -> bool {
    inbox.complete_from().is_none_or(|from| pack(key).as_slice() >= from)
}

/// Whether a key is of no post that was pushed. Of a deleted one only its author and time are known.
fn is_stray(feeds: &Feeds, key: PostKey) -> Result<bool> {
    Ok(match feeds.posts.record(key.id)? {
        Some(Record::Present(post, mode)) => mode != Mode::Push || post.created_at != key.since,
        Some(Record::Deleted { created_at, .. }) => created_at != key.since,
        None => true,
    })
}

/// Whether something is still wrong with an inbox. Between two batches of the writer that is certain.
fn differs(feeds: &Feeds, WrongInbox { of, fault }: WrongInbox) -> Result<bool> {
    let capacity = feeds.inboxes.capacity;
    // Before the inbox: what is delivered in between is then in both, and not in neither.
    let due = match fault {
        InboxFault::Lacks(key) => is_due(feeds, of, key)?,
        InboxFault::Stray(_) | InboxFault::Disorder => false,
    };
    let Some(inbox) = feeds.inboxes.look(of) else { return Ok(false) };
    Ok(match fault {
        InboxFault::Lacks(key) => due && reaches(&inbox, key) && !inbox.has(&pack(key), capacity.key_len),
        InboxFault::Stray(key) => inbox.has(&pack(key), capacity.key_len) && is_stray(feeds, key)?,
        InboxFault::Disorder => !inbox.is_in_order(capacity),
    })
}

/// Whether a post must be in a user's inbox by now, if the inbox reaches that far.
fn is_due(feeds: &Feeds, of: Id, key: PostKey) -> Result<bool> {
    let Some(Record::Present(post, Mode::Push)) = feeds.posts.record(key.id)? else { return Ok(false) };
    let author = post.author;
    let undelivered = feeds.deliveries.undelivered(of, &[author]);
    Ok(post.created_at == key.since
        && feeds.edges.index.of(EdgeKind::Follow).contains(Edge { follower: of, followee: author })
        && !undelivered.posts.contains(&key)
        && !undelivered.authors.contains(&author))
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::{block_on, write_commands};
    use kinfolk_core::feeds::{FeedStore, NewPost, PostStore};
    use kinfolk_core::graph::{EdgeAction, EdgeCommand};
    use kinfolk_core::{Frontier, IdKind};

    use super::*;
    use crate::{Embedded, Settings};

    const READER: Id = Id::Integer(1);
    const AUTHOR: Id = Id::Integer(2);

    fn post(store: &Embedded) -> PostKey {
        let request =
            NewPost { id: None, author: AUTHOR, created_at: None, payload: None, idempotency_key: None };
        block_on(store.register(request)).unwrap().post.key()
    }

    fn delivered(store: &Embedded) {
        let feeds = &store.store.feeds;
        while feeds.deliveries.delivered() < store.store.position() {
            std::thread::yield_now();
        }
    }

    fn differences(store: &Embedded) -> Vec<String> {
        store.verify(false, &|_| {}).unwrap().differences
    }

    /// A store with a reader whose inbox is full, after it was trimmed.
    fn store() -> (tempfile::TempDir, Embedded, Vec<PostKey>) {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { inbox_entries: 5, ..Settings::default() };
        let store = Embedded::create(folder.path(), IdKind::Integer, settings).unwrap();
        let edge = Edge { follower: READER, followee: AUTHOR };
        let commands = vec![EdgeCommand { action: EdgeAction::Follow, edge }];
        write_commands(&store, EdgeKind::Follow, &commands, 9).unwrap();
        post(&store);
        assert_eq!(block_on(store.feed(READER, None, 9, Frontier::EMPTY)).unwrap().len(), 1);
        let posts = (0..8).map(|_| post(&store)).collect();
        delivered(&store);
        assert_eq!(differences(&store), Vec::<String>::new());
        (folder, store, posts)
    }

    #[test]
    fn what_an_inbox_lacks_or_has_too_much_is_found_and_repaired() {
        let (_folder, store, posts) = store();
        let inboxes = &store.store.feeds.inboxes;
        let stray = PostKey { since: Timestamp::MAX, id: posts[7].id };
        inboxes.remove(READER, &[pack(posts[6])]);
        inboxes.push(READER, &pack(stray));
        let found = differences(&store);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("was not pushed") && found[1].contains("lacks post"), "{found:?}");
        assert!(store.verify(true, &|_| {}).unwrap().repaired);
        assert!(!inboxes.has(READER), "it is made again");
        assert_eq!(differences(&store), Vec::<String>::new());
        assert_eq!(block_on(store.feed(READER, None, 9, Frontier::EMPTY)).unwrap().len(), 9);
        assert_eq!(differences(&store), Vec::<String>::new());
    }

    #[test]
    fn what_may_stay_in_an_inbox_is_no_difference() {
        let (_folder, store, posts) = store();
        // Below its reach, deleted, not followed any more.
        block_on(store.delete_post(posts[0].id)).unwrap();
        block_on(store.delete_post(posts[7].id)).unwrap();
        delivered(&store);
        store.store.feeds.inboxes.push(READER, &pack(posts[7]));
        assert_eq!(differences(&store), Vec::<String>::new());
        let edge = Edge { follower: READER, followee: AUTHOR };
        let commands = vec![EdgeCommand { action: EdgeAction::Unfollow, edge }];
        write_commands(&store, EdgeKind::Follow, &commands, 9).unwrap();
        assert_eq!(differences(&store), Vec::<String>::new());
    }

    /// A post that is registered, but not delivered yet, is not missing.
    #[test]
    fn what_is_to_be_delivered_is_no_difference() {
        let (_folder, store, posts) = store();
        let lacking = |key| WrongInbox { of: READER, fault: InboxFault::Lacks(key) };
        let shared = &store.store;
        shared.feeds.inboxes.remove(READER, &[pack(posts[7])]);
        assert!(differs(&shared.feeds, lacking(posts[7])).unwrap());
        let job = super::super::deliveries::Job::Push { author: AUTHOR, key: posts[7], after: None };
        let delivery =
            super::super::deliveries::Delivery { position: store.store.position(), at: Timestamp::MIN, job };
        shared.feeds.deliveries.stop();
        shared.feeds.deliveries.add(&[delivery], store.store.position());
        assert!(!differs(&shared.feeds, lacking(posts[7])).unwrap());
        shared.feeds.deliveries.finish(&delivery);
        assert!(differs(&shared.feeds, lacking(posts[7])).unwrap());
    }
}
