//! Writes that follow each other on a connection and are committed together. Reads are not its business: whoever
//! reads commits first.
//!
//! All of them go to the store as one request, so that a pipeline costs one commit, in the order in which it was
//! sent. The store refuses a request as a whole; then the halves are tried, so that in the end each command has the
//! answer that it would have had alone.

use std::ops::Range;

use kinfolk_core::graph::{EdgeCommand, Written};
use kinfolk_core::{EdgeKind, Error, ErrorCode, Store};

use super::reply::Output;
use crate::inner;
use crate::metrics::{Operation, Protocol};
use crate::service::Service;

/// Beyond so many edges, what was collected is committed before more is.
const EDGES_MAX: usize = 4_096;

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

    /// One more write: its edges, or why it is refused.
    pub fn push(&mut self, operation: Operation, wish: Result<(Answer, Vec<EdgeCommand>), Error>) {
        let wish = match wish {
            Ok((answer, edges)) => {
                self.edges.extend(edges);
                Wish::Apply(answer)
            }
            Err(error) => Wish::Refused(error),
        };
        self.entries.push(Entry { wish, operation, end: self.edges.len() });
    }

    /// Commits everything and answers each, in order. Returns the token of the last commit.
    pub async fn commit<S: Store>(&mut self, service: &Service<S>, out: &mut Output) -> Option<String> {
        let mut token = None;
        // A stack: the left half of what is split is on top of the right one.
        #[expect(clippy::single_range_in_vec_init, reason = "it is a stack of ranges")]
        let mut ranges = vec![0..self.entries.len()];
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
        self.edges.clear();
        self.entries.clear();
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
            let error = match (&entry.wish, result) {
                (Wish::Refused(error), _) | (_, Err(error)) => Some(error),
                (Wish::Apply(Answer::Token), Ok(written)) => {
                    out.bulk(&written.token);
                    None
                }
                (Wish::Apply(Answer::Count), Ok(written)) => {
                    let changed = written.changed.get(start - first..entry.end - first);
                    out.integer(changed.unwrap_or_default().iter().filter(|&&changed| changed).count());
                    None
                }
            };
            if let Some(error) = error {
                service.metrics.failed(Protocol::Resp, entry.operation, error.code());
                out.error(error);
            }
            start = entry.end;
        }
    }
}

/// Whether a request was refused for what one of its commands is, so that the others may be applied without it.
fn concerns_one(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::SelfFollow | ErrorCode::FollowingLimit | ErrorCode::InvalidId | ErrorCode::TooMany
    )
}
