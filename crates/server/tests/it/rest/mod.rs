//! REST, as a client sees it.

pub(crate) mod access;
mod admin;
mod capabilities;
mod changes;
pub(crate) mod client;
mod comment_access;
mod comment_writes;
mod comments;
mod content_changes;
mod document;
mod entity_tags;
mod errors;
mod foreign;
mod graph;
mod lifecycle;
mod malformed;
mod output;
mod overlaps;
mod post_access;
mod posts;
mod replies;
pub(crate) mod server;
mod suggestion_runs;
mod suggestions;
mod tls;
mod tokens;
