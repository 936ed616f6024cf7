//! The rules of Kinfolk's social graph, and the ports that a store implements.
//!
//! Nothing here opens a socket or a file, speaks SQL or JSON, or reads the clock by itself: time comes in
//! through [`Clock`], randomness through key bytes, storage through the ports that [`Store`] names.

mod clock;
mod cursor;
mod error;
pub mod feed;
pub mod graph;
pub mod histogram;
mod id;
mod kind;
mod position;
mod sign;
pub mod suggest;
pub mod thread;
mod timestamp;
mod token;

pub use clock::{Clock, SystemClock};
pub use cursor::{ListCursor, ListName, OverlapCursor};
pub use error::{Error, ErrorCode, Result};
pub use id::{Id, IdKind};
pub use kind::EdgeKind;
pub use position::{Epoch, Position};
pub use sign::{Keyring, SigningKey};
pub use timestamp::Timestamp;
pub use token::Token;

/// A store with all ports: what a profile offers.
pub trait Store:
    graph::EdgeStore + graph::ChangeLog + suggest::SuggestionStore + feed::InboxStore + thread::ThreadStore
{
}

impl<
    S: graph::EdgeStore + graph::ChangeLog + suggest::SuggestionStore + feed::InboxStore + thread::ThreadStore,
> Store for S
{
}
