//! The engine: one writer that plans, logs and publishes batches; how a store is opened, replayed and closed; the handle of it.

pub mod batch;
mod handle;
mod id_generator;
mod lifecycle;
mod open;
mod replay;
pub mod request;
pub mod store;
mod visibility;
mod worker_pool;
pub mod writer;

pub use handle::Embedded;
