//! Posts for measurements: registered from one thread, and pages of feeds. Authors, times and ids are the caller's.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use kinfolk_core::feeds::{FeedStore, NewPost, Post, PostKey, PostStore};
use kinfolk_core::{Frontier, Id, Timestamp};
use kinfolk_embedded::Embedded;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// How many posts or pages are under way at a time where it is not their latency that matters.
const OUTSTANDING: usize = 64;

/// A post by a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    pub author: u64,
    pub millis: u64,
    /// Rises with the time, so that it alone orders posts.
    pub id: u64,
}

impl Made {
    /// The post of a moment that has this number.
    pub fn at(author: u64, millis: u64, number: u64) -> Self {
        Self { author, millis, id: (millis << 20) | (number & 0xf_ffff) }
    }

    /// What the application has to say about it.
    pub fn payload(self) -> String {
        format!(r#"{{"text":"{:-<40}"}}"#, self.id)
    }

    pub fn registration(self) -> NewPost {
        NewPost {
            id: Some(Id::Integer(self.id)),
            author: Id::Integer(self.author),
            created_at: Some(Timestamp::from_millis(self.millis)),
            payload: Some(self.payload().into()),
            idempotency_key: None,
        }
    }
}

/// Registers posts, and returns when all of them are durable.
pub fn register_all(store: &Embedded, posts: impl Iterator<Item = NewPost> + 'static) -> Result<()> {
    for_each(OUTSTANDING, posts, {
        let store = store.clone();
        move |post| {
            let store = store.clone();
            async move { store.register(post).await }
        }
    })
}

/// Lets users read their feeds, after which they have inboxes.
pub fn wake(store: &Embedded, users: Vec<u64>) -> Result<()> {
    for_each(OUTSTANDING, users.into_iter(), {
        let store = store.clone();
        move |user| {
            let store = store.clone();
            async move { store.feed(Id::Integer(user), None, 1, Frontier::EMPTY).await }
        }
    })
}

/// Does something with every item, several at a time.
pub fn for_each<T: 'static, R, F: Future<Output = kinfolk_core::Result<R>> + 'static>(
    outstanding: usize,
    items: impl Iterator<Item = T> + 'static,
    work: impl Fn(T) -> F + 'static,
) -> Result<()> {
    let (items, work) = (Rc::new(RefCell::new(items)), Rc::new(work));
    runtime()?.block_on(LocalSet::new().run_until(async {
        let tasks: Vec<_> = (0..outstanding)
            .map(|_| {
                let (items, work) = (Rc::clone(&items), Rc::clone(&work));
                tokio::task::spawn_local(async move {
                    loop {
                        let Some(item) = items.borrow_mut().next() else { return anyhow::Ok(()) };
                        work(item).await?;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.context("a task panicked")??;
        }
        Ok(())
    }))
}

/// A page of a feed, which has to be full and in order.
pub async fn full_page(store: &Embedded, of: u64, after: Option<PostKey>, limit: usize) -> Result<Vec<Post>> {
    let page = store.feed(Id::Integer(of), after, limit, Frontier::EMPTY).await?;
    if page.len() != limit || !page.is_sorted_by(|one, other| one.key() < other.key()) {
        bail!("a page of {limit} of the feed of user {of} has {} posts or is not in order", page.len());
    }
    Ok(page)
}

/// A runtime for one thread.
pub fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}
