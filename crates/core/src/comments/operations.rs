//! The operations on comments: the rules that hold for every store and every protocol. Trees are in `tree.rs`.

use std::sync::Arc;
use std::task::Poll;

use super::cursor::CommentList;
use super::text::TextRule;
use super::{
    Comment, CommentEdit, CommentId, CommentOrder, CommentStatus, CommentStore, CommentThreadState,
    CommentVersion, CommentWritten, Moderator, NewComment, Parent, ParentKind, Withdrawal,
};
use crate::feeds::{PostState, PostStore, WriteOutcome, require_key};
use crate::{Error, Frontier, Id, Operations, Page, PageRequest, Result};

/// Limits of comments that a deployment sets.
#[derive(Clone, Copy, Debug)]
pub struct CommentSettings {
    /// The maximum length of a body, in characters.
    pub body_chars_max: usize,
    /// The maximum number of comments above a comment.
    pub depth_max: u8,
    /// The maximum number of comments in one tree.
    pub tree_comments_max: usize,
    /// The maximum size of all bodies on a page, in bytes. A page has at least one comment.
    pub page_bytes_max: usize,
    /// The maximum size of an idempotency key, in bytes.
    pub key_bytes_max: usize,
}

/// The rule for a moderator's reason.
const REASON: TextRule = TextRule { what: "a reason", chars_max: 1_000 };
/// The maximum number of versions of a comment.
const VERSIONS_MAX: u32 = 1_000;
/// A page is read in chunks of this many comments; other tasks may run in between.
pub(super) const CHUNK: usize = 64;

impl Default for CommentSettings {
    fn default() -> Self {
        Self {
            body_chars_max: 10_000,
            depth_max: 50,
            tree_comments_max: 1_000,
            page_bytes_max: 1 << 20,
            key_bytes_max: 255,
        }
    }
}

/// The reader of comments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Viewer {
    /// The user, if known.
    pub user: Option<Id>,
    /// Whether the reader may see deleted and removed comments.
    pub is_moderator: bool,
}

/// A page of comments.
pub type CommentPage = Page<Comment>;

/// A page of a comment's versions, oldest first.
pub type HistoryPage = Page<CommentVersion>;

/// Operations on comments.
pub type CommentThreads<S> = Operations<S, CommentSettings>;

impl<S: CommentStore + PostStore> CommentThreads<S> {
    /// How deep replies may be, for callers that ask for as much of a tree as they may.
    pub fn depth_max(&self) -> u8 {
        self.settings.depth_max
    }

    /// Writes a comment. Replaces the request's `depth_max` with the deployment's, and normalizes line endings of the body to
    /// LF before a retry is compared.
    pub async fn comment(&self, new: NewComment) -> Result<CommentWritten> {
        self.context.require_ids(&[new.author, new.parent.id])?;
        let body = self.accept_body(Arc::clone(&new.body))?;
        require_key(new.idempotency_key.as_deref(), self.settings.key_bytes_max)?;
        let depth_max = self.settings.depth_max;
        self.store().comment(NewComment { body, depth_max, ..new }).await.map(for_author)
    }

    /// Edits a comment, based on its current version. An actor must be its author.
    pub async fn edit_comment(
        &self,
        actor: Option<Id>,
        edit: CommentEdit,
        at_least: &Frontier,
    ) -> Result<CommentWritten> {
        let edit = CommentEdit { body: self.accept_body(edit.body)?, ..edit };
        let comment = self.require_author(actor, edit.id, "edit", at_least).await?;
        if comment.version == edit.version && edit.version >= VERSIONS_MAX {
            let (count, max) = (edit.version as usize + 1, VERSIONS_MAX as usize);
            return Err(Error::TooMany { what: "versions of a comment", count, max });
        }
        self.store().edit_comment(edit).await.map(for_author)
    }

    /// Deletes a comment. An actor must be its author.
    pub async fn delete_comment(
        &self,
        actor: Option<Id>,
        id: CommentId,
        at_least: &Frontier,
    ) -> Result<WriteOutcome> {
        self.require_author(actor, id, "delete", at_least).await?;
        self.withdraw(id, Withdrawal::Delete, None).await
    }

    /// Removes a comment on behalf of a moderator, who is recorded if known.
    pub async fn remove_comment(
        &self,
        id: CommentId,
        reason: Arc<str>,
        by: Option<Moderator>,
    ) -> Result<WriteOutcome> {
        let reason = REASON.accept(reason)?;
        self.withdraw(id, Withdrawal::Remove(reason), by).await
    }

    /// Erases all bodies of a comment permanently, on behalf of a moderator, who is recorded if known.
    pub async fn purge_comment(&self, id: CommentId, by: Option<Moderator>) -> Result<WriteOutcome> {
        self.withdraw(id, Withdrawal::Purge, by).await
    }

    /// Locks or unlocks a comment thread.
    pub async fn lock_comment_thread(&self, parent: Parent, locked: bool) -> Result<WriteOutcome> {
        self.context.require_ids(&[parent.id])?;
        self.store().lock_comment_thread(parent, locked).await
    }

    /// A comment, or its tombstone.
    pub async fn read_comment(&self, id: CommentId, viewer: Viewer, at_least: &Frontier) -> Result<Comment> {
        self.one_comment(id, at_least).await.map(|comment| redact(comment, viewer))
    }

    /// A page of a comment thread.
    pub async fn comment_thread(
        &self,
        parent: Parent,
        order: CommentOrder,
        page: PageRequest<'_>,
        viewer: Viewer,
        at_least: &Frontier,
    ) -> Result<CommentPage> {
        self.context.require_ids(&[parent.id])?;
        let list = CommentList::Thread(parent, order);
        let after = self.after(list, page)?;
        self.require_parent(parent, at_least).await?;
        self.comment_page(list, after.map(|[id]| CommentId(id)), page.limit, viewer, at_least).await
    }

    /// A page of an author's active comments, newest first.
    pub async fn comments_by(
        &self,
        author: Id,
        page: PageRequest<'_>,
        viewer: Viewer,
        at_least: &Frontier,
    ) -> Result<CommentPage> {
        self.context.require_ids(&[author])?;
        let list = CommentList::By(author);
        let after = self.after(list, page)?;
        self.comment_page(list, after.map(|[id]| CommentId(id)), page.limit, viewer, at_least).await
    }

    /// A page of a comment's versions, oldest first: for its author while it is active, and for moderators.
    pub async fn comment_history(
        &self,
        id: CommentId,
        page: PageRequest<'_>,
        viewer: Viewer,
        at_least: &Frontier,
    ) -> Result<HistoryPage> {
        let list = CommentList::Versions(id);
        let after = self.after(list, page)?;
        let after =
            after.map_or(Ok(0), |[version]| u32::try_from(version)).map_err(|_| Error::InvalidCursor)?;
        let comment = self.one_comment(id, at_least).await?;
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
        let mut versions = PageBuilder::new(page.limit, self.settings.page_bytes_max);
        while let Some(wanted) = versions.wanted() {
            let after = versions.items.last().map_or(after, |last: &CommentVersion| last.version);
            let chunk = self.store().comment_versions(id, after, wanted, at_least).await?;
            versions.add(wanted, chunk, |version| version.body.len());
            yield_now().await;
        }
        let next = versions.items.last().filter(|_| versions.has_more);
        let next = next.map(|last| list.encode([last.version.into()], &self.context.keys));
        Ok(HistoryPage { items: versions.items, next })
    }

    /// The state of a comment thread.
    pub async fn thread_state(&self, parent: Parent, at_least: &Frontier) -> Result<CommentThreadState> {
        self.context.require_ids(&[parent.id])?;
        Ok(self.store().comment_threads(&[parent], at_least).await?.into_iter().next().unwrap_or_default())
    }

    async fn withdraw(
        &self,
        id: CommentId,
        withdrawal: Withdrawal,
        by: Option<Moderator>,
    ) -> Result<WriteOutcome> {
        if let Some(Moderator::User(user)) = by {
            self.context.require_ids(&[user])?;
        }
        self.store().withdraw_comment(id, withdrawal, by).await
    }

    async fn one_comment(&self, id: CommentId, at_least: &Frontier) -> Result<Comment> {
        let found = self.store().comments(&[id], at_least).await?.into_iter().next().flatten();
        found.ok_or_else(|| Error::NotFound { detail: format!("there is no comment {id}") })
    }

    /// The comment, if the actor is its author or there is no actor.
    async fn require_author(
        &self,
        actor: Option<Id>,
        id: CommentId,
        what: &str,
        at_least: &Frontier,
    ) -> Result<Comment> {
        let comment = self.one_comment(id, at_least).await?;
        if actor.is_none_or(|actor| actor == comment.author) {
            return Ok(comment);
        }
        Err(Error::Forbidden { detail: format!("only its author may {what} a comment") })
    }

    /// Refuses to read the thread of a post that does not exist or was deleted.
    pub(super) async fn require_parent(&self, parent: Parent, at_least: &Frontier) -> Result<()> {
        if parent.kind != ParentKind::Post {
            return Ok(());
        }
        match self.store().posts(&[parent.id], at_least).await?.first() {
            Some(Some(PostState::Present(..))) => Ok(()),
            _ => Err(Error::NotFound { detail: format!("there is no post {}", parent.id) }),
        }
    }

    /// The key that a page begins after. Refuses a page that is too large.
    pub(super) fn after<const LEN: usize>(
        &self,
        list: CommentList,
        page: PageRequest<'_>,
    ) -> Result<Option<[u128; LEN]>> {
        self.context.require_limit(page.limit)?;
        page.cursor.map(|text| list.decode(text, &self.context.keys)).transpose()
    }

    /// A page of a list of comments.
    async fn comment_page(
        &self,
        list: CommentList,
        after: Option<CommentId>,
        limit: usize,
        viewer: Viewer,
        at_least: &Frontier,
    ) -> Result<CommentPage> {
        let mut comments = PageBuilder::new(limit, self.settings.page_bytes_max);
        while let Some(wanted) = comments.wanted() {
            let after = comments.items.last().map(|last: &Comment| last.id).or(after);
            let chunk = match list {
                CommentList::By(author) => self.store().comments_by(author, after, wanted, at_least).await?,
                CommentList::Thread(parent, order) => {
                    self.store().comment_thread(parent, order, after, wanted, at_least).await?
                }
                CommentList::Branches(_) | CommentList::Versions(_) => {
                    unreachable!("branches and versions have pages of their own")
                }
            };
            comments.add(wanted, chunk, body_bytes);
            yield_now().await;
        }
        let next = comments.items.last().filter(|_| comments.has_more);
        let next = next.map(|last| list.encode([last.id.0], &self.context.keys));
        let items = comments.items.into_iter().map(|comment| redact(comment, viewer)).collect();
        Ok(CommentPage { items, next })
    }

    fn accept_body(&self, body: Arc<str>) -> Result<Arc<str>> {
        TextRule { what: "a comment", chars_max: self.settings.body_chars_max }.accept(body)
    }
}

/// Builds a page from chunks, up to a number of items and of bytes.
pub(super) struct PageBuilder<T> {
    pub items: Vec<T>,
    /// Whether the list continues after these items.
    pub has_more: bool,
    limit: usize,
    bytes_left: usize,
    ended: bool,
}

impl<T> PageBuilder<T> {
    pub(crate) fn new(limit: usize, bytes_left: usize) -> Self {
        Self { items: Vec::new(), has_more: false, limit, bytes_left, ended: false }
    }

    /// How many items to read next; `None` if the page is full or the list has ended.
    pub(crate) fn wanted(&self) -> Option<usize> {
        // One more than requested shows whether there is a next page.
        (!self.ended).then(|| (self.limit + 1 - self.items.len()).min(CHUNK))
    }

    pub(crate) fn add(&mut self, wanted: usize, chunk: Vec<T>, bytes: impl Fn(&T) -> usize) {
        self.ended = chunk.len() < wanted;
        for item in chunk {
            let bytes = bytes(&item);
            if self.items.len() == self.limit || (bytes > self.bytes_left && !self.items.is_empty()) {
                (self.has_more, self.ended) = (true, true);
                return;
            }
            self.bytes_left = self.bytes_left.saturating_sub(bytes);
            self.items.push(item);
        }
    }
}

/// The size of a comment's body and reason.
pub(super) fn body_bytes(comment: &Comment) -> usize {
    let length = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
    length(&comment.body) + length(&comment.reason)
}

/// Lets other tasks of this OS thread run first.
pub(super) async fn yield_now() {
    let mut waited = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The result of a write without what moderators alone may see: a retry returns the first result also of a comment that was
/// removed with a reason since.
fn for_author(written: CommentWritten) -> CommentWritten {
    CommentWritten { comment: redact(written.comment, Viewer::default()), ..written }
}

/// The comment without the fields that the viewer may not see.
pub(super) fn redact(comment: Comment, viewer: Viewer) -> Comment {
    if viewer.is_moderator || comment.status == CommentStatus::Active {
        return comment;
    }
    Comment { body: None, reason: None, removed_by: None, ..comment }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_filled_up_to_a_number_and_to_bytes() {
        let fill = |limit, bytes, lengths: &[usize]| {
            let (mut page, mut left) = (PageBuilder::new(limit, bytes), lengths);
            while let Some(wanted) = page.wanted() {
                let (part, rest) = left.split_at(wanted.min(left.len()));
                page.add(wanted, part.to_vec(), |&length| length);
                left = rest;
            }
            (page.items.len(), page.has_more)
        };
        assert_eq!(fill(3, 100, &[]), (0, false));
        assert_eq!(fill(3, 100, &[1, 1, 1]), (3, false));
        assert_eq!(fill(3, 100, &[1, 1, 1, 1]), (3, true));
        assert_eq!(fill(3, 2, &[1, 1, 1]), (2, true));
        assert_eq!(fill(3, 2, &[5, 1, 1]), (1, true), "one at least");
        assert_eq!(fill(3, 2, &[5]), (1, false));
        assert_eq!(fill(1_000, 10_000, &[1; CHUNK * 3]), (CHUNK * 3, false));
        assert_eq!(fill(CHUNK, 10_000, &[1; CHUNK * 3]), (CHUNK, true));
        assert_eq!(fill(CHUNK * 2, 10_000, &[1; CHUNK * 2]), (CHUNK * 2, false));
    }
}
