//! Helpers to write and read comments. A failure is a panic.

use std::sync::Arc;

use kinfolk_core::Result;
use kinfolk_core::changes::ChangeBody;
use kinfolk_core::comments::{
    Branch, Comment, CommentChange, CommentEdit, CommentId, CommentOrder, CommentThreadState, CommentVersion,
    CommentWritten, Moderator, NewComment, Parent, ParentKind, Withdrawal,
};
use kinfolk_core::feeds::WriteOutcome;

use crate::cases::subject::{COMMENTS, Subject};
use crate::ports::CommentPorts;
use crate::random::compare::{ENTRIES_MAX, walk_by};
use crate::seen::Seen;
use crate::threads::block_on;

pub(super) const ORDERS: [CommentOrder; 2] = [CommentOrder::Oldest, CommentOrder::Newest];

/// The number of an id that no comment has.
pub(super) const NOBODY: CommentId = CommentId(5);

/// Every way to take a comment back, from the mildest to the worst.
pub(super) fn withdrawals() -> [Withdrawal; 3] {
    [Withdrawal::Delete, Withdrawal::Remove("rude".into()), Withdrawal::Purge]
}

impl<S: CommentPorts> Subject<S> {
    /// The thread of a new post.
    pub(super) fn post_thread(&self, number: u64) -> Parent {
        assert!(self.register(self.named(9, number)).is_new);
        Parent::post(self.id(number))
    }

    /// A thread of each kind, all with the same id.
    pub(super) fn threads_of_all_kinds(&self) -> [Parent; 3] {
        self.post_thread(50);
        ParentKind::ALL.map(|kind| Parent { kind, id: self.id(50) })
    }

    /// The request for a comment at the top.
    pub(super) fn remark(&self, parent: Parent, author: u64, body: &str) -> NewComment {
        NewComment {
            parent,
            author: self.id(author),
            body: body.into(),
            reply_to: None,
            idempotency_key: None,
            depth_max: COMMENTS.depth_max,
        }
    }

    /// The request for an answer to a comment.
    pub(super) fn answer(&self, to: &Comment, author: u64, body: &str) -> NewComment {
        NewComment { reply_to: Some(to.id), ..self.remark(to.parent, author, body) }
    }

    /// Writes a comment, and waits until it is visible if it succeeds.
    pub(super) fn try_say(&self, request: &NewComment) -> Result<CommentWritten> {
        let commented = block_on(self.store().comment(request.clone()))?;
        self.saw(commented.position);
        Ok(commented)
    }

    /// Writes a comment that is new.
    #[track_caller]
    pub(super) fn say(&self, request: &NewComment) -> Comment {
        let commented = self.try_say(request).expect("the comment is written");
        assert!(commented.is_new, "{commented:?} is new");
        commented.comment
    }

    /// Writes so many comments at the top of a thread.
    pub(super) fn say_many(&self, parent: Parent, author: u64, count: usize) -> Vec<Comment> {
        (0..count).map(|number| self.say(&self.remark(parent, author, &format!("number {number}")))).collect()
    }

    /// Repeats a request, which must succeed and change nothing.
    #[track_caller]
    pub(super) fn retry(&self, request: &NewComment) -> Comment {
        let before = self.newest_frontier();
        let commented = self.try_say(request).expect("the comment is written already");
        assert!(!commented.is_new, "{commented:?} repeats one");
        self.assert_repeated(&before, commented.position, commented.position);
        let store = Seen::new(self.graph.store(), commented.position);
        let found = block_on(store.comments(&[commented.comment.id])).unwrap();
        assert!(matches!(found[..], [Some(_)]), "a read at {} sees {commented:?}", commented.position);
        commented.comment
    }

    pub(super) fn try_edit(&self, id: CommentId, version: u32, body: &str) -> Result<CommentWritten> {
        let edited = block_on(self.store().edit_comment(CommentEdit { id, version, body: body.into() }))?;
        self.saw(edited.position);
        Ok(edited)
    }

    /// Edits a comment as it was read.
    #[track_caller]
    pub(super) fn edit(&self, comment: &Comment, body: &str) -> Comment {
        let edited = self.try_edit(comment.id, comment.version, body).expect("the comment is edited");
        assert!(edited.is_new, "{edited:?} is new");
        edited.comment
    }

    pub(super) fn withdraw(&self, id: CommentId, withdrawal: Withdrawal) -> WriteOutcome {
        self.withdraw_by(id, withdrawal, None)
    }

    pub(super) fn withdraw_by(
        &self,
        id: CommentId,
        withdrawal: Withdrawal,
        by: Option<Moderator>,
    ) -> WriteOutcome {
        let removed = block_on(self.store().withdraw_comment(id, withdrawal, by)).expect("it is withdrawn");
        self.saw(removed.position);
        removed
    }

    /// Takes a comment back that was there, and returns its tombstone.
    #[track_caller]
    pub(super) fn bury(&self, id: CommentId, withdrawal: Withdrawal) -> Comment {
        assert!(self.withdraw(id, withdrawal).changed, "{id} was there");
        self.comment(id)
    }

    pub(super) fn lock(&self, parent: Parent, locked: bool) -> WriteOutcome {
        let removed =
            block_on(self.store().lock_comment_thread(parent, locked)).expect("it is locked or unlocked");
        self.saw(removed.position);
        removed
    }

    pub(super) fn find(&self, id: CommentId) -> Option<Comment> {
        let found = block_on(self.store().comments(&[id])).unwrap();
        let [comment] = <[_; 1]>::try_from(found).expect("an answer for each id");
        comment
    }

    #[track_caller]
    pub(super) fn comment(&self, id: CommentId) -> Comment {
        self.find(id).expect("the comment is known")
    }

    /// Comments as they are now.
    pub(super) fn refreshed(&self, comments: &[Comment]) -> Vec<Comment> {
        comments.iter().map(|comment| self.comment(comment.id)).collect()
    }

    pub(super) fn thread_page(
        &self,
        parent: Parent,
        order: CommentOrder,
        after: Option<CommentId>,
        limit: usize,
    ) -> Vec<Comment> {
        block_on(self.store().comment_thread(parent, order, after, limit)).unwrap()
    }

    /// A whole thread, walked in pages.
    pub(super) fn comment_thread(&self, parent: Parent, order: CommentOrder, limit: usize) -> Vec<Comment> {
        let read = |after| Ok(self.thread_page(parent, order, after, limit));
        walk_by(|comment: &Comment| comment.id, limit, read)
            .unwrap_or_else(|wrong| panic!("the thread of {parent:?}: {wrong}"))
    }

    /// A whole thread, oldest first.
    pub(super) fn whole_thread(&self, parent: Parent) -> Vec<Comment> {
        self.comment_thread(parent, CommentOrder::Oldest, 1_000)
    }

    /// All active comments of an author, walked in pages.
    pub(super) fn comments_by(&self, author: u64, limit: usize) -> Vec<Comment> {
        let id = self.id(author);
        let read = |after| Ok(block_on(self.store().comments_by(id, after, limit)).unwrap());
        walk_by(|comment: &Comment| comment.id, limit, read)
            .unwrap_or_else(|wrong| panic!("the comments of user {author}: {wrong}"))
    }

    /// All direct replies to a comment.
    pub(super) fn replies_to(&self, comment: &Comment) -> Vec<Comment> {
        let branch = Branch { parent: comment.parent, reply_to: Some(comment.id), after: None };
        let found = block_on(self.store().replies(&[branch], ENTRIES_MAX)).unwrap();
        let [replies] = <[_; 1]>::try_from(found).expect("an answer for each branch");
        replies
    }

    /// All texts of a comment, walked in pages.
    pub(super) fn versions(&self, id: CommentId, limit: usize) -> Vec<CommentVersion> {
        let read = |after: Option<u32>| {
            Ok(block_on(self.store().comment_versions(id, after.unwrap_or(0), limit)).unwrap())
        };
        walk_by(|version: &CommentVersion| version.version, limit, read)
            .unwrap_or_else(|wrong| panic!("the versions of {id}: {wrong}"))
    }

    pub(super) fn thread_state(&self, parent: Parent) -> CommentThreadState {
        let found = block_on(self.store().comment_threads(&[parent])).unwrap();
        let [state] = <[_; 1]>::try_from(found).expect("an answer for each thread");
        state
    }

    pub(super) fn count(&self, parent: Parent) -> u64 {
        self.thread_state(parent).count
    }

    /// What the log says about threads.
    pub(super) fn thread_log(&self) -> Vec<CommentChange> {
        let reported = self.changes().into_iter().filter_map(|change| match change.body {
            ChangeBody::Comment(reported) => Some(reported),
            _ => None,
        });
        reported.collect()
    }

    /// All that can be read of some threads, users and comments, and the log, to see what changed of it.
    pub(super) fn all_of(&self, parents: &[Parent]) -> impl PartialEq + std::fmt::Debug + use<S> {
        let threads: Vec<_> = parents
            .iter()
            .map(|&parent| {
                let both = ORDERS.map(|order| self.comment_thread(parent, order, 100));
                let replies: Vec<_> = both[0].iter().map(|comment| self.replies_to(comment)).collect();
                let versions: Vec<_> = both[0].iter().map(|comment| self.versions(comment.id, 100)).collect();
                (both, replies, versions, self.thread_state(parent))
            })
            .collect();
        let authors: Vec<_> = (0..10).map(|author| self.comments_by(author, 100)).collect();
        (threads, authors, self.changes(), self.newest_frontier())
    }
}

/// Changes by the thread that they are about, those of each in their order.
pub(super) fn by_parent(mut changes: Vec<CommentChange>) -> Vec<CommentChange> {
    changes.sort_by_key(|change| match change {
        CommentChange::Written { parent, .. }
        | CommentChange::Edited { parent, .. }
        | CommentChange::Withdrawn { parent, .. }
        | CommentChange::Locked { parent, .. } => *parent,
    });
    changes
}

/// A key of a request.
pub(super) fn key(text: &str) -> Option<Arc<str>> {
    Some(text.into())
}

/// The ids of comments, in their order.
pub(super) fn ids(comments: &[Comment]) -> Vec<CommentId> {
    comments.iter().map(|comment| comment.id).collect()
}
