//! A page of a home feed: what is in the inbox, what is not delivered yet and what is pulled, merged; below the inbox's
//! reach, the posts of all followees. Every post is read before it is shown.

use std::sync::Arc;

use kinfolk_core::feeds::{Delivery as Mode, Post, PostKey, PostState};
use kinfolk_core::graph::Edge;
use kinfolk_core::{Clock, EdgeKind, Id, Result};

use super::Feeds;
use super::deliveries::Undelivered;
use super::inbox::{Inbox, unpack};
use super::merge::{Merge, Source};
use super::newest_pushed;
use crate::edges::require_wanted;

/// Whose feed, from where on, and how much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub of: Id,
    pub after: Option<PostKey>,
    pub limit: usize,
}

/// A page of a user's feed.
pub(crate) fn page(
    feeds: &Feeds,
    clock: &Arc<dyn Clock>,
    wanted: Wanted,
    is_given_up: &dyn Fn() -> bool,
) -> Result<Vec<Post>> {
    Reader { feeds, wanted, is_given_up }.page(clock.now().millis())
}

struct Reader<'a> {
    feeds: &'a Feeds,
    wanted: Wanted,
    is_given_up: &'a dyn Fn() -> bool,
}

impl<'a> Reader<'a> {
    fn page(&self, now: u64) -> Result<Vec<Post>> {
        let Wanted { of, after, limit } = self.wanted;
        let followees = self.feeds.edges.index.of(EdgeKind::Follow).followees(of);
        if followees.is_empty() {
            return Ok(Vec::new());
        }
        // Before the inbox: what is delivered in between is then in both, and not in neither.
        let undelivered = self.feeds.deliveries.undelivered(of, &followees);
        let inbox = match self.feeds.inboxes.read(of, now) {
            Some(inbox) => inbox,
            None => self.fill(now)?,
        };
        let reach = inbox.complete_from().and_then(|key| unpack(self.feeds.identity.ids, key));
        let mut posts = Vec::with_capacity(limit);
        // In the order of lists, what is not after the reach is as new as it or newer.
        if reach.is_none_or(|reach| after.is_none_or(|after| after < reach)) {
            let sources = self.sources_within(&inbox, reach, &undelivered, &followees);
            self.show(Merge::new(sources)?, &mut posts)?;
        }
        if let Some(reach) = reach.filter(|_| posts.len() < limit) {
            let after = after.filter(|&after| after > reach).unwrap_or(reach);
            self.show(self.merge_authors(&followees, Some(after))?, &mut posts)?;
        }
        Ok(posts)
    }

    /// Makes an inbox for the user, from the newest posts of all followees.
    fn fill(&self, now: u64) -> Result<Inbox> {
        let (feeds, of) = (self.feeds, self.wanted.of);
        let capacity = feeds.inboxes.capacity;
        let ticket = feeds.inboxes.begin(of, now);
        // Read after the inbox is there: the posts of later followees are brought in by themselves.
        let followees = self.feeds.edges.index.of(EdgeKind::Follow).followees(of);
        let mut merge = self.merge_authors(&followees, None)?;
        let (newest, from) = newest_pushed(capacity.entries, || {
            require_wanted(self.is_given_up)?;
            merge.next()
        })?;
        feeds.inboxes.fill(of, ticket, &newest, from.as_deref());
        // What is here was complete a moment ago; what came meanwhile is in the shared one, for the next page.
        let mut inbox = Inbox::filling(now, ticket);
        inbox.fill(ticket, &newest, from.as_deref(), capacity);
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
        let (after, ids) = (self.wanted.after, self.feeds.identity.ids);
        let is_wanted = move |key: &PostKey| {
            after.is_none_or(|after| *key > after) && reach.is_none_or(|reach| *key <= reach)
        };
        let key_len = self.feeds.inboxes.capacity.key_len;
        let delivered: Vec<PostKey> =
            inbox.keys().chunks(key_len).rev().filter_map(|key| unpack(ids, key)).filter(is_wanted).collect();
        let mut posted: Vec<PostKey> = undelivered.posts.iter().copied().filter(is_wanted).collect();
        posted.sort_unstable();
        let pushed = |key| Ok((key, Mode::Push));
        let mut sources: Vec<Source<'a>> =
            vec![Box::new(delivered.into_iter().map(pushed)), Box::new(posted.into_iter().map(pushed))];
        let mut add = |author: Id, mode: Mode| {
            let posts = self.feeds.posts.by_author(author, after);
            // No further than the inbox reaches, whatever is found there.
            let within = posts.take_while(move |post| match post {
                Ok((key, _)) => reach.is_none_or(|reach| *key <= reach),
                Err(_) => true,
            });
            sources
                .push(Box::new(within.filter(move |post| post.as_ref().map_or(true, |post| post.1 == mode))));
        };
        self.pulled(followees).into_iter().for_each(|author| add(author, Mode::Pull));
        undelivered.authors.iter().for_each(|&author| add(author, Mode::Push));
        sources
    }

    /// Those of the followees who have posts that are pulled.
    fn pulled(&self, followees: &[Id]) -> Vec<Id> {
        let pulled = self.feeds.posts.pulled_authors();
        let (few, many): (&[Id], &[Id]) =
            if pulled.len() < followees.len() { (&pulled, followees) } else { (followees, &pulled) };
        few.iter().copied().filter(|id| many.binary_search(id).is_ok()).collect()
    }

    fn merge_authors(&self, authors: &[Id], after: Option<PostKey>) -> Result<Merge<'a>> {
        let mut sources: Vec<Source<'a>> = Vec::with_capacity(authors.len());
        for &author in authors {
            require_wanted(self.is_given_up)?;
            sources.push(Box::new(self.feeds.posts.by_author(author, after)));
        }
        Merge::new(sources)
    }

    fn follows(&self, author: Id) -> bool {
        let edge = Edge { follower: self.wanted.of, followee: author };
        self.feeds.edges.index.of(EdgeKind::Follow).contains(edge)
    }

    /// Adds posts to a page until it is full: those that are there, of authors who are followed.
    fn show(&self, mut merge: Merge<'_>, posts: &mut Vec<Post>) -> Result<()> {
        let limit = self.wanted.limit;
        while posts.len() < limit
            && let Some((key, _)) = merge.next()?
        {
            require_wanted(self.is_given_up)?;
            if let Some(PostState::Present(post, _)) = self.feeds.posts.state(key.id)?
                && self.follows(post.author)
            {
                posts.push(post);
            }
        }
        Ok(())
    }
}
