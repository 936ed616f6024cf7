//! What requests of one client have in common: connections, retries, the actor, and the consistency token.

use std::sync::{Arc, Mutex, PoisonError};

use kinfolk_api::Id;
use tokio::sync::Semaphore;

use crate::call::{Request, Response};
use crate::transport::{Carried, Transport};
use crate::{Result, Retry};

/// What all clients share that were made from one.
pub(crate) struct Shared {
    pub transport: Transport,
    pub retry: Retry,
    pub in_flight: Arc<Semaphore>,
}

/// A sequence of requests that sees its own writes.
#[derive(Clone)]
pub(crate) struct Session {
    pub shared: Arc<Shared>,
    actor: Option<Id>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    token: Mutex<Option<String>>,
    /// Held during a write. A write that carries a token returns one that covers both; of two writes at the same time, neither
    /// token would cover the other.
    write: Arc<tokio::sync::Mutex<()>>,
}

impl Session {
    pub fn new(shared: Arc<Shared>, actor: Option<Id>) -> Self {
        Self { shared, actor, state: Arc::default() }
    }

    /// The same connections with a token of its own.
    pub fn separate(&self) -> Self {
        Self::new(Arc::clone(&self.shared), self.actor)
    }

    /// The same connections for an actor, which sees what was seen so far. From then on each has a token of its own.
    pub fn acting_as(&self, actor: Id) -> Self {
        let session = Self::new(Arc::clone(&self.shared), Some(actor));
        session.set_token(self.token());
        session
    }

    pub fn actor(&self) -> Option<Id> {
        self.actor
    }

    pub fn token(&self) -> Option<String> {
        self.state.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_token(&self, token: Option<String>) {
        *self.state.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }

    /// The turn of a write.
    pub fn write_turn(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.state.write)
    }

    pub fn carried(&self) -> Carried {
        Carried { actor: self.actor.map(|actor| actor.to_string()), token: self.token() }
    }

    /// Sends a request once. The token of a write is carried from then on.
    pub fn attempt<T>(&self, request: &Request, read: fn(&Response) -> Result<T>) -> Result<T> {
        let response = self.shared.transport.send(request, &self.carried())?;
        if request.is_write && response.token.is_some() {
            self.set_token(response.token.clone());
        }
        read(&response)
    }
}
