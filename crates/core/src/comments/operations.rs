//! The operations on comments: the rules that hold whatever store is below and whatever protocol is above. Trees have a file
//! of their own.

use std::sync::Arc;
use std::task::Poll;

use super::cursor::CommentList;
use super::text::TextRule;
use super::{
    Comment, CommentEdit, CommentId, CommentOrder, CommentStatus, CommentStore, CommentThreadState,
    CommentVersion, CommentWritten, Moderator, NewComment, Parent, ParentKind, Withdrawal,
};
use crate::feeds::{PostState, PostStore, WriteOutcome, require_key};
use crate::{Context, Error, Frontier, Id, PageRequest, Result};

/// What a deployment sets about comments.
#[derive(Clone, Copy, Debug)]
pub struct CommentSettings {
    /// The longest body of a comment, in characters.
    pub body_chars_max: usize,
    /// How many comments may be above one.
    pub depth_max: u8,
    /// The most comments in one answer with a tree.
    pub tree_comments_max: usize,
    /// A page ends where its texts would have more bytes than this, but has one comment at least.
    pub page_bytes_max: usize,
    /// The longest idempotency key, in bytes.
    pub key_bytes_max: usize,
}

/// What a moderator may give as a reason.
const REASON: TextRule = TextRule { what: "a reason", chars_max: 1_000 };
/// How many texts a comment can have had.
const VERSIONS_MAX: u32 = 1_000;
/// A page is read in parts of so many comments, and others may have their turn between them.
pub(super) const PART: usize = 64;

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

/// Comment threads: a store, with the rules in front of it.
#[derive(Debug)]
pub struct CommentThreads<S> {
    /// The store and its keys.
    pub context: Context<S>,
    pub(super) settings: CommentSettings,
}

impl<S> CommentThreads<S> {
    /// Comment threads on a store.
    pub fn new(context: Context<S>, settings: CommentSettings) -> Self {
        Self { context, settings }
    }

    /// The store below.
    pub fn store(&self) -> &S {
        self.context.store()
    }
}

impl<S: CommentStore + PostStore> CommentThreads<S> {
    /// Writes a comment. `depth_max` of the request is replaced by the deployment's, and line ends of the body become LF: that
    /// is what a repetition is compared with.
    pub async fn comment(&self, new: NewComment) -> Result<CommentWritten> {
        self.context.require_ids(&[new.author, new.parent.id])?;
        let body = self.accept_body(Arc::clone(&new.body))?;
        require_key(new.idempotency_key.as_deref(), self.settings.key_bytes_max)?;
        let depth_max = self.settings.depth_max;
        self.store().comment(NewComment { body, depth_max, ..new }).await
    }

    /// Edits a comment whose current version the editor has seen. With an actor, only its author may.
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
        let written = self.store().edit_comment(edit).await?;
        Ok(written.into())
    }

    /// Deletes a comment. With an actor, only its author may. Returns the position at which it is gone, and whether that
    /// is new.
    pub async fn delete_comment(
        &self,
        actor: Option<Id>,
        id: CommentId,
        at_least: &Frontier,
    ) -> Result<WriteOutcome> {
        self.require_author(actor, id, "delete", at_least).await?;
        self.withdraw(id, Withdrawal::Delete, None).await
    }

    /// Removes a comment as a moderator, who is recorded if it is known.
    pub async fn remove_comment(
        &self,
        id: CommentId,
        reason: Arc<str>,
        by: Option<Moderator>,
    ) -> Result<WriteOutcome> {
        let reason = REASON.accept(reason)?;
        self.withdraw(id, Withdrawal::Remove(reason), by).await
    }

    /// Erases the texts of a comment for good, as a moderator, who is recorded if it is known.
    pub async fn purge_comment(&self, id: CommentId, by: Option<Moderator>) -> Result<WriteOutcome> {
        self.withdraw(id, Withdrawal::Purge, by).await
    }

    /// Locks a thread, or unlocks it, as a moderator.
    pub async fn lock_comment_thread(&self, parent: Parent, locked: bool) -> Result<WriteOutcome> {
        self.context.require_ids(&[parent.id])?;
        self.store().lock_comment_thread(parent, locked).await
    }

    /// A comment, or its tombstone.
    pub async fn read_comment(&self, id: CommentId, viewer: Viewer, at_least: &Frontier) -> Result<Comment> {
        self.one_comment(id, at_least).await.map(|comment| shown(comment, viewer))
    }

    /// A page of a thread.
    pub async fn comment_thread(
        &self,
        parent: Parent,
        order: CommentOrder,
        page: PageRequest<'_>,
        (viewer, at_least): (Viewer, &Frontier),
    ) -> Result<CommentPage> {
        self.context.require_ids(&[parent.id])?;
        let list = CommentList::Thread(parent, order);
        let after = self.place(list, page)?;
        self.require_parent(parent, at_least).await?;
        self.comment_page(list, after.map(|[id]| CommentId(id)), page.limit, (viewer, at_least)).await
    }

    /// A page of an author's active comments, newest first.
    pub async fn comments_by(
        &self,
        author: Id,
        page: PageRequest<'_>,
        (viewer, at_least): (Viewer, &Frontier),
    ) -> Result<CommentPage> {
        self.context.require_ids(&[author])?;
        let list = CommentList::By(author);
        let after = self.place(list, page)?;
        self.comment_page(list, after.map(|[id]| CommentId(id)), page.limit, (viewer, at_least)).await
    }

    /// The texts that a comment has or had, oldest first: for its author while it is active, and for moderators.
    pub async fn comment_history(
        &self,
        id: CommentId,
        page: PageRequest<'_>,
        (viewer, at_least): (Viewer, &Frontier),
    ) -> Result<HistoryPage> {
        let list = CommentList::Versions(id);
        let after = self.place(list, page)?;
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
        let mut filling = Filling::new(page.limit, self.settings.page_bytes_max);
        while let Some(wanted) = filling.wanted() {
            let after = filling.items.last().map_or(after, |last: &CommentVersion| last.version);
            let part = self.store().comment_versions(id, after, wanted, at_least).await?;
            filling.add(wanted, part, |version| version.body.len());
            take_turns().await;
        }
        let next = filling.items.last().filter(|_| filling.more);
        let next = next.map(|last| list.encode([last.version.into()], &self.context.keys));
        Ok(HistoryPage { items: filling.items, next })
    }

    /// How many comments a thread has, and whether it is locked.
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

    /// A comment of the actor's.
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

    /// A thread is read where its parent is: one of a deleted post is gone with it.
    pub(super) async fn require_parent(&self, parent: Parent, at_least: &Frontier) -> Result<()> {
        if parent.kind != ParentKind::Post {
            return Ok(());
        }
        match self.store().posts(&[parent.id], at_least).await?.first() {
            Some(Some(PostState::Present(..))) => Ok(()),
            _ => Err(Error::NotFound { detail: format!("there is no post {}", parent.id) }),
        }
    }

    /// The place in a list that a page begins after. Refuses a page that is too large.
    pub(super) fn place<const LEN: usize>(
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
        (viewer, at_least): (Viewer, &Frontier),
    ) -> Result<CommentPage> {
        let mut filling = Filling::new(limit, self.settings.page_bytes_max);
        while let Some(wanted) = filling.wanted() {
            let after = filling.items.last().map(|last: &Comment| last.id).or(after);
            let part = match list {
                CommentList::By(author) => self.store().comments_by(author, after, wanted, at_least).await?,
                CommentList::Thread(parent, order) => {
                    self.store().comment_thread(parent, order, after, wanted, at_least).await?
                }
                CommentList::Branches(_) | CommentList::Versions(_) => {
                    unreachable!("they are read elsewhere")
                }
            };
            filling.add(wanted, part, text_bytes);
            take_turns().await;
        }
        let next = filling.items.last().filter(|_| filling.more);
        let next = next.map(|last| list.encode([last.id.0], &self.context.keys));
        let items = filling.items.into_iter().map(|comment| shown(comment, viewer)).collect();
        Ok(CommentPage { items, next })
    }

    fn accept_body(&self, body: Arc<str>) -> Result<Arc<str>> {
        TextRule { what: "a comment", chars_max: self.settings.body_chars_max }.accept(body)
    }
}

/// A page that is filled part by part, up to a number of items and of bytes.
pub(super) struct Filling<T> {
    pub items: Vec<T>,
    /// Whether the list goes on after them.
    pub more: bool,
    limit: usize,
    bytes_left: usize,
    ended: bool,
}

impl<T> Filling<T> {
    pub fn new(limit: usize, bytes_left: usize) -> Self {
        Self { items: Vec::new(), more: false, limit, bytes_left, ended: false }
    }

    /// How many more to read; none if the page is full or the list has ended.
    pub fn wanted(&self) -> Option<usize> {
        // One more than asked tells whether there is a next page.
        (!self.ended).then(|| (self.limit + 1 - self.items.len()).min(PART))
    }

    pub fn add(&mut self, wanted: usize, part: Vec<T>, bytes: impl Fn(&T) -> usize) {
        self.ended = part.len() < wanted;
        for item in part {
            let bytes = bytes(&item);
            if self.items.len() == self.limit || (bytes > self.bytes_left && !self.items.is_empty()) {
                (self.more, self.ended) = (true, true);
                return;
            }
            self.bytes_left = self.bytes_left.saturating_sub(bytes);
            self.items.push(item);
        }
    }
}

/// How many bytes of text a comment has.
pub(super) fn text_bytes(comment: &Comment) -> usize {
    let length = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
    length(&comment.body) + length(&comment.reason)
}

/// Lets others who wait for the same thread go on first.
pub(super) async fn take_turns() {
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

/// A comment as a viewer may see it.
pub(super) fn shown(comment: Comment, viewer: Viewer) -> Comment {
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
            let (mut filling, mut left) = (Filling::new(limit, bytes), lengths);
            while let Some(wanted) = filling.wanted() {
                let (part, rest) = left.split_at(wanted.min(left.len()));
                filling.add(wanted, part.to_vec(), |&length| length);
                left = rest;
            }
            (filling.items.len(), filling.more)
        };
        assert_eq!(fill(3, 100, &[]), (0, false));
        assert_eq!(fill(3, 100, &[1, 1, 1]), (3, false));
        assert_eq!(fill(3, 100, &[1, 1, 1, 1]), (3, true));
        assert_eq!(fill(3, 2, &[1, 1, 1]), (2, true));
        assert_eq!(fill(3, 2, &[5, 1, 1]), (1, true), "one at least");
        assert_eq!(fill(3, 2, &[5]), (1, false));
        assert_eq!(fill(1_000, 10_000, &[1; PART * 3]), (PART * 3, false));
        assert_eq!(fill(PART, 10_000, &[1; PART * 3]), (PART, true));
        assert_eq!(fill(PART * 2, 10_000, &[1; PART * 2]), (PART * 2, false));
    }
}
