//! Writes of comments in a batch: what the planner of `core` reads, and its events as the log keeps them.

use std::sync::Arc;

use kinfolk_core::comments::{Comment, CommentEvent, CommentId, CommentPlanner, CommentView, Parent};
use kinfolk_core::feeds::{PlannedPostView, PlannedPosts, PostState};
use kinfolk_core::{Id, KeyHash, Planned, Result, Timestamp};

use crate::engine::batch::Batch;
use crate::log::{CommentHead, EventBody, LoggedBody, LoggedCommentEvent};
use crate::posts::VisiblePosts;

/// What is visible of comments and posts, and what is planned about posts.
pub(crate) struct VisibleThreads<'a> {
    posts: VisiblePosts<'a>,
    earlier: Option<&'a PlannedPosts>,
    planned: &'a PlannedPosts,
}

impl VisibleThreads<'_> {
    fn comments(&self) -> &super::Comments {
        &self.posts.store.comments
    }
}

impl CommentView for VisibleThreads<'_> {
    fn has_post(&self, id: Id) -> Result<bool> {
        let posts = PlannedPostView { view: &self.posts, earlier: self.earlier, planned: self.planned };
        Ok(matches!(posts.state(id)?, Some(PostState::Present(..))))
    }

    fn comment(&self, id: CommentId) -> Result<Option<Comment>> {
        Ok(self.comments().record(id)?.map(|record| record.comment))
    }

    fn first_body(&self, id: CommentId) -> Result<Option<Arc<str>>> {
        Ok(self.comments().versions(id, 0, 1)?.into_iter().next().map(|first| first.body))
    }

    fn reply_count(&self, id: CommentId) -> Result<u64> {
        self.comments().reply_count(id)
    }

    fn is_locked(&self, parent: Parent) -> Result<bool> {
        Ok(self.comments().state(parent)?.locked)
    }

    fn keyed(&self, author: Id, key: &KeyHash, now: Timestamp) -> Result<Option<CommentId>> {
        let found = self.comments().keys.find(&self.comments().tree, author, key, now)?;
        Ok(found.map(super::comment_id))
    }
}

impl Batch<'_> {
    /// Plans a request about comments.
    pub(crate) fn plan_comment<T>(
        &mut self,
        plan: impl FnOnce(CommentPlanner<'_, VisibleThreads<'_>>) -> Result<Planned<T, CommentEvent>>,
    ) -> Result<T> {
        let Planned { result, event } = plan(self.comment_planner())?;
        self.extend(event.map(|event| EventBody::Comment(Arc::new(logged(event)))));
        Ok(result)
    }

    fn comment_planner(&mut self) -> CommentPlanner<'_, VisibleThreads<'_>> {
        let earlier = self.earlier.map(|earlier| &earlier.pending);
        CommentPlanner {
            last: self.position(),
            view: VisibleThreads {
                posts: VisiblePosts::new(self.store, self.earlier, &self.events),
                earlier: earlier.map(|earlier| &earlier.posts),
                planned: &self.pending.posts,
            },
            earlier: earlier.map(|earlier| &earlier.comments),
            planned: &mut self.pending.comments,
            ids: &mut self.ids.comments,
            floor: self.floor,
        }
    }
}

/// An event as the log keeps it.
fn logged(event: CommentEvent) -> LoggedCommentEvent {
    let head =
        |comment: &Comment| CommentHead { id: comment.id, parent: comment.parent, author: comment.author };
    let body = |comment: Comment| {
        LoggedBody::Kept(comment.body.expect("a comment that is written or edited has a body"))
    };
    match event {
        CommentEvent::Written { comment, key } => LoggedCommentEvent::Written {
            head: head(&comment),
            depth: comment.depth,
            reply_to: comment.reply_to,
            key,
            body: body(comment),
        },
        CommentEvent::Edited(comment) => {
            LoggedCommentEvent::Edited { head: head(&comment), version: comment.version, body: body(comment) }
        }
        CommentEvent::Withdrawn { tombstone, reason, by } => {
            LoggedCommentEvent::Withdrawn { head: head(&tombstone), status: tombstone.status, reason, by }
        }
        CommentEvent::Locked { parent, locked } => LoggedCommentEvent::Locked { parent, locked },
    }
}
