//! Checks that follow each other on a connection, from the first on that the store can't serve at once: they are checked
//! together and replied to in their order. A store that serves every check at once never has one here.

use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Error, Frontier, Result, Store};

use super::reply::Output;
use crate::access::Permit;
use crate::internal_error;
use crate::metrics::{Operation, Protocol};
use crate::service::Service;

/// A command that waits for its reply.
#[derive(Debug)]
struct Entry {
    operation: Operation,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Its edge waits to be checked.
    Asked,
    /// The store knew at once.
    Known(bool),
    /// It was refused before the store was asked.
    Refused(Error),
}

/// Checks that wait for the store and for their replies.
#[derive(Debug, Default)]
pub(super) struct Checks {
    entries: Vec<Entry>,
    /// The edges of the entries that wait to be checked, in order.
    edges: Vec<Edge>,
    /// Of the last of them.
    permit: Option<Permit>,
}

impl Checks {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many bytes of memory it holds on to.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.edges.capacity() * size_of::<Edge>() + self.entries.capacity() * size_of::<Entry>()
    }

    /// One more check that the store can't serve at once.
    pub(crate) fn ask(&mut self, operation: Operation, permit: Permit, edge: Edge) {
        self.edges.push(edge);
        self.permit = Some(permit);
        self.entries.push(Entry { operation, state: State::Asked });
    }

    /// A check that the store has served, behind others that wait.
    pub(crate) fn add_known(&mut self, operation: Operation, exists: bool) {
        self.entries.push(Entry { operation, state: State::Known(exists) });
    }

    /// A command that is refused, behind checks that have no reply yet.
    pub(crate) fn refuse(&mut self, operation: Operation, error: Error) {
        self.entries.push(Entry { operation, state: State::Refused(error) });
    }

    /// Checks all edges in one call and replies to every entry.
    pub(crate) async fn reply<S: Store>(
        &mut self,
        service: &Service<S>,
        at_least: &Frontier,
        out: &mut Output,
    ) {
        let found = match self.permit.take() {
            None => Ok(Vec::new()),
            Some(permit) => service.graph(permit).check(EdgeKind::Follow, &self.edges, at_least).await,
        };
        if let Err(error) = &found {
            // Once for all of them.
            internal_error::log(error, &"checks over the Redis protocol");
        }
        let mut found = found.map(Vec::into_iter);
        for Entry { operation, state } in self.entries.drain(..) {
            let reply = match state {
                State::Known(exists) => Ok(exists),
                State::Refused(error) => Err(error),
                State::Asked => next(&mut found),
            };
            match reply {
                Ok(exists) => out.flag(exists),
                Err(error) => {
                    service.metrics.failed(Protocol::Resp, operation, error.code());
                    out.error(&error);
                }
            }
        }
        self.edges.clear();
    }
}

/// Whether the next checked edge exists.
fn next(found: &mut Result<std::vec::IntoIter<bool>>) -> Result<bool> {
    match found {
        Ok(found) => Ok(found.next().expect("a store returns a result for every edge")),
        Err(error) => Err(error.clone()),
    }
}
