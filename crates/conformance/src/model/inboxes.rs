//! Inboxes by brute force: the model's own, and whether that of any store keeps its promises. How a store fills them is what
//! this does not know.

use std::thread;
use std::time::{Duration, Instant};

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::feeds::{Delivery, Inbox, Post, PostKey};
use kinfolk_core::graph::{EdgeAction, EdgeCommand};
use kinfolk_core::{EdgeKind, Frontier, Id};

use crate::INBOX_ENTRIES;
use crate::model::Model;
use crate::ports::InboxPorts;
use crate::random::compare::{Verdict, answer};
use crate::seen::Seen;
use crate::threads::block_on;
use crate::users::edge;
use crate::writes::write_with_positions;

/// Far longer than any delivery may take under test.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to leave deliveries alone before looking again.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Users who follow nobody.
const NOBODIES: (u64, u64) = (999_998, 999_999);

impl Model {
    /// The inbox of a user that is made now.
    pub fn inbox(&self, of: Id) -> Inbox {
        let mut entries = self.pushed(of);
        let is_whole = entries.len() <= INBOX_ENTRIES;
        entries.truncate(INBOX_ENTRIES);
        let complete_from = entries.last().copied().filter(|_| !is_whole);
        Inbox { entries, complete_from, as_of: self.frontier() }
    }

    /// All posts of a user's feed that are delivered by push, from new to old.
    pub(crate) fn pushed(&self, of: Id) -> Vec<PostKey> {
        let is_pushed = |post: &&Post| self.posts[&post.id].delivery == Delivery::Push;
        self.feed(of, None, usize::MAX).iter().filter(is_pushed).map(Post::key).collect()
    }

    /// Whether a user has followed or unfollowed an author after a position.
    fn has_decided_after(&self, seen: &Frontier, of: Id, author: Id) -> bool {
        let later = self.changes.iter().filter(|change| !seen.covers(change.position));
        later.filter_map(decision).any(|decision| decision == (of, author))
    }

    fn has_ever_followed(&self, of: Id, author: Id) -> bool {
        self.changes.iter().filter_map(decision).any(|decision| decision == (of, author))
    }
}

/// The follows and unfollows that were decided.
fn decision(change: &Change) -> Option<(Id, Id)> {
    match change.body {
        ChangeBody::Followed { kind: EdgeKind::Follow, edge }
        | ChangeBody::Unfollowed { kind: EdgeKind::Follow, edge, .. } => Some((edge.follower, edge.followee)),
        _ => None,
    }
}

/// Whether an inbox is correct according to a log that was read with the inbox or later.
pub(crate) fn check_inbox(model: &Model, of: Id, inbox: &Inbox) -> Verdict {
    let Inbox { entries, complete_from, as_of } = inbox;
    let wrong = |what: String| Err(format!("{what} in the inbox of {of}, which is {inbox:?}"));
    if entries.len() > INBOX_ENTRIES {
        return wrong(format!("more than {INBOX_ENTRIES} entries"));
    }
    if !entries.is_sorted_by(|one, next| one < next) {
        return wrong("out of order, or there twice, is an entry".to_owned());
    }
    let is_within = |key: &PostKey| complete_from.is_none_or(|from| *key <= from);
    for entry in entries {
        let registered = model.posts.get(&entry.id).filter(|registered| registered.post.key() == *entry);
        let belongs = registered.is_some_and(|registered| {
            registered.delivery == Delivery::Push && model.has_ever_followed(of, registered.post.author)
        });
        if !belongs || !is_within(entry) {
            return wrong(format!("{entry:?} has no place"));
        }
    }
    if !model.frontier().covers_all(as_of) {
        return wrong(format!("something after {:?}", model.position));
    }
    let registered_in_time = model.changes.iter().filter(|change| as_of.covers(change.position));
    for change in registered_in_time {
        let ChangeBody::Posted { post, delivery: Delivery::Push } = &change.body else { continue };
        let is_due = !model.posts[&post.id].deleted
            && is_within(&post.key())
            && model.follows(of, post.author)
            && !model.has_decided_after(as_of, of, post.author);
        if is_due && !entries.contains(&post.key()) {
            return wrong(format!("{post:?} is missing"));
        }
    }
    Ok(())
}

/// A user's inbox, if there is one, which must be right by the log; whatever others do meanwhile.
pub(crate) fn sound_inbox<S: InboxPorts>(store: &S, of: Id) -> Result<Option<Inbox>, String> {
    let found = inbox_and_log(store, of).map_err(|error| format!("the inbox of {of} failed: {error}"))?;
    let Some((inbox, model)) = found else { return Ok(None) };
    check_inbox(&model, of, &inbox).map(|()| Some(inbox))
}

/// A user's inbox, if it exists, and the log read after it.
pub(crate) fn inbox_and_log<S: InboxPorts>(
    store: &S,
    of: Id,
) -> kinfolk_core::Result<Option<(Inbox, Model)>> {
    let nothing_seen = Seen::new(store, Frontier::default());
    let Some(inbox) = block_on(nothing_seen.inbox(of))? else { return Ok(None) };
    // A write may have changed it a moment before it is visible: all are that were before this one, which changes nothing.
    let nothing = edge(store.id_kind(), NOBODIES.0, NOBODIES.1);
    let command = EdgeCommand { action: EdgeAction::Unfollow, edge: nothing };
    let (receipt, _) = write_with_positions(store, EdgeKind::Follow, &[command], 1)?;
    let log = block_on(Seen::new(store, receipt.position).whole_log())?;
    Ok(Some((inbox, Model::replay(log))))
}

/// A user's inbox, if there is one, once all that is visible now is delivered to it.
pub(crate) fn settled_inbox<S: InboxPorts>(store: &S, of: Id) -> Result<Option<Inbox>, String> {
    let newest = answer("span", store.span())?.newest;
    let begun = Instant::now();
    loop {
        let inbox = sound_inbox(store, of)?;
        match inbox {
            Some(inbox) if !inbox.as_of.covers_all(&newest) => {
                if begun.elapsed() > PATIENCE {
                    return Err(format!("the inbox of {of} stays at {:?}, not {newest:?}", inbox.as_of));
                }
            }
            settled => return Ok(settled),
        }
        thread::park_timeout(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::feeds::NewPost;
    use kinfolk_core::graph::{FollowerCommand, WriteRequest};
    use kinfolk_core::{IdKind, Timestamp};

    use super::*;
    use crate::model::posts::RequestState;
    use crate::users::START;

    const AUTHOR: Id = Id::Integer(1);
    const READER: Id = Id::Integer(9);

    /// The reader follows the author, who has posted more than an inbox holds.
    fn model() -> Model {
        let (mut model, mut request_state) = (Model::default(), RequestState::default());
        let commands = vec![FollowerCommand { action: EdgeAction::Follow, followee: AUTHOR }];
        let request = WriteRequest {
            kind: EdgeKind::Follow,
            follower: READER,
            commands: commands.into(),
            following_limit: 9,
        };
        model.write(&request, Timestamp::from_millis(5)).unwrap();
        for millis in 0..=INBOX_ENTRIES as u64 {
            let now = Timestamp::from_millis(10 + millis);
            let request =
                NewPost { id: None, author: AUTHOR, created_at: None, payload: None, idempotency_key: None };
            let generated = request_state.generate_id(&model, IdKind::Integer, now);
            model.register(&mut request_state, &request, generated, now).unwrap();
        }
        model
    }

    #[test]
    fn every_promise_can_be_broken() {
        let model = model();
        let inbox = model.inbox(READER);
        assert_eq!(
            (inbox.entries.len(), inbox.complete_from),
            (INBOX_ENTRIES, inbox.entries.last().copied())
        );
        check_inbox(&model, READER, &inbox).unwrap();
        let broken = |distort: &dyn Fn(&mut Inbox)| {
            let mut inbox = inbox.clone();
            distort(&mut inbox);
            check_inbox(&model, READER, &inbox).unwrap_err()
        };
        assert!(broken(&|inbox| inbox.entries = model.pushed(READER)).contains("more than"));
        assert!(broken(&|inbox| inbox.entries.swap(0, 1)).contains("out of order"));
        assert!(broken(&|inbox| _ = inbox.entries.remove(2)).contains("missing"));
        assert!(broken(&|inbox| inbox.complete_from = None).contains("missing"));
        assert!(broken(&|inbox| inbox.complete_from = Some(inbox.entries[0])).contains("no place"));
        assert!(broken(&|inbox| inbox.entries[0].id = AUTHOR).contains("no place"));
        // What is not promised yet may be missing.
        let early = Inbox { entries: Vec::new(), complete_from: None, as_of: START.next().into() };
        check_inbox(&model, READER, &early).unwrap();
    }
}
