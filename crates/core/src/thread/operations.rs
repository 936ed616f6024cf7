//! The operations on comments: the rules that hold whatever store is below and whatever protocol is above. Trees have a file
//! of their own.

use std::sync::Arc;

use super::cursor::CommentList;
use super::{
    Comment, CommentEdit, CommentId, CommentStatus, CommentVersion, Commented, NewComment, Parent,
    ParentKind, ThreadOrder, ThreadState, ThreadStore, Withdrawal,
};
use crate::feed::{PostState, Removed};
use crate::graph::{ChangeLog, Freshness, Graph, PageRequest};
use crate::{Error, Id, Result};

/// What a deployment sets about comments.
#[derive(Clone, Copy, Debug)]
pub struct ThreadSettings {
    /// The longest body of a comment, and the longest reason of a moderator, in characters.
    pub body_chars_max: usize,
    /// How many comments may be above one.
    pub depth_max: u8,
    /// The most comments in one answer with a tree.
    pub tree_comments_max: usize,
}

impl Default for ThreadSettings {
    fn default() -> Self {
        Self { body_chars_max: 10_000, depth_max: 50, tree_comments_max: 1_000 }
    }
}

/// Who reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Viewer {
    /// Which user, if it is known.
    pub user: Option<Id>,
    /// Whether what was deleted or removed may be seen.
    pub is_moderator: bool,
}

/// A page of comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentPage {
    /// The comments.
    pub items: Vec<Comment>,
    /// The cursor of the next page, unless this is the last.
    pub next: Option<String>,
}

/// A page of a comment's texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPage {
    /// The texts, oldest first.
    pub items: Vec<CommentVersion>,
    /// The cursor of the next page, unless this is the last.
    pub next: Option<String>,
}

/// The answer to writing or editing a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenComment {
    /// The token of the position at which the comment is visible.
    pub token: String,
    /// The comment.
    pub comment: Comment,
    /// Whether it is new, and not a repetition.
    pub is_new: bool,
}

impl<S: ThreadStore + ChangeLog> Graph<S> {
    /// Writes a comment. `depth_max` of the wish is replaced by the deployment's.
    pub async fn comment(&self, wish: NewComment) -> Result<WrittenComment> {
        self.require_ids(&[wish.author, wish.parent.id])?;
        self.require_body(&wish.body)?;
        self.require_key(wish.idempotency_key.as_deref())?;
        let depth_max = self.settings.thread.depth_max;
        let written = self.store().comment(NewComment { depth_max, ..wish }).await?;
        Ok(self.written(written))
    }

    /// Edits a comment whose current version the editor has seen. With an actor, only its author may.
    pub async fn edit_comment(&self, actor: Option<Id>, edit: CommentEdit) -> Result<WrittenComment> {
        self.require_body(&edit.body)?;
        self.require_author(actor, edit.id, "edit").await?;
        let written = self.store().edit_comment(edit).await?;
        Ok(self.written(written))
    }

    /// Deletes a comment. With an actor, only its author may. Returns the token of the position at which it is gone, and
    /// whether that is new.
    pub async fn delete_comment(&self, actor: Option<Id>, id: CommentId) -> Result<(String, bool)> {
        self.require_author(actor, id, "delete").await?;
        self.withdraw(id, Withdrawal::Delete).await
    }

    /// Removes a comment as a moderator.
    pub async fn remove_comment(&self, id: CommentId, reason: Arc<str>) -> Result<(String, bool)> {
        self.require_text("a reason", &reason)?;
        self.withdraw(id, Withdrawal::Remove(reason)).await
    }

    /// Erases the texts of a comment for good, as a moderator.
    pub async fn purge_comment(&self, id: CommentId) -> Result<(String, bool)> {
        self.withdraw(id, Withdrawal::Purge).await
    }

    /// Locks a thread, or unlocks it, as a moderator.
    pub async fn lock_thread(&self, parent: Parent, locked: bool) -> Result<(String, bool)> {
        self.require_ids(&[parent.id])?;
        let Removed { position, changed } = self.store().lock_thread(parent, locked).await?;
        Ok((self.token(position), changed))
    }

    /// A comment, or its tombstone.
    pub async fn read_comment(&self, id: CommentId, viewer: Viewer, fresh: Freshness<'_>) -> Result<Comment> {
        self.await_freshness(fresh).await?;
        self.one_comment(id).await.map(|comment| shown(comment, viewer))
    }

    /// A page of a thread.
    pub async fn thread(
        &self,
        parent: Parent,
        order: ThreadOrder,
        page: PageRequest<'_>,
        (viewer, fresh): (Viewer, Freshness<'_>),
    ) -> Result<CommentPage> {
        self.require_ids(&[parent.id])?;
        let (list, after) = (CommentList::Thread(parent, order), self.begin(page)?);
        let after = after.map(|text| list.decode(text, &self.keys)).transpose()?;
        self.await_freshness(fresh).await?;
        self.require_parent(parent).await?;
        let after = after.map(|[id]| CommentId(id));
        let items = self.store().thread(parent, order, after, page.limit + 1).await?;
        Ok(self.comment_page(list, items, page.limit, viewer))
    }

    /// A page of an author's active comments, newest first.
    pub async fn comments_by(
        &self,
        author: Id,
        page: PageRequest<'_>,
        (viewer, fresh): (Viewer, Freshness<'_>),
    ) -> Result<CommentPage> {
        self.require_ids(&[author])?;
        let (list, after) = (CommentList::By(author), self.begin(page)?);
        let after = after.map(|text| list.decode(text, &self.keys)).transpose()?;
        self.await_freshness(fresh).await?;
        let after = after.map(|[id]| CommentId(id));
        let items = self.store().comments_by(author, after, page.limit + 1).await?;
        Ok(self.comment_page(list, items, page.limit, viewer))
    }

    /// The texts that a comment has or had, oldest first: for its author while it is active, and for moderators.
    pub async fn comment_history(
        &self,
        id: CommentId,
        page: PageRequest<'_>,
        (viewer, fresh): (Viewer, Freshness<'_>),
    ) -> Result<HistoryPage> {
        let (list, after) = (CommentList::Versions(id), self.begin(page)?);
        let after = after.map(|text| list.decode(text, &self.keys)).transpose()?;
        let after =
            after.map_or(Ok(0), |[version]| u32::try_from(version)).map_err(|_| Error::InvalidCursor)?;
        self.await_freshness(fresh).await?;
        let comment = self.one_comment(id).await?;
        if comment.status == CommentStatus::Purged {
            return Err(Error::CommentDeleted { id: id.to_string() });
        }
        let is_author = viewer.user == Some(comment.author) && comment.status == CommentStatus::Active;
        if !viewer.is_moderator && !is_author {
            return Err(Error::Forbidden {
                detail: "the history of a comment is for its author while it is active, and for moderators"
                    .into(),
            });
        }
        let mut items = self.store().comment_versions(id, after, page.limit + 1).await?;
        let more = items.len() > page.limit;
        items.truncate(page.limit);
        let next = items.last().filter(|_| more);
        let next = next.map(|last| list.encode([last.version.into()], &self.keys));
        Ok(HistoryPage { items, next })
    }

    /// How many comments a thread has, and whether it is locked.
    pub async fn thread_state(&self, parent: Parent, fresh: Freshness<'_>) -> Result<ThreadState> {
        self.require_ids(&[parent.id])?;
        self.await_freshness(fresh).await?;
        Ok(self.store().threads(&[parent]).await?.into_iter().next().unwrap_or_default())
    }

    /// Erases the texts of all comments that were purged from everything that the store keeps.
    pub async fn erase_purged(&self) -> Result<u64> {
        self.store().erase_purged().await
    }

    async fn withdraw(&self, id: CommentId, withdrawal: Withdrawal) -> Result<(String, bool)> {
        let Removed { position, changed } = self.store().withdraw_comment(id, withdrawal).await?;
        Ok((self.token(position), changed))
    }

    fn written(&self, Commented { position, comment, is_new }: Commented) -> WrittenComment {
        WrittenComment { token: self.token(position), comment, is_new }
    }

    async fn one_comment(&self, id: CommentId) -> Result<Comment> {
        let found = self.store().comments(&[id]).await?.into_iter().next().flatten();
        found.ok_or_else(|| Error::NotFound { detail: format!("there is no comment {id}") })
    }

    async fn require_author(&self, actor: Option<Id>, id: CommentId, what: &str) -> Result<()> {
        let author = self.one_comment(id).await?.author;
        if actor.is_none_or(|actor| actor == author) {
            return Ok(());
        }
        Err(Error::Forbidden { detail: format!("only its author may {what} a comment") })
    }

    /// A thread is read where its parent is: one of a deleted post is gone with it.
    pub(super) async fn require_parent(&self, parent: Parent) -> Result<()> {
        if parent.kind != ParentKind::Post {
            return Ok(());
        }
        match self.store().posts(&[parent.id]).await?.first() {
            Some(Some(PostState::Present(..))) => Ok(()),
            _ => Err(Error::NotFound { detail: format!("there is no post {}", parent.id) }),
        }
    }

    /// Refuses a page that is too large; returns its cursor.
    fn begin<'a>(&self, page: PageRequest<'a>) -> Result<Option<&'a str>> {
        self.require_limit(page.limit)?;
        Ok(page.cursor)
    }

    /// The page that is made of one comment more than asked for, if there is one.
    fn comment_page(
        &self,
        list: CommentList,
        mut items: Vec<Comment>,
        limit: usize,
        viewer: Viewer,
    ) -> CommentPage {
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(|last| list.encode([last.id.0], &self.keys));
        CommentPage { items: items.into_iter().map(|comment| shown(comment, viewer)).collect(), next }
    }

    fn require_body(&self, body: &str) -> Result<()> {
        self.require_text("a comment", body)
    }

    /// Text that people write: not blank, not too long, without control characters but for line ends and tabs.
    fn require_text(&self, what: &'static str, text: &str) -> Result<()> {
        let max = self.settings.thread.body_chars_max;
        let is_control = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
        let refuse = |reason: String| Err(Error::InvalidBody { what, reason });
        if text.chars().all(char::is_whitespace) {
            return refuse("can't be blank".into());
        }
        // A character has at least one byte, and is counted only where that does not tell.
        if text.len() > max && text.chars().count() > max {
            return refuse(format!("has at most {max} characters"));
        }
        if text.chars().any(is_control) {
            return refuse("can't have control characters, but for line ends (\\n) and tabs".into());
        }
        Ok(())
    }
}

/// A comment as a viewer may see it.
pub(super) fn shown(comment: Comment, viewer: Viewer) -> Comment {
    if viewer.is_moderator || comment.status == CommentStatus::Active {
        return comment;
    }
    Comment { body: None, reason: None, ..comment }
}
