//! The operations on the change log.

use super::{ChangeLog, LogPage};
use crate::{Context, Frontier, Result};

/// Operations on the change log of a store.
#[derive(Debug)]
pub struct Changes<S> {
    /// The store and its keys.
    pub context: Context<S>,
}

impl<S: ChangeLog> Changes<S> {
    /// Changes after a frontier. A shard that the frontier does not name starts at the oldest change kept.
    pub async fn read(&self, after: &Frontier, limit: usize) -> Result<LogPage> {
        self.context.require_limit(limit)?;
        self.context.store().changes(after, limit).await
    }
}
