//! What all operations share: a store, the keys that sign tokens and cursors, and common argument checks.

use std::sync::Arc;

use crate::{Deployment, Error, Frontier, Id, IdKind, Keyring, Position, Result, Token};

/// A store with the keys of its deployment.
#[derive(Debug)]
pub struct Context<S> {
    store: Arc<S>,
    pub(crate) keys: Keyring,
    /// The maximum page size.
    page_limit_max: usize,
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        self.with(Arc::clone(&self.store))
    }
}

impl<S> Context<S> {
    /// The default maximum page size.
    pub const PAGE_LIMIT_MAX: usize = 1_000;

    /// A context with the keys of the store's deployment.
    pub fn new(store: Arc<S>, keys: Keyring, page_limit_max: usize) -> Self {
        Self { store, keys, page_limit_max }
    }

    /// The same keys and limits with another store of the deployment.
    pub fn with<T>(&self, store: Arc<T>) -> Context<T> {
        Context { store, keys: self.keys.clone(), page_limit_max: self.page_limit_max }
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The store, as a shared pointer.
    pub fn shared_store(&self) -> &Arc<S> {
        &self.store
    }

    /// Text that carries a message and its signature, for something that a protocol hands out beside tokens and cursors. What was
    /// signed for one purpose is invalid for another.
    pub fn seal(&self, purpose: &str, message: &[u8]) -> String {
        self.keys.seal(purpose.as_bytes(), message)
    }

    /// The message in text that this deployment sealed for the purpose.
    pub fn unseal(&self, purpose: &str, text: &str) -> Option<Vec<u8>> {
        self.keys.open(purpose.as_bytes(), text)
    }

    pub(crate) fn require_limit(&self, limit: usize) -> Result<()> {
        let max = self.page_limit_max;
        if (1..=max).contains(&limit) { Ok(()) } else { Err(Error::LimitOutOfRange { limit, max }) }
    }
}

impl<S: Deployment> Context<S> {
    /// The kind of ids that the deployment uses.
    pub fn id_kind(&self) -> IdKind {
        self.store.id_kind()
    }

    /// The frontier of a client's token.
    pub fn frontier(&self, token: &str) -> Result<Frontier> {
        Token::decode(token, &self.keys)?.frontier_in(self.store.epoch())
    }

    /// The token for a frontier.
    pub fn token(&self, frontier: Frontier) -> String {
        Token { epoch: self.store.epoch(), frontier }.encode(&self.keys)
    }

    /// The token that covers both what the caller had seen and its new write: tokens are joined, never replaced.
    pub fn token_after(&self, seen: &Frontier, written: Position) -> String {
        let mut frontier = seen.clone();
        frontier.advance(written);
        self.token(frontier)
    }

    pub(crate) fn require_ids(&self, ids: &[Id]) -> Result<()> {
        let kind = self.store.id_kind();
        ids.iter().try_for_each(|&id| kind.require(id))
    }
}

/// The operations on one capability of a store, within the limits that a deployment sets.
#[derive(Debug)]
pub struct Operations<S, T> {
    /// The store and its keys.
    pub context: Context<S>,
    pub(crate) settings: T,
}

impl<S, T> Operations<S, T> {
    /// Operations on a store.
    pub fn new(context: Context<S>, settings: T) -> Self {
        Self { context, settings }
    }

    /// The store.
    pub fn store(&self) -> &S {
        self.context.store()
    }
}

pub(crate) fn require_at_most(what: &'static str, count: usize, max: usize) -> Result<()> {
    if count <= max { Ok(()) } else { Err(Error::TooMany { what, count, max }) }
}
