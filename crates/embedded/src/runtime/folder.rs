//! The folder of an open store, which may be moved or replaced while it is open: asked before anything is written there.

use std::path::Path;
use std::sync::Arc;

use kinfolk_core::{Error, Result};

use super::health::Health;
use crate::disk::folder_lock::FolderLock;

/// The locked folder of an open store.
#[derive(Clone, Debug)]
pub(crate) struct StoreFolder {
    pub lock: Arc<FolderLock>,
    pub health: Arc<Health>,
}

impl StoreFolder {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.lock.path()
    }

    /// Refuses to write into a folder that is not this store's any more, now and from now on.
    pub(crate) fn require(&self) -> Result<()> {
        self.lock.check().map_err(|reason| {
            if self.health.refusal().is_none() {
                tracing::error!(%reason, "writes are refused from now on");
            }
            self.health.refuse_writes(&reason);
            Error::ReadOnly { reason }
        })
    }
}
