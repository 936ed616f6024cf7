//! Lists of any length, read page by page.

use std::collections::VecDeque;

use futures_util::stream::{self, Stream};
use kinfolk_api::{CountedPage, Member, Page};
use serde::de::DeserializeOwned;

use crate::call::{Call, Request};
use crate::{Client, Result};

/// A page of a list.
pub trait PageOfItems: DeserializeOwned + Send + 'static {
    /// An entry of the list.
    type Item: Send;

    /// The entries, and the cursor of the next page unless this is the last.
    fn into_parts(self) -> (Vec<Self::Item>, Option<String>);
}

impl<T: DeserializeOwned + Send + 'static> PageOfItems for Page<T> {
    type Item = T;

    fn into_parts(self) -> (Vec<T>, Option<String>) {
        (self.items, self.next)
    }
}

impl PageOfItems for CountedPage {
    type Item = Member;

    fn into_parts(self) -> (Vec<Member>, Option<String>) {
        (self.items, self.next)
    }
}

/// Which page of a list.
#[derive(Clone)]
pub(crate) struct PageRequest {
    request: Request,
    limit: usize,
    cursor: Option<String>,
}

impl PageRequest {
    pub fn new(request: Request) -> Self {
        Self { request, limit: 50, cursor: None }
    }

    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    pub fn cursor(self, cursor: Option<String>) -> Self {
        Self { cursor, ..self }
    }

    pub fn call<P: PageOfItems>(&self) -> Call<P> {
        let request = self.request.clone().query("limit", self.limit);
        request.query_optional("cursor", self.cursor.as_deref()).returning()
    }
}

/// A list to be read: one page of it, or all entries as a stream.
///
/// ```no_run
/// use futures_util::TryStreamExt;
///
/// # async fn example(client: kinfolk_client::Client) -> kinfolk_client::Result<()> {
/// let first = client.followers(7).limit(10).page().await?;
///
/// let mut followers = std::pin::pin!(client.followers(7).items());
/// while let Some(follower) = followers.try_next().await? {
///     println!("{} since {}", follower.id, follower.since);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a list is read with `page` or `items`"]
pub struct List<P> {
    client: Client,
    request: PageRequest,
    page: std::marker::PhantomData<fn() -> P>,
}

impl<P: PageOfItems> List<P> {
    pub(crate) fn new(client: Client, request: Request) -> Self {
        Self { client, request: PageRequest::new(request), page: std::marker::PhantomData }
    }

    /// How many entries a page has: 1 to 1,000, 50 by default.
    pub fn limit(self, limit: usize) -> Self {
        Self { request: self.request.limit(limit), ..self }
    }

    /// Continues after an earlier page, by its `next`.
    pub fn cursor(self, cursor: impl Into<String>) -> Self {
        Self { request: self.request.cursor(Some(cursor.into())), ..self }
    }

    /// One page.
    ///
    /// # Errors
    /// As any operation.
    pub async fn page(&self) -> Result<P> {
        self.client.send(self.request.call()).await
    }

    /// All entries from here to the end of the list. The next page is requested when the entries of the last one are taken. After an
    /// error the stream ends.
    pub fn items(self) -> impl Stream<Item = Result<P::Item>> + Send {
        let begin = Items { list: Some(self), ready: VecDeque::new() };
        stream::unfold(begin, |mut items| async move {
            loop {
                if let Some(item) = items.ready.pop_front() {
                    return Some((Ok(item), items));
                }
                let list = items.list.take()?;
                match list.page().await.map(P::into_parts) {
                    Ok((page, next)) => {
                        items.ready = page.into();
                        let request = list.request.clone().cursor(next.clone());
                        items.list = next.map(|_| Self { request, ..list });
                    }
                    Err(error) => return Some((Err(error), items)),
                }
            }
        })
    }
}

/// The entries that were read and not taken yet, and the rest of the list.
struct Items<P: PageOfItems> {
    list: Option<List<P>>,
    ready: VecDeque<P::Item>,
}
