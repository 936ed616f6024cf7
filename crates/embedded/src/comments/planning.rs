//! Writes of comments in a batch: what the planner of `core` reads, and its events as the log keeps them.

use std::sync::Arc;

use kinfolk_core::comments::{
    Comment, CommentEdit, CommentEvent, CommentId, CommentPlanner, CommentView, CommentWritten, Moderator,
    NewComment, Parent, Withdrawal,
};
use kinfolk_core::feeds::{PlannedPostView, PlannedPosts, PostState, WriteOutcome};
use kinfolk_core::{Id, KeyHash, Planned, Result, Timestamp};

use crate::engine::batch::Batch;
use crate::log::{CommentPlace, EventBody, LoggedCommentEvent, LoggedText};
use crate::posts::VisiblePosts;

/// What is visible of comments and posts, and what is planned about posts.
pub struct VisibleThreads<'a> {
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
        self.comments().keyed(author, key, now)
    }
}

impl Batch<'_> {
    /// Plans to write a comment.
    pub fn comment(&mut self, request: NewComment) -> Result<CommentWritten> {
        let planned = self.comment_planner().write(request)?;
        Ok(self.push_comment(planned))
    }

    /// Plans to edit a comment.
    pub fn edit_comment(&mut self, edit: CommentEdit) -> Result<CommentWritten> {
        let planned = self.comment_planner().edit(edit)?;
        Ok(self.push_comment(planned))
    }

    /// Plans to take a comment back.
    pub fn withdraw_comment(
        &mut self,
        id: CommentId,
        withdrawal: Withdrawal,
        by: Option<Moderator>,
    ) -> Result<WriteOutcome> {
        let planned = self.comment_planner().withdraw(id, withdrawal, by)?;
        Ok(self.push_comment(planned))
    }

    /// Plans to lock a thread, or to unlock it.
    pub fn lock_comment_thread(&mut self, parent: Parent, locked: bool) -> Result<WriteOutcome> {
        let planned = self.comment_planner().lock(parent, locked)?;
        Ok(self.push_comment(planned))
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

    fn push_comment<T>(&mut self, Planned { result, event }: Planned<T, CommentEvent>) -> T {
        self.extend(event.map(|event| EventBody::Comment(Arc::new(logged(event)))));
        result
    }
}

/// An event as the log keeps it.
fn logged(event: CommentEvent) -> LoggedCommentEvent {
    let place =
        |comment: &Comment| CommentPlace { id: comment.id, parent: comment.parent, author: comment.author };
    let text = |comment: Comment| {
        LoggedText::Kept(comment.body.expect("a comment that is written or edited has a body"))
    };
    match event {
        CommentEvent::Written { comment, key } => LoggedCommentEvent::Written {
            place: place(&comment),
            depth: comment.depth,
            reply_to: comment.reply_to,
            key,
            text: text(comment),
        },
        CommentEvent::Edited(comment) => LoggedCommentEvent::Edited {
            place: place(&comment),
            version: comment.version,
            text: text(comment),
        },
        CommentEvent::Withdrawn { tombstone, reason, by } => {
            LoggedCommentEvent::Withdrawn { place: place(&tombstone), status: tombstone.status, reason, by }
        }
        CommentEvent::Locked { parent, locked } => LoggedCommentEvent::Locked { parent, locked },
    }
}
