//! Faults of feeds. A feed is made here as a real store makes it, from an inbox with a watermark and from what is pulled,
//! since most of what can go wrong has no place in a model that sorts all posts. The inbox is computed from the log anew
//! at every read; without a fault it gives what the model gives.

use std::collections::BTreeSet;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::feeds::{Delivery, Post, PostKey};
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Id};

use crate::faults::graph::reads::Page;
use crate::faults::{Fault, Planted};
use crate::model::Model;
use crate::{BACKFILL_POSTS, INBOX_ENTRIES};

/// So many of the newest events were not delivered when a store stopped.
const UNDELIVERED: usize = 2;

/// What a store that restarts wrongly has done to inboxes.
#[derive(Clone, Debug, Default)]
pub(in crate::faults) struct Restarted {
    /// Posts that were not delivered at a restart.
    undelivered: BTreeSet<Id>,
    /// How many events there were at each restart.
    lengths: BTreeSet<usize>,
}

impl Restarted {
    pub(in crate::faults) fn restart(&mut self, model: &Model) {
        let posted = |change: &Change| match &change.body {
            ChangeBody::Posted { post, .. } => Some(post.id),
            _ => None,
        };
        self.undelivered.extend(model.changes.iter().rev().take(UNDELIVERED).filter_map(posted));
        self.lengths.insert(model.changes.len());
    }
}

/// The pushed posts of a user's followees, in the order of their registration.
#[derive(Debug, Default)]
pub(in crate::faults) struct Inbox {
    pub entries: Vec<PostKey>,
    /// It has everything that is newer than this, and all there is without it.
    pub watermark: Option<PostKey>,
    /// Authors that were followed before.
    pub followed: BTreeSet<Id>,
}

impl Planted {
    pub(crate) fn feed(&self, model: &Model, of: Id, (after, limit): Page) -> Vec<Post> {
        if self.fault == Fault::FeedLagsBehind {
            let heard = model.changes.len().saturating_sub(1);
            let before = Model::replay(model.changes[..heard].iter().cloned());
            return before.feed(of, after, limit);
        }
        if self.fault == Fault::InboxTakesPageAlong && self.state().forgotten.remove(&of) {
            return Vec::new();
        }
        let inbox = self.inbox(model, of);
        let mut posts = self.pushed(model, of, &inbox);
        posts.extend(self.pulled(model, of, &inbox));
        let doubles = [
            Fault::FeedRedeliveryDoubles,
            Fault::FeedCrossingDoubles,
            Fault::FeedPushesPulled,
            Fault::RestartDeliversAgain,
        ];
        if !doubles.contains(&self.fault) {
            let mut seen = BTreeSet::new();
            posts.retain(|post| seen.insert(post.id));
        }
        if self.fault != Fault::FeedFilteredAfterPaging {
            posts.retain(|post| self.is_shown(model, of, post));
        }
        let mut page = self.page_of_feed(model, posts, (after, limit));
        page.retain(|post| self.is_shown(model, of, post));
        page
    }

    fn page_of_feed(&self, model: &Model, mut posts: Vec<Post>, (after, limit): Page) -> Vec<Post> {
        let arrival = |id: Id| {
            model.changes.iter().position(|change| match &change.body {
                ChangeBody::Posted { post, .. } => post.id == id,
                _ => false,
            })
        };
        let by_place = match self.fault {
            Fault::FeedInOrderOfArrival => {
                posts.sort_by_key(|post| std::cmp::Reverse(arrival(post.id)));
                true
            }
            fault => fault == Fault::FeedMergesWithoutTime,
        };
        if by_place {
            let place = after.and_then(|after| posts.iter().position(|post| post.key() == after));
            return posts.into_iter().skip(place.map_or(0, |place| place + 1)).take(limit).collect();
        }
        self.page_of_posts(model, posts, (after, limit))
    }

    /// Whether a post may be in a feed now.
    fn is_shown(&self, model: &Model, of: Id, post: &Post) -> bool {
        let deleted = model.posts.get(&post.id).is_none_or(|registered| registered.deleted);
        (!deleted || self.fault == Fault::FeedShowsDeleted)
            && (self.follows(model, of, post.author) || self.fault == Fault::FeedShowsUnfollowed)
    }

    fn follows(&self, model: &Model, of: Id, author: Id) -> bool {
        let edge = Edge { follower: of, followee: author };
        match self.fault {
            Fault::FeedShowsOwn => of == author || model.follows(of, author),
            Fault::FeedMixesKinds => EdgeKind::ALL.iter().any(|&kind| model.contains(kind, edge)),
            _ => model.follows(of, author),
        }
    }

    /// What the inbox has.
    fn pushed(&self, model: &Model, of: Id, inbox: &Inbox) -> Vec<Post> {
        let mut entries = inbox.entries.clone();
        if matches!(self.fault, Fault::FeedShowsUnfollowed | Fault::FeedFilteredAfterPaging) {
            let ever =
                model.posts.values().filter(|registered| inbox.followed.contains(&registered.post.author));
            entries.extend(ever.map(|registered| registered.post.key()));
        }
        if matches!(self.fault, Fault::FeedShowsDeleted | Fault::FeedFilteredAfterPaging) {
            let deleted = model.posts.values().filter(|registered| registered.deleted);
            let of_followees = deleted.filter(|registered| model.follows(of, registered.post.author));
            entries.extend(of_followees.map(|registered| registered.post.key()));
        }
        entries.sort();
        entries.iter().map(|key| model.posts[&key.id].post.clone()).collect()
    }

    /// What is looked for among the authors: pulled posts, and all that is beyond the inbox.
    fn pulled(&self, model: &Model, of: Id, inbox: &Inbox) -> Vec<Post> {
        let watermark = match self.fault {
            Fault::FeedEndsWithInbox => None,
            Fault::FeedShortInboxIsWhole if inbox.entries.len() < INBOX_ENTRIES => None,
            _ => inbox.watermark,
        };
        let beyond = |post: &Post| match (self.fault, watermark) {
            (_, None) => false,
            (Fault::FeedSkipsWhereInboxEnds, Some(watermark)) => post.created_at < watermark.since,
            (_, Some(watermark)) => post.key() >= watermark,
        };
        let mut found: Vec<Post> = Vec::new();
        for registered in model.posts.values() {
            let (post, recorded) = (&registered.post, registered.delivery == Delivery::Pull);
            let now = model.delivery_by(post.author) == Delivery::Pull;
            let pulled = match self.fault {
                Fault::FeedCrossingLoses => now,
                Fault::FeedCrossingDoubles => now || recorded,
                Fault::FeedPullsRecentOnly => recorded && is_recent(model, post),
                _ => recorded,
            };
            let followed = self.follows(model, of, post.author);
            if followed && !registered.deleted && (pulled || beyond(post)) {
                found.push(post.clone());
            }
        }
        found.sort_by_key(Post::key);
        found
    }

    /// The inbox of a user who has read its feed from the beginning.
    fn inbox(&self, model: &Model, of: Id) -> Inbox {
        self.hear_all(Inbox::default(), Model::default(), model, of)
    }

    /// Brings an inbox up to date, which has heard of everything in `past`.
    pub(in crate::faults) fn hear_all(
        &self,
        mut inbox: Inbox,
        mut past: Model,
        model: &Model,
        of: Id,
    ) -> Inbox {
        let restarted = self.state().restarted.clone();
        let heard = past.changes.len();
        for (index, change) in model.changes.iter().enumerate().skip(heard) {
            if self.fault == Fault::RestartForgetsWatermark && restarted.lengths.contains(&index) {
                inbox.watermark = None;
            }
            past.apply(change.clone());
            self.hear(&mut inbox, &past, of, (change, &restarted));
        }
        if self.fault == Fault::RestartForgetsWatermark && restarted.lengths.contains(&model.changes.len()) {
            inbox.watermark = None;
        }
        inbox
    }

    /// Brings an inbox up to date with a change; `past` has it already.
    fn hear(&self, inbox: &mut Inbox, past: &Model, of: Id, (change, restarted): (&Change, &Restarted)) {
        match &change.body {
            ChangeBody::Posted { post, delivery }
                if self.fault == Fault::InboxOfEverybody || self.follows(past, of, post.author) =>
            {
                let forgotten = self.fault == Fault::RestartForgetsUndelivered
                    && restarted.undelivered.contains(&post.id);
                let pulled_too = matches!(self.fault, Fault::FeedPushesPulled | Fault::InboxHasPulled);
                if (*delivery == Delivery::Push || pulled_too) && !forgotten {
                    self.deliver(inbox, post.key());
                }
                let again = match self.fault {
                    Fault::FeedRedeliveryDoubles | Fault::InboxHasTwice => {
                        change.position.sequence.0.is_multiple_of(3)
                    }
                    Fault::RestartDeliversAgain => restarted.undelivered.contains(&post.id),
                    _ => false,
                };
                if again && *delivery == Delivery::Push {
                    self.deliver(inbox, post.key());
                }
            }
            ChangeBody::PostDeleted { id, .. } => inbox.entries.retain(|entry| entry.id != *id),
            ChangeBody::Followed { edge, kind: EdgeKind::Follow } if edge.follower == of => {
                self.bring_in(inbox, past, edge.followee);
            }
            ChangeBody::Unfollowed { edge, kind: EdgeKind::Follow, .. } if edge.follower == of => {
                inbox.entries.retain(|entry| past.posts[&entry.id].post.author != edge.followee);
            }
            _ => {}
        }
    }

    fn deliver(&self, inbox: &mut Inbox, key: PostKey) {
        let beyond = inbox.watermark.is_some_and(|watermark| key >= watermark);
        let past = self.fault == Fault::FeedIgnoresPast && inbox.entries.iter().any(|&entry| entry < key);
        if beyond || past {
            return;
        }
        let is_oldest = inbox.entries.iter().all(|&entry| entry < key);
        if self.fault == Fault::FeedDropsPast && is_oldest && inbox.entries.len() >= INBOX_ENTRIES {
            return;
        }
        inbox.entries.push(key);
        if self.fault == Fault::InboxGrows {
            return;
        }
        if self.fault == Fault::TrimmedInboxIsEmpty && inbox.entries.len() > INBOX_ENTRIES {
            inbox.watermark = inbox.entries.drain(..).min();
        }
        while inbox.entries.len() > INBOX_ENTRIES {
            if self.fault == Fault::FeedTrimsByArrival {
                inbox.entries.remove(0);
                inbox.watermark = inbox.entries.iter().max().copied();
                continue;
            }
            let last = inbox.entries.iter().max().copied();
            inbox.entries.retain(|&entry| Some(entry) != last);
            inbox.watermark = last;
        }
    }

    /// Puts the newest posts of one who is followed now into an inbox.
    fn bring_in(&self, inbox: &mut Inbox, past: &Model, author: Id) {
        let again = !inbox.followed.insert(author);
        if self.fault == Fault::FeedFollowBringsNothing {
            return;
        }
        let mut keys: Vec<PostKey> = past
            .posts_by(author, None, usize::MAX)
            .iter()
            .filter(|post| past.posts[&post.id].delivery == Delivery::Push)
            .map(Post::key)
            .collect();
        let rest = keys.split_off(keys.len().min(BACKFILL_POSTS));
        let leaves_hole = self.fault == Fault::FeedBackfillLeavesHole
            || (self.fault == Fault::FeedRefollowLeavesHole && again);
        keys.into_iter().for_each(|key| self.deliver(inbox, key));
        if let Some(&newest) = rest.first().filter(|_| !leaves_hole) {
            let watermark = inbox.watermark.map_or(newest, |watermark| watermark.min(newest));
            inbox.watermark = Some(watermark);
            inbox.entries.retain(|&entry| entry < watermark);
        }
    }
}

/// Whether a post is among the newest three of its author.
fn is_recent(model: &Model, post: &Post) -> bool {
    model.posts_by(post.author, None, 3).contains(post)
}
