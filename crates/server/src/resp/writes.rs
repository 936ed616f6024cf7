//! Writes that follow each other on a connection and are committed together. Reads are not its business: whoever
//! reads commits first.
//!
//! Edges go to the store as one request, so that a pipeline costs one commit, in the order in which it was sent. The
//! store refuses a request as a whole; then the halves are tried, so that in the end each command has the answer that
//! it would have had alone. Posts are requests of their own, which are sent in their order before the first is
//! answered, so that the store can make one commit of them. Edges and posts wait for each other.

use std::ops::Range;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use kinfolk_core::feed::{NewPost, WrittenPost};
use kinfolk_core::graph::{EdgeCommand, Written};
use kinfolk_core::{EdgeKind, Error, ErrorCode, Store};

use super::reply::Output;
use crate::inner;
use crate::metrics::{Operation, Protocol};
use crate::service::Service;

/// Beyond so many edges, what was collected is committed before more is.
const EDGES_MAX: usize = 4_096;
/// So many posts are with the store at once.
const POSTS_MAX: usize = 1_024;

/// What a write is about.
#[derive(Debug)]
pub(super) enum Change {
    Edges(Answer, Vec<EdgeCommand>),
    Post(NewPost),
}

/// What a client wants to know of a write.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// The consistency token.
    Token,
    /// How many edges changed.
    Count,
}

#[derive(Debug)]
enum Wish {
    Apply(Answer),
    Register(NewPost),
    /// Refused before the store was asked; here to be answered in its turn.
    Refused(Error),
}

#[derive(Debug)]
struct Entry {
    wish: Wish,
    operation: Operation,
    /// Where its edges end in the edges of all.
    end: usize,
}

/// Writes that wait to be committed.
#[derive(Debug, Default)]
pub(super) struct Writes {
    edges: Vec<EdgeCommand>,
    entries: Vec<Entry>,
}

impl Writes {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.edges.len() >= EDGES_MAX || self.entries.len() >= EDGES_MAX
    }

    /// How many bytes of memory it holds on to.
    pub fn capacity_bytes(&self) -> usize {
        self.edges.capacity() * size_of::<EdgeCommand>() + self.entries.capacity() * size_of::<Entry>()
    }

    /// One more write, or why it is refused.
    pub fn push(&mut self, operation: Operation, change: Result<Change, Error>) {
        let wish = match change {
            Ok(Change::Edges(answer, edges)) => {
                self.edges.extend(edges);
                Wish::Apply(answer)
            }
            Ok(Change::Post(post)) => Wish::Register(post),
            Err(error) => Wish::Refused(error),
        };
        self.entries.push(Entry { wish, operation, end: self.edges.len() });
    }

    /// Commits everything and answers each, in order. Returns the token of the last commit.
    pub async fn commit<S: Store>(&mut self, service: &Service<S>, out: &mut Output) -> Option<String> {
        let mut token = None;
        let mut at = 0;
        while at < self.entries.len() {
            let (range, are_posts) = self.run(at);
            at = range.end;
            let committed = if are_posts {
                // Boxed: an idle connection need not have room for it.
                Box::pin(self.register(range, service, out)).await
            } else {
                self.apply(range, service, out).await
            };
            token = committed.or(token);
        }
        self.edges.clear();
        self.entries.clear();
        token
    }

    /// The entries from one on that are committed together, and whether these are posts. What is refused goes with any.
    fn run(&self, start: usize) -> (Range<usize>, bool) {
        let mut sort = None;
        let mut end = start;
        for entry in self.entries.iter().skip(start) {
            let of_entry = match entry.wish {
                Wish::Apply(_) => Some(false),
                Wish::Register(_) => Some(true),
                Wish::Refused(_) => None,
            };
            let is_long = sort == Some(true) && end - start == POSTS_MAX;
            if is_long || (sort.is_some() && of_entry.is_some() && sort != of_entry) {
                break;
            }
            sort = sort.or(of_entry);
            end += 1;
        }
        (start..end, sort == Some(true))
    }

    /// Registers posts and answers each.
    async fn register<S: Store>(
        &mut self,
        range: Range<usize>,
        service: &Service<S>,
        out: &mut Output,
    ) -> Option<String> {
        let entries = self.entries.get(range).unwrap_or_default();
        let register = async |wish: &Wish| match wish {
            Wish::Register(post) => Some(service.graph.register_post(post.clone()).await),
            Wish::Apply(_) | Wish::Refused(_) => None,
        };
        let registering: FuturesOrdered<_> = entries.iter().map(|entry| register(&entry.wish)).collect();
        // A task that has done much is made to pause in between, which would change the order.
        let registered: Vec<_> = tokio::task::unconstrained(registering.collect()).await;
        let mut token = None;
        for (entry, registered) in entries.iter().zip(registered) {
            match (&entry.wish, registered) {
                (_, Some(Ok(WrittenPost { post, token: written, .. }))) => {
                    out.array(2);
                    out.id(post.id);
                    out.bulk(&written);
                    token = Some(written);
                }
                (_, Some(Err(error))) => {
                    inner::log(&error, &"a post over the Redis protocol");
                    fail(entry, &error, service, out);
                }
                (Wish::Refused(error), None) => fail(entry, error, service, out),
                // Not in a run of posts.
                (Wish::Apply(_) | Wish::Register(_), None) => {}
            }
        }
        token
    }

    /// Commits edges and answers each entry.
    async fn apply<S: Store>(
        &self,
        range: Range<usize>,
        service: &Service<S>,
        out: &mut Output,
    ) -> Option<String> {
        let mut token = None;
        // A stack: the left half of what is split is on top of the right one.
        let mut ranges = vec![range];
        while let Some(range) = ranges.pop() {
            let edges = self.edges(&range).to_vec();
            match service.graph.apply(EdgeKind::Follow, edges).await {
                Err(error) if range.len() > 1 && concerns_one(&error) => {
                    let middle = range.start + range.len() / 2;
                    ranges.push(middle..range.end);
                    ranges.push(range.start..middle);
                }
                result => {
                    if let Err(error) = &result {
                        // Once for all of them.
                        inner::log(error, &"a commit over the Redis protocol");
                    }
                    self.answer(&range, result.as_ref(), service, out);
                    token = result.ok().map(|written| written.token).or(token);
                }
            }
        }
        token
    }

    fn edges(&self, range: &Range<usize>) -> &[EdgeCommand] {
        self.edges.get(self.start(range.start)..self.start(range.end)).unwrap_or_default()
    }

    /// Where the edges of an entry start.
    fn start(&self, entry: usize) -> usize {
        entry.checked_sub(1).and_then(|before| self.entries.get(before)).map_or(0, |before| before.end)
    }

    fn answer<S>(
        &self,
        range: &Range<usize>,
        result: Result<&Written, &Error>,
        service: &Service<S>,
        out: &mut Output,
    ) {
        let first = self.start(range.start);
        let mut start = first;
        for entry in self.entries.get(range.clone()).unwrap_or_default() {
            match (&entry.wish, result) {
                (Wish::Refused(error), _) | (_, Err(error)) => fail(entry, error, service, out),
                (Wish::Apply(Answer::Token), Ok(written)) => out.bulk(&written.token),
                (Wish::Apply(Answer::Count), Ok(written)) => {
                    let changed = written.changed.get(start - first..entry.end - first);
                    out.integer(changed.unwrap_or_default().iter().filter(|&&changed| changed).count());
                }
                // Not in a run of edges.
                (Wish::Register(_), Ok(_)) => {}
            }
            start = entry.end;
        }
    }
}

fn fail<S>(entry: &Entry, error: &Error, service: &Service<S>, out: &mut Output) {
    service.metrics.failed(Protocol::Resp, entry.operation, error.code());
    out.error(error);
}

/// Whether a request was refused for what one of its commands is, so that the others may be applied without it.
fn concerns_one(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::SelfFollow | ErrorCode::FollowingLimit | ErrorCode::InvalidId | ErrorCode::TooMany
    )
}
