//! Lists of any length, read page by page.

use std::collections::VecDeque;
use std::marker::PhantomData;

use futures_util::stream::{self, Stream};
use kinfolk_api::{CountedPage, Member, Page};
use serde::de::DeserializeOwned;

use crate::call::{Call, Request};
use crate::{Client, Result, blocking};

/// A page of a list.
pub trait PageOfItems: DeserializeOwned + Send + 'static {
    /// An entry of the list.
    type Item: Send;

    /// The entries, and the cursor of the next page unless this is the last.
    fn into_parts(self) -> (Vec<Self::Item>, Option<String>);

    /// How many entries the whole list has, if it is counted.
    fn count(&self) -> Option<u64> {
        None
    }
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

    fn count(&self) -> Option<u64> {
        Some(self.count)
    }
}

/// A list to be read: one page of it, or all entries, as a stream or, of the blocking client, by iterating.
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
#[must_use = "a list is read with `page`, as a stream or by iterating"]
pub struct List<P, C = Client> {
    client: C,
    request: Request,
    limit: usize,
    cursor: Option<String>,
    page: PhantomData<fn() -> P>,
}

impl<P: PageOfItems, C> List<P, C> {
    pub(crate) fn new(client: C, request: Request) -> Self {
        Self { client, request, limit: 50, cursor: None, page: PhantomData }
    }

    /// How many entries a page has: 1 to 1,000, 50 by default.
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Continues after an earlier page, by its `next`.
    pub fn cursor(self, cursor: impl Into<String>) -> Self {
        Self { cursor: Some(cursor.into()), ..self }
    }

    fn call(&self) -> Call<P> {
        let request = self.request.clone().query("limit", self.limit);
        request.query_optional("cursor", self.cursor.as_deref()).returning()
    }
}

impl<P: PageOfItems> List<P> {
    /// One page.
    ///
    /// # Errors
    /// As any operation.
    pub async fn page(&self) -> Result<P> {
        self.client.send(self.call()).await
    }

    /// All entries from here to the end of the list. The next page is requested when the entries of the last one are taken. After an
    /// error the stream ends.
    pub fn items(self) -> impl Stream<Item = Result<P::Item>> + Send {
        stream::unfold(Items::new(self), |mut items| async move {
            loop {
                if let Some(item) = items.ready.pop_front() {
                    return Some((Ok(item), items));
                }
                let list = items.rest.take()?;
                match list.page().await {
                    Ok(page) => items.add(list, page),
                    Err(error) => return Some((Err(error), items)),
                }
            }
        })
    }
}

impl<P: PageOfItems> List<P, blocking::Client> {
    /// One page.
    ///
    /// # Errors
    /// As any operation.
    pub fn page(&self) -> Result<P> {
        self.client.send(self.call())
    }
}

impl<P: PageOfItems> IntoIterator for List<P, blocking::Client> {
    type Item = Result<P::Item>;
    type IntoIter = Items<P, blocking::Client>;

    fn into_iter(self) -> Items<P, blocking::Client> {
        Items::new(self)
    }
}

/// All entries of a list. The next page is requested when the entries of the last one are taken. After an error it ends.
pub struct Items<P: PageOfItems, C> {
    rest: Option<List<P, C>>,
    /// The entries that were read and not taken yet.
    ready: VecDeque<P::Item>,
}

impl<P: PageOfItems, C> Items<P, C> {
    fn new(list: List<P, C>) -> Self {
        Self { rest: Some(list), ready: VecDeque::new() }
    }

    fn add(&mut self, list: List<P, C>, page: P) {
        let (items, next) = page.into_parts();
        self.ready = items.into();
        self.rest = next.map(|next| list.cursor(next));
    }
}

impl<P: PageOfItems> Iterator for Items<P, blocking::Client> {
    type Item = Result<P::Item>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            let list = self.rest.take()?;
            match list.page() {
                Ok(page) => self.add(list, page),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
