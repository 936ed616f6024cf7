//! The operations on the change log.

use super::{Change, ChangeLog, LogPage};
use crate::{Context, Frontier, Result};

/// A page of the change log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesPage {
    /// The changes, oldest first within each shard.
    pub items: Vec<Change>,
    /// The frontier after these changes; the next page starts there.
    pub next: Frontier,
}

/// Operations on the change log of a store.
#[derive(Debug)]
pub struct Changes<S> {
    /// The store and its keys.
    pub context: Context<S>,
}

impl<S: ChangeLog> Changes<S> {
    /// Changes after a frontier. A shard that the frontier does not name starts at the oldest change kept.
    pub async fn read(&self, after: &Frontier, limit: usize) -> Result<ChangesPage> {
        self.context.require_limit(limit)?;
        let LogPage { changes, next } = self.context.store().changes(after, limit).await?;
        Ok(ChangesPage { items: changes, next })
    }
}
