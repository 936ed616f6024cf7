//! Writes that follow each other on a connection and are committed together. Reads are not its business: a connection
//! commits its writes before it reads.
//!
//! Follows and unfollows go to the store in one call, so that a pipeline costs one commit. Each command is a request of its
//! own, which is applied or refused by itself; within a transaction, the commands of one follower that come one after another
//! are one request, which is whole. Posts are requests of their own, which are sent in their order before the first is
//! replied to, so that the store can make one commit of them. Follows and posts wait for each other.

use std::ops::Range;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use kinfolk_core::feeds::{NewPost, PostWritten};
use kinfolk_core::graph::{FollowerChanges, Receipt};
use kinfolk_core::{EdgeKind, Error, Result, Store};

use super::reply::Output;
use super::session::Session;
use crate::access::Permit;
use crate::internal_error;
use crate::metrics::{Operation, Protocol};
use crate::service::Service;

/// At this number of edges, the collected writes are committed before more are added.
const EDGES_MAX: usize = 4_096;
/// The maximum number of posts that are with the store at once.
const POSTS_MAX: usize = 1_024;

/// What a write changes.
#[derive(Debug)]
pub(super) enum Change {
    Edges { reply: EdgeReply, changes: FollowerChanges },
    Post(NewPost),
}

impl Change {
    /// How many edges or posts it writes.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Edges { changes, .. } => changes.commands.len(),
            Self::Post(_) => 1,
        }
    }
}

/// A change that the guard has let through.
#[derive(Debug)]
pub(super) struct PermittedChange {
    pub permit: Permit,
    pub change: Change,
}

/// What the reply to a change of edges is.
#[derive(Clone, Copy, Debug)]
pub(super) enum EdgeReply {
    /// The consistency token.
    Token,
    /// How many edges changed.
    Count,
}

/// How a command is carried out.
#[derive(Debug)]
enum Plan {
    Apply(Apply),
    Register {
        permit: Permit,
        post: NewPost,
    },
    /// Refused before the store was asked; here to be replied in its order.
    Refused(Error),
}

/// Some commands of a request.
#[derive(Debug)]
struct Apply {
    permit: Permit,
    reply: EdgeReply,
    request: usize,
    commands: Range<usize>,
}

/// Which plans are committed together. Refused ones go with any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Edges,
    Posts,
}

#[derive(Debug)]
struct Entry {
    plan: Plan,
    operation: Operation,
}

impl Entry {
    fn sort(&self) -> Option<Sort> {
        match self.plan {
            Plan::Apply(_) => Some(Sort::Edges),
            Plan::Register { .. } => Some(Sort::Posts),
            Plan::Refused(_) => None,
        }
    }

    fn apply(&self) -> Option<&Apply> {
        if let Plan::Apply(apply) = &self.plan { Some(apply) } else { None }
    }
}

/// Writes that wait to be committed.
#[derive(Debug, Default)]
pub(super) struct Writes {
    entries: Vec<Entry>,
    requests: Vec<FollowerChanges>,
    /// How many edges the requests are about.
    edges: usize,
    /// Set while the last request can take more commands: no post came after it.
    is_open: bool,
}

impl Writes {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many commands wait.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.edges >= EDGES_MAX || self.entries.len() >= EDGES_MAX
    }

    /// How many bytes of memory it holds on to.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// One more write, or why it is refused. With `is_whole`, it is one request with the write before it if both have the
    /// same follower.
    pub(crate) fn push(&mut self, operation: Operation, change: Result<PermittedChange>, is_whole: bool) {
        let plan = match change {
            Ok(PermittedChange { permit, change: Change::Edges { reply, changes } }) => {
                let commands = self.add(changes, is_whole);
                Plan::Apply(Apply { permit, reply, request: self.requests.len() - 1, commands })
            }
            Ok(PermittedChange { permit, change: Change::Post(post) }) => {
                self.is_open = false;
                Plan::Register { permit, post }
            }
            Err(error) => Plan::Refused(error),
        };
        self.entries.push(Entry { plan, operation });
    }

    /// Adds changes to the last request or a new one; returns where they are in it.
    fn add(&mut self, changes: FollowerChanges, is_whole: bool) -> Range<usize> {
        self.edges += changes.commands.len();
        let takes_more = is_whole && self.is_open;
        self.is_open = true;
        let last = self.requests.last_mut().filter(|last| takes_more && last.follower == changes.follower);
        match last {
            Some(last) => {
                let start = last.commands.len();
                last.commands.extend_from_slice(&changes.commands);
                start..last.commands.len()
            }
            None => {
                let all = 0..changes.commands.len();
                self.requests.push(changes);
                all
            }
        }
    }

    /// Commits everything and replies to each, in order. The session has seen what was written then.
    pub(crate) async fn commit<S: Store>(&mut self, session: &mut Session<S>, out: &mut Output) {
        let entries = std::mem::take(&mut self.entries);
        let mut requests = std::mem::take(&mut self.requests).into_iter();
        (self.edges, self.is_open) = (0, false);
        let mut left = entries.as_slice();
        while !left.is_empty() {
            let sort = left.iter().find_map(Entry::sort);
            let (entries, rest) = left.split_at(joint_len(left, sort));
            left = rest;
            if sort == Some(Sort::Posts) {
                // Boxed: an idle connection need not have room for it.
                Box::pin(register(entries, session, out)).await;
            } else {
                apply(entries, &mut requests, session, out).await;
            }
        }
        // The room is used again.
        self.entries = entries;
        self.entries.clear();
    }
}

/// How many of the first entries are committed together, the first of which that are not refused are of one sort.
fn joint_len(entries: &[Entry], sort: Option<Sort>) -> usize {
    let max = if sort == Some(Sort::Posts) { POSTS_MAX } else { entries.len() };
    let is_other = |entry: &Entry| entry.sort().is_some_and(|other| Some(other) != sort);
    entries.iter().take(max).position(is_other).unwrap_or(max.min(entries.len()))
}

/// Registers posts and replies to each.
async fn register<S: Store>(entries: &[Entry], session: &mut Session<S>, out: &mut Output) {
    let service = &*session.shared.service;
    let register = async |plan: &Plan| match plan {
        Plan::Register { permit, post } => Some(match service.feeds(*permit) {
            Ok(feeds) => feeds.register_post(post.clone()).await,
            Err(error) => Err(error),
        }),
        Plan::Apply(_) | Plan::Refused(_) => None,
    };
    let registering: FuturesOrdered<_> = entries.iter().map(|entry| register(&entry.plan)).collect();
    // A task that has done much is made to pause in between, which would change the order.
    let registered: Vec<_> = tokio::task::unconstrained(registering.collect()).await;
    let positions = registered.iter().flatten().flatten().map(|written| written.position);
    positions.for_each(|position| session.seen.advance(position));
    let token = session.token();
    for (entry, registered) in entries.iter().zip(registered) {
        match (&entry.plan, registered) {
            (_, Some(Ok(PostWritten { post, .. }))) => {
                out.array(2);
                out.id(post.id);
                out.bulk(&token);
            }
            (_, Some(Err(error))) => {
                internal_error::log(&error, &"a post over the Redis protocol");
                fail(entry, &error, &session.shared.service, out);
            }
            (Plan::Refused(error), None) => fail(entry, error, &session.shared.service, out),
            // Not in a run of posts.
            (Plan::Apply(_) | Plan::Register { .. }, None) => {}
        }
    }
}

/// Commits the requests of some entries and replies to each. They share one token, which covers all of them.
async fn apply<S: Store>(
    entries: &[Entry],
    requests: &mut std::vec::IntoIter<FollowerChanges>,
    session: &mut Session<S>,
    out: &mut Output,
) {
    let first = entries.iter().find_map(Entry::apply);
    let last = entries.iter().rev().find_map(Entry::apply);
    let (results, offset) = match (first, last) {
        (Some(first), Some(last)) => {
            let changes: Vec<_> = requests.take(last.request + 1 - first.request).collect();
            (apply_tracked(changes, first.permit, session).await, first.request)
        }
        _ => (Vec::new(), 0),
    };
    log_failures(&results);
    let positions = results.iter().flatten().map(|written| written.position);
    positions.for_each(|position| session.seen.advance(position));
    let wants_token = |apply: &Apply| matches!(apply.reply, EdgeReply::Token);
    let token = entries.iter().filter_map(Entry::apply).any(wants_token).then(|| session.token());
    let service = &session.shared.service;
    for entry in entries {
        match &entry.plan {
            Plan::Refused(error) => fail(entry, error, service, out),
            Plan::Apply(Apply { reply, request, commands, .. }) => {
                match (results.get(request - offset), reply) {
                    (Some(Ok(_)), EdgeReply::Token) => out.bulk(token.as_deref().unwrap_or_default()),
                    (Some(Ok(written)), EdgeReply::Count) => {
                        let changed = written.changed.get(commands.clone()).unwrap_or_default();
                        out.integer(changed.iter().filter(|&&changed| changed).count());
                    }
                    (Some(Err(error)), _) => fail(entry, error, service, out),
                    (None, _) => fail(entry, &Error::Closed, service, out),
                }
            }
            // Not in a run of edges.
            Plan::Register { .. } => {}
        }
    }
}

/// Writes, and invalidates what clients have cached of it before anybody is told that it is written.
async fn apply_tracked<S: Store>(
    changes: Vec<FollowerChanges>,
    permit: Permit,
    session: &Session<S>,
) -> Vec<Result<Receipt>> {
    let shared = &session.shared;
    let tracked = shared.tracking.has_subscribers().then(|| changes.clone());
    let is_no_loop = session.subscription.as_ref().is_some_and(|subscription| subscription.wanted.is_no_loop);
    if is_no_loop {
        shared.tracking.set_writing(session.id, true);
    }
    let results = shared.service.graph(permit).apply(EdgeKind::Follow, changes).await;
    for (changes, result) in tracked.iter().flatten().zip(&results) {
        if let Ok(receipt) = result {
            shared.tracking.written(session.id, changes, receipt);
        }
    }
    if is_no_loop {
        shared.tracking.set_writing(session.id, false);
    }
    results
}

/// Logs what failed on the server's side, once for all that failed alike.
fn log_failures(results: &[Result<Receipt>]) {
    let mut logged = None;
    for error in results.iter().filter_map(|result| result.as_ref().err()) {
        if logged.replace(error.code()) != Some(error.code()) {
            internal_error::log(error, &"a commit over the Redis protocol");
        }
    }
}

fn fail<S: Store>(entry: &Entry, error: &Error, service: &Service<S>, out: &mut Output) {
    service.metrics.failed(Protocol::Resp, entry.operation, error.code());
    out.error(error);
}
