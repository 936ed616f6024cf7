//! Bulk work: imports and exports of whole graphs.

mod chunk;
mod import;
mod staging;

pub use import::Import;
