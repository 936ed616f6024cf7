//! A client of the Kinfolk social graph service.
//!
//! ```no_run
//! use futures_util::TryStreamExt;
//! use kinfolk_client::{Client, ErrorCode};
//!
//! # async fn example() -> kinfolk_client::Result<()> {
//! let client = Client::builder("https://graph.example.org").credential("kf_…").build()?;
//!
//! // A client that acts as user 1. It reads its own writes.
//! let ada = client.acting_as(1);
//! ada.follow(2).await?;
//! assert!(ada.follows(1, 2).await?.following);
//!
//! // Lists are streams; pages are requested as they are needed.
//! let followers: Vec<_> = client.followers(2).items().try_collect().await?;
//!
//! // Refusals carry the code of the problem document.
//! let refused = ada.follow(1).await.unwrap_err();
//! assert_eq!(refused.code(), Some(ErrorCode::SelfFollow));
//! # Ok(())
//! # }
//! ```
//!
//! [`Client`] is async and runs on Tokio; [`blocking::Client`] has the same operations for threads.
//!
//! # Consistency
//! Every write returns a consistency token, which a client carries in its further requests: its reads see its writes, whichever
//! process serves them. [`Client::token`] and [`Client::set_token`] pass tokens on, for instance through a queue or a cookie.
//! Writes of one client are sent one after another, so that each token covers those before it. [`Client::acting_as`] and
//! [`Client::separate`] return clients with a token of their own, whose writes do not wait for each other.
//!
//! # Retries
//! Requests that failed for now are sent again, within bounds ([`Retry`]). A write that may have been applied is repeated only if
//! that is safe: follows, unfollows, deletions and moderation are idempotent; posts are with an id or an idempotency key; comments
//! always have a key. `Retry-After` is honoured.

#![warn(unreachable_pub, clippy::too_many_lines)]

pub mod blocking;
mod builder;
mod call;
mod changes;
mod client;
mod error;
mod jobs;
mod listing;
mod operations;
mod retry;
mod session;
mod transport;

pub use builder::ClientBuilder;
pub use client::{ChangeStream, Client, Download, Received};
pub use error::{Error, Refusal, Result};
pub use jobs::SuggestRun;
pub use kinfolk_api as api;
pub use kinfolk_api::Import;
pub use kinfolk_core::ErrorCode;
pub use kinfolk_core::comments::{CommentOrder, TreeShape};
pub use kinfolk_core::suggestions::Ranking;
pub use listing::{List, PageOfItems};
pub use retry::Retry;
