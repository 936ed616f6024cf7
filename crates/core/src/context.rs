//! What the operations of every part of the core work with: a store, the keys that sign tokens and cursors, and the checks
//! of arguments that all of them share.

use std::sync::Arc;

use crate::{Deployment, Error, Frontier, Id, IdKind, Keyring, Position, Result, Token};

/// Which page of a list.
#[derive(Clone, Copy, Debug)]
pub struct PageRequest<'a> {
    /// How many entries.
    pub limit: usize,
    /// Where to go on: the `next` of the page before.
    pub cursor: Option<&'a str>,
}

/// A store with the keys of its deployment.
#[derive(Debug)]
pub struct Context<S> {
    store: Arc<S>,
    pub(crate) keys: Keyring,
    /// The largest page.
    page_limit_max: usize,
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        self.with(Arc::clone(&self.store))
    }
}

impl<S> Context<S> {
    /// The largest page that deployments allow unless they are set otherwise.
    pub const PAGE_LIMIT_MAX: usize = 1_000;

    /// A context with the keys of the store's deployment.
    pub fn new(store: Arc<S>, keys: Keyring, page_limit_max: usize) -> Self {
        Self { store, keys, page_limit_max }
    }

    /// The same for another part of the deployment.
    pub fn with<T>(&self, store: Arc<T>) -> Context<T> {
        Context { store, keys: self.keys.clone(), page_limit_max: self.page_limit_max }
    }

    /// The store below.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The store below, to be shared.
    pub fn shared_store(&self) -> &Arc<S> {
        &self.store
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

    /// What a client's token asks a read to have seen.
    pub fn frontier(&self, token: &str) -> Result<Frontier> {
        Token::decode(token, &self.keys)?.frontier_in(self.store.epoch())
    }

    /// The token of a frontier.
    pub fn token(&self, frontier: Frontier) -> String {
        Token { epoch: self.store.epoch(), frontier }.encode(&self.keys)
    }

    /// The token of what a caller had seen and of what its write did: tokens are joined, never replaced.
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

pub(crate) fn require_at_most(what: &'static str, count: usize, max: usize) -> Result<()> {
    if count <= max { Ok(()) } else { Err(Error::TooMany { what, count, max }) }
}
