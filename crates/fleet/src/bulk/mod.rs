//! Bulk work: imports and exports of whole graphs, and verification.

mod chunk;
mod export;
mod import;
mod staging;
mod verify;

pub use export::Edges;
pub use import::Import;
pub(crate) use staging::OWNER;
