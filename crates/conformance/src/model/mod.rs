//! The reference model: what a store must answer, written so plainly that it is right by reading it; and the model as a store.

mod comment_store;
pub(crate) mod comments;
mod graph;
pub(crate) mod inboxes;
mod placement;
pub(crate) mod posts;
pub(crate) mod reference;
mod store;
pub(crate) mod suggestions;

pub use graph::Model;
pub use posts::FAN_OUT_THRESHOLD;
pub use store::ModelStore;

pub(crate) use graph::limit_reached;
