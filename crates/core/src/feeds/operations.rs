//! The operations on posts and feeds: the rules that hold for every store and every protocol.

use super::{FeedStore, NewPost, Post, PostState, PostStore, PostWritten, WriteOutcome};
use crate::{EdgeKind, Error, Frontier, Id, ListCursor, ListName, Operations, Page, PageRequest, Result};

/// Limits of posts that a deployment sets.
#[derive(Clone, Copy, Debug)]
pub struct FeedSettings {
    /// The maximum size of a payload, in bytes.
    pub payload_bytes_max: usize,
    /// The maximum size of an idempotency key, in bytes.
    pub key_bytes_max: usize,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self { payload_bytes_max: 4_096, key_bytes_max: 255 }
    }
}

/// A page of posts.
pub type PostPage = Page<Post>;

/// Operations on posts and home feeds.
pub type Feeds<S> = Operations<S, FeedSettings>;

impl<S: PostStore> Feeds<S> {
    /// The maximum size of a payload, in bytes, for callers that check it early.
    pub fn payload_bytes_max(&self) -> usize {
        self.settings.payload_bytes_max
    }

    /// Registers a post.
    pub async fn register_post(&self, post: NewPost) -> Result<PostWritten> {
        self.context.require_ids(&[post.author])?;
        self.context.require_ids(post.id.as_slice())?;
        let max = self.settings.payload_bytes_max;
        if post.payload.as_ref().is_some_and(|payload| payload.len() > max) {
            return Err(Error::PayloadTooLarge { max });
        }
        require_key(post.idempotency_key.as_deref(), self.settings.key_bytes_max)?;
        self.store().register(post).await
    }

    /// A post; [`Error::NotFound`] if it does not exist.
    pub async fn post(&self, id: Id, at_least: &Frontier) -> Result<Post> {
        self.context.require_ids(&[id])?;
        match self.store().posts(&[id], at_least).await?.into_iter().next().flatten() {
            Some(PostState::Present(post, _)) => Ok(post),
            _ => Err(no_post(id)),
        }
    }

    /// Deletes a post. An actor must be its author; without an actor, the caller has checked the permission. The author is
    /// read at least as fresh as `at_least`.
    pub async fn delete_post(&self, actor: Option<Id>, id: Id, at_least: &Frontier) -> Result<WriteOutcome> {
        self.context.require_ids(&[id])?;
        let found = self.store().posts(&[id], at_least).await?;
        let state = found.into_iter().next().flatten().ok_or_else(|| no_post(id))?;
        let author = match state {
            PostState::Present(post, _) => post.author,
            PostState::Deleted { author } => author,
        };
        if actor.is_some_and(|actor| actor != author) {
            return Err(Error::Forbidden { detail: "only its author may delete a post".into() });
        }
        self.store().delete_post(id).await
    }
}

impl<S: FeedStore> Feeds<S> {
    /// A page of an author's posts, newest first.
    pub async fn posts_by(&self, author: Id, page: PageRequest<'_>, at_least: &Frontier) -> Result<PostPage> {
        self.post_page(ListName::Posts, author, page, at_least).await
    }

    /// A page of a user's home feed, newest first.
    pub async fn feed(&self, of: Id, page: PageRequest<'_>, at_least: &Frontier) -> Result<PostPage> {
        self.post_page(ListName::Feed, of, page, at_least).await
    }

    async fn post_page(
        &self,
        list: ListName,
        of: Id,
        page: PageRequest<'_>,
        at_least: &Frontier,
    ) -> Result<PostPage> {
        self.context.require_ids(&[of])?;
        self.context.require_limit(page.limit)?;
        let cursor = ListCursor { list, kind: EdgeKind::Follow, of };
        let after = page.cursor.map(|text| cursor.decode(text, &self.context.keys)).transpose()?;
        let items = match list {
            ListName::Feed => self.store().feed(of, after, page.wanted(), at_least).await?,
            _ => self.store().posts_by(of, after, page.wanted(), at_least).await?,
        };
        Ok(page.page(items, |last| cursor.encode(last.key(), &self.context.keys)))
    }
}

/// Refuses an idempotency key that is empty or too long.
pub(crate) fn require_key(key: Option<&str>, bytes_max: usize) -> Result<()> {
    if key.is_none_or(|key| !key.is_empty() && key.len() <= bytes_max) {
        return Ok(());
    }
    Err(Error::InvalidRequest { detail: format!("an idempotency key has 1 to {bytes_max} bytes") })
}

fn no_post(id: Id) -> Error {
    Error::NotFound { detail: format!("there is no post {id}") }
}
