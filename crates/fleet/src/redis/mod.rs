//! A client of Redis Cluster: it sends each node its commands as one batch, and leaves out a node that is slow or gone.
//!
//! Nothing is tried again and no redirection is followed: who asks has another place to ask, and the map of the slots is read again in
//! the background. A node that is no cluster serves all slots.

mod breaker;
mod cluster;
mod command;
mod connection;
mod node;
mod reply;
mod settings;
mod slots;

pub(crate) use cluster::Cluster;
pub(crate) use command::{Command, Script};
pub(crate) use node::Unanswered;
pub(crate) use reply::Reply;
pub use settings::Redis;
pub(crate) use slots::slot_of;
