//! What every store must pass: a reference model, a suite and planted faults. Used by tests only.
//!
//! An adapter's tests call [`suite::run`] with [`suite::all`], or with the groups of cases that the adapter has ports for
//! ([`suite::edges`], [`suite::checks`], [`suite::posts`] and so on), and these, with a function that makes an empty store:
//! [`histories`] (or [`graph_histories`] and [`graph_restores`] for the graph alone), [`graph_trims`], [`feed_histories`],
//! [`feed_restarts`], [`comment_histories`], [`comment_restarts`], [`concurrent_histories`], [`concurrent_feeds`] and
//! [`concurrent_comments`], each of these three also with timeouts.
//!
//! All of them call the ports through [`block_on`], without a tokio runtime. A store that needs timers has a runtime or a thread of
//! its own.
//!
//! [`ModelStore`] is the reference; with a [`Fault`] it makes one mistake, and this crate's own test shows that the suite notices
//! every one of them. [`ShardedStore`] is a second store that is right in another way: sharded, with projections that lag, as
//! the fleet's do, and with [`LagFault`]s of its own.
//!
//! | folder | what is in it |
//! |---|---|
//! | `cases` | the suite: named cases, by port |
//! | `random` | histories of one client and of several, and how they are compared and audited |
//! | `model` | the reference, and its store |
//! | `faults` | the mistakes of the reference's store, by port |
//! | `sharded` | the sharded, lagging store and its mistakes |
//!
//! What the suite cannot see from the ports is the adapter's to test: that an acknowledged write survives a
//! crash of the machine, what a full disk or a failed sync does, what retention trims, and that the bytes of purged texts are
//! gone from its files.
//!
//! # Mistakes that are left for later
//! Of the mistakes of published designs, these have no fault here, because no store of edges can make them
//! behind these ports. They belong to the suites of the profile or feature that can:
//! - Redis: an empty set that cannot be cached, `EXPIRE … GT` on a key without TTL, an error swallowed on the
//!   write path, `SINTER` across slots, the size of sets; fills that carry a version (the kind of mistake is
//!   [`Fault::CheckFillsStale`]).
//! - The filter: its size, its rebuild and swap, the count of unfollowed edges in it (the kinds of mistake are
//!   [`Fault::CheckLagsBehind`], [`Fault::CheckKeepsRemoved`] and [`Fault::RestartRebuildMissesTail`]).
//! - PostgreSQL: one routing function, syntax that it refuses, a whole list in one row.
//! - Kafka: the outbox, more partitions.
//! - The reconciler, which compares more than the first followers.
//! - The size of inboxes, and how latencies are averaged.

#![warn(clippy::too_many_lines, unreachable_pub)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test says no, and this crate is only for tests")]

pub mod cases;
mod clock;
mod faults;
mod forward;
mod model;
mod ports;
mod random;
mod seen;
mod sharded;
mod threads;
mod users;
mod writes;

use std::sync::Arc;

use kinfolk_core::{Clock, IdKind};

pub use cases as suite;
pub use clock::SimulatedClock;
pub use faults::Fault;
pub use model::{FAN_OUT_THRESHOLD, Model, ModelStore};
pub use ports::{
    AllPorts, CommentPorts, ContentPorts, EdgePorts, FeedPorts, InboxPorts, PostPorts, SuggestionPorts,
};
pub use random::{
    Reopen, Restore, TimeoutFault, Trim, comment_histories, comment_restarts, concurrent_comments,
    concurrent_comments_with_fault, concurrent_comments_with_timeouts, concurrent_feeds,
    concurrent_feeds_with_fault, concurrent_feeds_with_timeouts, concurrent_histories,
    concurrent_histories_with_fault, concurrent_histories_with_timeouts, feed_histories, feed_restarts,
    graph_histories, graph_restores, graph_trims, histories,
};
pub use sharded::{LagFault, ShardedStore, Sharding};
pub use threads::block_on;
pub use users::{edge, user};
pub use writes::write_commands;

/// Makes an empty store for a kind of ids, which takes its time from the clock.
///
/// For the cases of feeds to reach what they are about, the store is to have small feeds: posts are pulled from
/// [`FAN_OUT_THRESHOLD`] followers on (which the suite expects to see), an inbox holds [`INBOX_ENTRIES`], and a follow
/// brings [`BACKFILL_POSTS`] posts in.
pub type StoreFactory<'a, S> = &'a dyn Fn(IdKind, Arc<dyn Clock>) -> S;

/// How many posts an inbox holds under test.
pub const INBOX_ENTRIES: usize = 5;

/// How many posts of its author a follow brings into an inbox under test.
pub const BACKFILL_POSTS: usize = 3;

/// The seed to give to [`histories`] and the others unless a failure is repeated with another.
pub const SEED: u64 = 20_261_115;
