//! Checks that follow each other on a connection: they are looked up together and replied to in their order, at once where
//! the store knows them all without waiting.

use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Error, Frontier, Result, Store};

use super::reply::Output;
use crate::access::Permit;
use crate::internal_error;
use crate::metrics::{Operation, Protocol};
use crate::service::Service;

/// A command between the checks that was refused.
#[derive(Debug)]
struct Refused {
    /// How many edges were asked for before it.
    place: usize,
    operation: Operation,
    error: Error,
}

/// Checks that have no reply yet.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// The edges, in order.
    edges: Vec<Edge>,
    /// The operation that asks for each edge.
    operations: Vec<Operation>,
    /// Of the last of them.
    permit: Option<Permit>,
    refused: Vec<Refused>,
    /// For each edge, whether it exists, as far as the store knew at once. Empty before it was asked.
    found: Vec<Option<bool>>,
}

impl Checks {
    pub(crate) fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// How many commands wait for their replies.
    pub(crate) fn len(&self) -> usize {
        self.edges.len() + self.refused.len()
    }

    /// How many bytes of memory it holds on to.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.edges.capacity() * size_of::<Edge>()
            + self.operations.capacity() * size_of::<Operation>()
            + self.refused.capacity() * size_of::<Refused>()
            + self.found.capacity() * size_of::<Option<bool>>()
    }

    /// One more check.
    #[inline]
    pub(crate) fn ask(&mut self, operation: Operation, permit: Permit, edge: Edge) {
        self.edges.push(edge);
        self.operations.push(operation);
        self.permit = Some(permit);
    }

    /// A command that is refused, behind checks that have no reply yet.
    pub(crate) fn refuse(&mut self, operation: Operation, error: Error) {
        self.refused.push(Refused { place: self.edges.len(), operation, error });
    }

    /// Replies to every command if the store knows all edges without waiting; returns whether it does.
    pub(crate) fn reply_now<S: Store>(
        &mut self,
        service: &Service<S>,
        at_least: &Frontier,
        out: &mut Output,
    ) -> bool {
        let Some(permit) = self.permit else { return false };
        let graph = service.graph(permit);
        if graph.check_each_now(EdgeKind::Follow, &self.edges, at_least, &mut self.found).is_err()
            || self.found.contains(&None)
        {
            return false;
        }
        self.write(service, Ok(Vec::new()), out);
        true
    }

    /// Looks up all edges that are not known yet in one call, and replies to every command.
    pub(crate) async fn reply<S: Store>(
        &mut self,
        service: &Service<S>,
        at_least: &Frontier,
        out: &mut Output,
    ) {
        self.found.resize(self.edges.len(), None);
        let known = self.edges.iter().zip(&self.found);
        let unknown: Vec<Edge> = known.filter(|(_, found)| found.is_none()).map(|(&edge, _)| edge).collect();
        let found = match self.permit {
            None => Ok(Vec::new()),
            Some(permit) => service.graph(permit).check(EdgeKind::Follow, &unknown, at_least).await,
        };
        if let Err(error) = &found {
            // Once for all of them.
            internal_error::log(error, &"checks over the Redis protocol");
        }
        self.write(service, found, out);
    }

    /// Replies to every command in order, with `looked_up` for the edges that were not known at once.
    fn write<S: Store>(&mut self, service: &Service<S>, looked_up: Result<Vec<bool>>, out: &mut Output) {
        let fail = |operation, error: &Error, out: &mut Output| {
            service.metrics.failed(Protocol::Resp, operation, error.code());
            out.error(error);
        };
        let mut looked_up = looked_up.map(Vec::into_iter);
        let mut refused = self.refused.drain(..).peekable();
        for (place, (found, &operation)) in self.found.drain(..).zip(&self.operations).enumerate() {
            while let Some(Refused { operation, error, .. }) = refused.next_if(|next| next.place <= place) {
                fail(operation, &error, out);
            }
            match found.map_or_else(|| next(&mut looked_up), Ok) {
                Ok(exists) => out.flag(exists),
                Err(error) => fail(operation, &error, out),
            }
        }
        for Refused { operation, error, .. } in refused {
            fail(operation, &error, out);
        }
        self.edges.clear();
        self.operations.clear();
        self.permit = None;
    }
}

/// Whether the next edge that was looked up exists.
fn next(looked_up: &mut Result<std::vec::IntoIter<bool>>) -> Result<bool> {
    match looked_up {
        Ok(looked_up) => Ok(looked_up.next().expect("a store returns a result for every edge")),
        Err(error) => Err(error.clone()),
    }
}
