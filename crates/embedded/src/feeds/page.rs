//! A page of a home feed: what is in the inbox, what is not delivered yet and what is pulled, merged; below the inbox's
//! reach, the posts of all whom the user follows. Every post is looked at before it is shown.

use std::sync::Arc;

use kinfolk_core::feed::{Delivery as Mode, Post, PostKey, PostState};
use kinfolk_core::graph::Edge;
use kinfolk_core::{Clock, EdgeKind, Error, Id, Result};

use super::deliveries::Undelivered;
use super::inbox::{Inbox, Key, pack, unpack};
use super::merge::{Merge, Source};
use crate::store::Store;

/// Whose feed, from where on, and how much.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    pub of: Id,
    pub after: Option<PostKey>,
    pub limit: usize,
}

/// A page of a user's feed.
pub fn page(
    store: &Store,
    clock: &Arc<dyn Clock>,
    wanted: Wanted,
    is_given_up: &dyn Fn() -> bool,
) -> Result<Vec<Post>> {
    Reader { store, wanted, is_given_up }.page(super::now(clock))
}

struct Reader<'a> {
    store: &'a Store,
    wanted: Wanted,
    is_given_up: &'a dyn Fn() -> bool,
}

impl<'a> Reader<'a> {
    fn page(&self, now: u64) -> Result<Vec<Post>> {
        let Wanted { of, after, limit } = self.wanted;
        let followees = self.store.index.followees(EdgeKind::Follow, of);
        if followees.is_empty() {
            return Ok(Vec::new());
        }
        // Before the inbox: what is delivered in between is then in both, and not in neither.
        let undelivered = self.store.feeds.deliveries.undelivered(of, &followees);
        let inbox = match self.store.feeds.inboxes.read(of, now) {
            Some(inbox) => inbox,
            None => self.fill(now)?,
        };
        let reach = inbox.complete_from().and_then(|key| unpack(self.store.identity.ids, key));
        let mut posts = Vec::with_capacity(limit);
        // In the order of lists, what is not after the reach is as new as it or newer.
        if reach.is_none_or(|reach| after.is_none_or(|after| after < reach)) {
            let sources = self.sources_within(&inbox, reach, &undelivered, &followees);
            self.show(Merge::new(sources)?, &mut posts)?;
        }
        if let Some(reach) = reach.filter(|_| posts.len() < limit) {
            let after = after.filter(|&after| after > reach).unwrap_or(reach);
            self.show(self.merge_authors(&followees, Some(after), |_| true)?, &mut posts)?;
        }
        Ok(posts)
    }

    /// Makes an inbox for the user, from the newest posts of all whom it follows.
    fn fill(&self, now: u64) -> Result<Inbox> {
        let (feeds, of) = (&self.store.feeds, self.wanted.of);
        let capacity = feeds.inboxes.capacity();
        feeds.inboxes.begin(of, now);
        // Read after the inbox is there: whoever is followed later is brought in by itself.
        let followees = self.store.index.followees(EdgeKind::Follow, of);
        let mut merge = self.merge_authors(&followees, None, |mode| mode == Mode::Push)?;
        let mut newest: Vec<Key> = Vec::with_capacity(capacity.entries);
        let mut more = false;
        while let Some(key) = merge.next()? {
            if newest.len() == capacity.entries {
                more = true;
                break;
            }
            newest.push(pack(key));
        }
        feeds.inboxes.fill(of, &newest, more);
        // What is here was complete a moment ago; what came meanwhile is in the shared one, for the next page.
        let mut inbox = Inbox::filling(now);
        inbox.fill(&newest, more, capacity);
        Ok(feeds.inboxes.read(of, now).unwrap_or(inbox))
    }

    /// Where posts within the reach of an inbox come from.
    fn sources_within(
        &self,
        inbox: &Inbox,
        reach: Option<PostKey>,
        undelivered: &Undelivered,
        followees: &[Id],
    ) -> Vec<Source<'a>> {
        let (after, ids) = (self.wanted.after, self.store.identity.ids);
        let is_wanted = move |key: &PostKey| {
            after.is_none_or(|after| *key > after) && reach.is_none_or(|reach| *key <= reach)
        };
        let key_len = self.store.feeds.inboxes.capacity().key_len;
        let delivered: Vec<PostKey> =
            inbox.keys().chunks(key_len).rev().filter_map(|key| unpack(ids, key)).filter(is_wanted).collect();
        let mut posted: Vec<PostKey> = undelivered.posts.iter().copied().filter(is_wanted).collect();
        posted.sort_unstable();
        let mut sources: Vec<Source<'a>> =
            vec![Box::new(delivered.into_iter().map(Ok)), Box::new(posted.into_iter().map(Ok))];
        let mut add = |author: Id, mode: Mode| {
            let posts = self.posts_of(author, after, move |other| other == mode);
            let within = posts.take_while(move |key| match key {
                Ok(key) => reach.is_none_or(|reach| *key <= reach),
                Err(_) => true,
            });
            sources.push(Box::new(within));
        };
        self.pulled(followees).into_iter().for_each(|author| add(author, Mode::Pull));
        undelivered.authors.iter().for_each(|&author| add(author, Mode::Push));
        sources
    }

    /// Those of the followees who have posts that are pulled.
    fn pulled(&self, followees: &[Id]) -> Vec<Id> {
        let pulled = self.store.posts.pulled_authors();
        let (few, many): (&[Id], &[Id]) =
            if pulled.len() < followees.len() { (&pulled, followees) } else { (followees, &pulled) };
        few.iter().copied().filter(|id| many.binary_search(id).is_ok()).collect()
    }

    fn posts_of(
        &self,
        author: Id,
        after: Option<PostKey>,
        is_wanted: impl Fn(Mode) -> bool + 'a,
    ) -> impl Iterator<Item = Result<PostKey>> + 'a {
        let posts = self.store.posts.by_author(author, after);
        posts.filter_map(move |post| match post {
            Ok((key, mode)) => is_wanted(mode).then_some(Ok(key)),
            Err(error) => Some(Err(error)),
        })
    }

    fn merge_authors(
        &self,
        authors: &[Id],
        after: Option<PostKey>,
        is_wanted: impl Fn(Mode) -> bool + Copy + 'a,
    ) -> Result<Merge<'a>> {
        let mut sources: Vec<Source<'a>> = Vec::with_capacity(authors.len());
        for &author in authors {
            self.require_wanted()?;
            sources.push(Box::new(self.posts_of(author, after, is_wanted)));
        }
        Merge::new(sources)
    }

    fn require_wanted(&self) -> Result<()> {
        if (self.is_given_up)() { Err(Error::Closed) } else { Ok(()) }
    }

    /// Adds posts to a page until it is full: those that are there, of authors who are followed.
    fn show(&self, mut merge: Merge<'_>, posts: &mut Vec<Post>) -> Result<()> {
        let Wanted { of, limit, .. } = self.wanted;
        while posts.len() < limit
            && let Some(key) = merge.next()?
        {
            self.require_wanted()?;
            if let Some(PostState::Present(post, _)) = self.store.posts.state(key.id)?
                && self.store.index.contains(EdgeKind::Follow, Edge { follower: of, followee: post.author })
            {
                posts.push(post);
            }
        }
        Ok(())
    }
}
