//! The port of posts, for the embedded store.

use std::sync::Arc;

use kinfolk_core::feeds::{NewPost, Post, PostKey, PostState, PostStore, PostWritten, WriteOutcome};
use kinfolk_core::{Frontier, Id, Result};

use crate::Embedded;
use crate::edges::index::Scratch;
use crate::engine::request::weight;

impl PostStore for Embedded {
    async fn register(&self, post: NewPost) -> Result<PostWritten> {
        let weight = weight(post.payload.as_ref().map_or(0, |payload| payload.len()));
        self.request(weight, |batch| batch.plan_post(|planner| planner.register(post))).await?
    }

    async fn delete_post(&self, id: Id) -> Result<WriteOutcome> {
        self.request(1, move |batch| batch.plan_post(|planner| planner.delete(id))).await?
    }

    async fn posts(&self, ids: &[Id], at_least: &Frontier) -> Result<Vec<Option<PostState>>> {
        self.reach(at_least).await?;
        self.store.layers.rows(|| ids.iter().map(|&id| self.store.posts.state(id)).collect())
    }

    async fn posts_by(
        &self,
        author: Id,
        after: Option<PostKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<Post>> {
        /// More than this take longer than a protocol's thread may wait.
        const SHORT_PAGE: usize = 100;
        self.reach(at_least).await?;
        if limit <= SHORT_PAGE {
            return self.store.layers.rows(|| self.store.posts.page(author, after, limit));
        }
        let store = Arc::clone(&self.store);
        let work = move |_: &mut Scratch, _: &dyn Fn() -> bool| {
            store.layers.rows(|| store.posts.page(author, after, limit))
        };
        self.store.workers.run(author, work).await
    }
}
