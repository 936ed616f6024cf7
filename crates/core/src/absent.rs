//! The type of a capability that a profile lacks. It has no values, so none of its methods can be called.

use std::time::Duration;

use crate::comments::{
    Branch, Comment, CommentEdit, CommentId, CommentOrder, CommentStore, CommentThreadState, CommentVersion,
    CommentWritten, Moderator, NewComment, Parent, Withdrawal,
};
use crate::feeds::{
    FeedStore, Inbox, InboxStore, NewPost, Post, PostKey, PostState, PostStore, PostWritten, WriteOutcome,
};
use crate::graph::{
    CheckStore, Counts, Edge, EdgeList, EdgeStore, ListEntry, ListKey, Overlap, Receipt, UserSet,
    WriteRequest,
};
use crate::suggestions::{
    StoredSuggestions, Suggestion, SuggestionRunReport, SuggestionRunRequest, SuggestionStore, WalkBounds,
};
use crate::{Deployment, EdgeKind, Epoch, Frontier, Id, IdKind, Result, Timestamp};

/// The store of a capability that a profile lacks.
#[derive(Clone, Copy, Debug)]
pub enum Absent {}

impl Deployment for Absent {
    fn id_kind(&self) -> IdKind {
        match *self {}
    }

    fn epoch(&self) -> Epoch {
        match *self {}
    }
}

/// Port methods that cannot be called.
macro_rules! never {
    ($($name:ident($($argument:ty),*) -> $output:ty;)+) => {
        $(async fn $name(&self, $(_: $argument),*) -> $output { match *self {} })+
    };
}

impl CheckStore for Absent {
    never! { contains(EdgeKind, &[Edge], &Frontier) -> Result<Vec<bool>>; }
}

impl EdgeStore for Absent {
    never! {
        write(Vec<WriteRequest>) -> Vec<Result<Receipt>>;
        since(EdgeKind, &[Edge], &Frontier) -> Result<Vec<Option<Timestamp>>>;
        list(EdgeList, Option<ListKey>, usize, &Frontier) -> Result<Vec<ListEntry>>;
        friends(EdgeKind, Id, Option<ListKey>, usize, &Frontier) -> Result<Vec<ListEntry>>;
        overlap(EdgeKind, &[UserSet], Option<Id>, usize, &Frontier) -> Result<Overlap>;
        counts(EdgeKind, &[Id], &Frontier) -> Result<Vec<Counts>>;
    }
}

impl SuggestionStore for Absent {
    never! {
        candidates(Id, WalkBounds, &Frontier) -> Result<Vec<Suggestion>>;
        store_suggestions(Vec<(Id, StoredSuggestions)>) -> Result<()>;
        stored_suggestions(Id, Duration, &Frontier) -> Result<Option<StoredSuggestions>>;
    }

    fn compute_suggestions(
        &self,
        _: SuggestionRunRequest,
        _: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<SuggestionRunReport> {
        match *self {}
    }
}

impl PostStore for Absent {
    never! {
        register(NewPost) -> Result<PostWritten>;
        delete_post(Id) -> Result<WriteOutcome>;
        posts(&[Id], &Frontier) -> Result<Vec<Option<PostState>>>;
        posts_by(Id, Option<PostKey>, usize, &Frontier) -> Result<Vec<Post>>;
    }
}

impl FeedStore for Absent {
    never! { feed(Id, Option<PostKey>, usize, &Frontier) -> Result<Vec<Post>>; }
}

impl InboxStore for Absent {
    never! {
        inbox(Id, &Frontier) -> Result<Option<Inbox>>;
        drop_inbox(Id) -> Result<()>;
    }
}

impl CommentStore for Absent {
    never! {
        comment(NewComment) -> Result<CommentWritten>;
        edit_comment(CommentEdit) -> Result<CommentWritten>;
        withdraw_comment(CommentId, Withdrawal, Option<Moderator>) -> Result<WriteOutcome>;
        lock_comment_thread(Parent, bool) -> Result<WriteOutcome>;
        comments(&[CommentId], &Frontier) -> Result<Vec<Option<Comment>>>;
        comment_thread(Parent, CommentOrder, Option<CommentId>, usize, &Frontier) -> Result<Vec<Comment>>;
        replies(&[Branch], usize, &Frontier) -> Result<Vec<Vec<Comment>>>;
        comments_by(Id, Option<CommentId>, usize, &Frontier) -> Result<Vec<Comment>>;
        comment_versions(CommentId, u32, usize, &Frontier) -> Result<Vec<CommentVersion>>;
        comment_threads(&[Parent], &Frontier) -> Result<Vec<CommentThreadState>>;
        erase_purged() -> Result<u64>;
    }
}
