//! What all ports share: which deployment they belong to.

use crate::{Epoch, IdKind};

/// A part of a deployment.
pub trait Deployment: Send + Sync + 'static {
    /// Whether the profile has what this port is about. Only [`crate::Absent`] says no.
    const IS_PRESENT: bool = true;

    /// The kind of ids that the deployment uses.
    fn id_kind(&self) -> IdKind;

    /// The current life of its change log.
    fn epoch(&self) -> Epoch;
}
