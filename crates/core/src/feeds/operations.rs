//! The operations on posts and feeds: the rules that hold whatever store is below and whatever protocol is above.

use super::{FeedStore, NewPost, Post, PostState, PostStore, PostWritten, WriteOutcome};
use crate::{Context, EdgeKind, Error, Frontier, Id, ListCursor, ListName, PageRequest, Result};

/// What a deployment sets about posts.
#[derive(Clone, Copy, Debug)]
pub struct FeedSettings {
    /// The longest payload, in bytes.
    pub payload_bytes_max: usize,
    /// The longest idempotency key, in bytes.
    pub key_bytes_max: usize,
}

impl Default for FeedSettings {
    fn default() -> Self {
        Self { payload_bytes_max: 4_096, key_bytes_max: 255 }
    }
}

/// A page of posts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostPage {
    /// The posts.
    pub items: Vec<Post>,
    /// The cursor of the next page, unless this is the last.
    pub next: Option<String>,
}

/// Posts and home feeds: a store, with the rules in front of it.
#[derive(Debug)]
pub struct Feeds<S> {
    /// The store and its keys.
    pub context: Context<S>,
    settings: FeedSettings,
}

impl<S> Feeds<S> {
    /// Feeds on a store.
    pub fn new(context: Context<S>, settings: FeedSettings) -> Self {
        Self { context, settings }
    }

    /// The store below.
    pub fn store(&self) -> &S {
        self.context.store()
    }
}

impl<S: PostStore> Feeds<S> {
    /// The longest payload of a post, in bytes: whoever prepares one can refuse a longer one before that.
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

    /// A post, if it is there.
    pub async fn post(&self, id: Id, at_least: &Frontier) -> Result<Post> {
        self.context.require_ids(&[id])?;
        match self.store().posts(&[id], at_least).await?.into_iter().next().flatten() {
            Some(PostState::Present(post, _)) => Ok(post),
            _ => Err(no_post(id)),
        }
    }

    /// Deletes a post. With an actor, only its author may; without one, the caller has made sure of that. Whose it is, is
    /// read with everything that the caller has seen. Returns the position at which the post is gone, and whether it was there.
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
        // One more than asked tells whether there is a next page.
        let wanted = page.limit + 1;
        let mut items = match list {
            ListName::Feed => self.store().feed(of, after, wanted, at_least).await?,
            _ => self.store().posts_by(of, after, wanted, at_least).await?,
        };
        let more = items.len() > page.limit;
        items.truncate(page.limit);
        let next = items.last().filter(|_| more).map(|last| cursor.encode(last.key(), &self.context.keys));
        Ok(PostPage { items, next })
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
