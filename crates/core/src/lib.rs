//! The rules of Kinfolk's social graph, and the ports that a store implements.
//!
//! This crate opens no socket and no file, knows neither SQL nor JSON, and never reads the system clock by itself: time
//! comes in through [`Clock`], randomness through key bytes, storage through the ports of [`Store`].

#![warn(clippy::too_many_lines, unreachable_pub)]

mod absent;
pub mod bulk;
pub mod changes;
mod clock;
pub mod comments;
mod context;
mod cursor;
mod deployment;
mod error;
pub mod feeds;
mod frontier;
pub mod graph;
pub mod histogram;
mod id;
mod idempotency;
mod kind;
mod names;
mod page;
mod planned;
mod position;
mod shard;
mod sign;
mod store;
pub mod suggestions;
mod timestamp;
mod token;
pub mod varint;

pub use absent::Absent;
pub use clock::{Clock, SystemClock};
pub use context::{Context, Operations};
pub use cursor::{ListCursor, ListName, OverlapCursor};
pub use deployment::Deployment;
pub use error::{Error, ErrorCode, Result};
pub use frontier::Frontier;
pub use id::{Id, IdGenerator, IdKind};
pub use idempotency::{KeyHash, body_key_hash, key_hash};
pub use kind::EdgeKind;
pub use page::{Page, PageRequest};
pub use planned::Planned;
pub use position::{Epoch, ParsePositionError, Position, Sequence, Shard};
pub use sign::{Keyring, SigningKey};
pub use store::{ContentStore, GraphStore, Store};
pub use timestamp::Timestamp;
pub use token::Token;
