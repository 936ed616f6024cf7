//! The folder of an open store, which may be moved or replaced while it is open: asked before anything is written there.

use std::path::Path;
use std::sync::Arc;

use kinfolk_core::{Error, Result};

use super::health::Health;
use crate::disk::folder_lock::FolderLock;

/// The locked folder of an open store.
#[derive(Clone, Debug)]
pub struct StoreFolder {
    pub lock: Arc<FolderLock>,
    pub health: Arc<Health>,
}

impl StoreFolder {
    /// The folder that a lock holds.
    pub fn new(lock: &Arc<FolderLock>, health: &Arc<Health>) -> Self {
        Self { lock: Arc::clone(lock), health: Arc::clone(health) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.lock.path()
    }

    /// Refuses to write into a folder that is not this store's any more, now and from now on.
    pub fn require(&self) -> Result<()> {
        self.lock.check().map_err(|reason| {
            if self.health.refusal().is_none() {
                tracing::error!(%reason, "writes are refused from now on");
            }
            self.health.refuse_writes(&reason);
            Error::ReadOnly { reason }
        })
    }
}
