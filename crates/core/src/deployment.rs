//! What all ports share: which deployment they belong to.

use crate::{Epoch, IdKind};

/// A part of a deployment.
pub trait Deployment: Send + Sync + 'static {
    /// The kind of ids that the deployment uses.
    fn id_kind(&self) -> IdKind;

    /// The current life of its change log.
    fn epoch(&self) -> Epoch;
}
