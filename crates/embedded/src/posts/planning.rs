//! Writes of posts in a batch: what the planner of `core` reads, and its events as the log keeps them.

use std::sync::Arc;

use kinfolk_core::feeds::{PostEvent, PostPlanner, PostState, PostView};
use kinfolk_core::graph::EdgeEvent;
use kinfolk_core::{EdgeKind, Id, KeyHash, Planned, Result, Timestamp};

use crate::engine::batch::{Batch, Decided};
use crate::engine::store::Store;
use crate::log::{Event, EventBody};

/// What is visible of posts and follower counts, and the events that are not visible yet.
pub(crate) struct VisiblePosts<'a> {
    pub store: &'a Store,
    /// Of the batch before.
    earlier: &'a [Event],
    /// Of this batch.
    events: &'a [Event],
}

impl<'a> VisiblePosts<'a> {
    /// A batch is planned on these, with its own events so far.
    pub(crate) fn new(store: &'a Store, earlier: Option<&'a Decided>, events: &'a [Event]) -> Self {
        Self { store, earlier: earlier.map_or(&[], |earlier| &earlier.events), events }
    }
}

impl PostView for VisiblePosts<'_> {
    fn state(&self, id: Id) -> Result<Option<PostState>> {
        self.store.posts.state(id)
    }

    fn keyed(&self, author: Id, key: &KeyHash, now: Timestamp) -> Result<Option<Id>> {
        self.store.posts.keys.find(&self.store.posts.tree, author, key, now)
    }

    fn followers(&self, author: Id) -> u64 {
        self.store.edges.index.of(EdgeKind::Follow).counts(author).followers
    }

    fn pending_len(&self) -> usize {
        self.earlier.len() + self.events.len()
    }

    fn pending_edges(&self, skip: usize) -> impl Iterator<Item = EdgeEvent> {
        self.earlier.iter().chain(self.events).skip(skip).filter_map(Event::edge_event)
    }
}

impl Batch<'_> {
    /// Plans a request about posts.
    pub(crate) fn plan_post<T>(
        &mut self,
        plan: impl FnOnce(PostPlanner<'_, VisiblePosts<'_>>) -> Result<Planned<T, PostEvent>>,
    ) -> Result<T> {
        let Planned { result, event } = plan(self.post_planner())?;
        self.extend(event.map(|event| match event {
            PostEvent::Registered(registration) => EventBody::Posted(Arc::new(registration)),
            PostEvent::Deleted { id, author, created_at } => {
                EventBody::PostDeleted { id, author, created_at }
            }
        }));
        Ok(result)
    }

    fn post_planner(&mut self) -> PostPlanner<'_, VisiblePosts<'_>> {
        PostPlanner {
            last: self.position(),
            view: VisiblePosts::new(self.store, self.earlier, &self.events),
            earlier: self.earlier.map(|earlier| &earlier.pending.posts),
            planned: &mut self.pending.posts,
            ids: &mut self.ids.posts,
            fan_out_threshold: self.store.settings.fan_out_threshold,
            now: self.now,
            floor: self.floor,
        }
    }
}
