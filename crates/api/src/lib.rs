//! The JSON of Kinfolk's REST interface as types: requests, responses, problem documents and events.
//!
//! The server serialises these types, the client deserialises them, the command line prints them with `--json`, and the OpenAPI
//! document is derived from them (feature `openapi`). This crate has no rules and sends nothing: it knows the types of
//! `kinfolk-core` and how they look in JSON.
//!
//! - Requests are written by clients and described by the OpenAPI document. The server reads their bodies with parsers of its own,
//!   which tell why an id or a payload is refused.
//! - Ids are strings; integers are accepted on input. Times are RFC 3339 in UTC with milliseconds.
//! - A missing value is a missing field, never `null`; only an [`Event`] of the topic has all its fields.
//! - Responses may gain fields: readers ignore those that they do not know.

#![warn(unreachable_pub, clippy::too_many_lines)]

mod admin;
mod changes;
mod comments;
mod events;
mod graph;
mod page;
mod payload;
mod posts;
mod problem;
mod scalar;
#[cfg(feature = "openapi")]
pub mod schema;
mod suggestions;
mod write;

pub use admin::{
    BackupOutcome, CompactOutcome, ExportContent, FileFormat, Import, ImportOutcome, JobLine, Progress,
    Status, SuggestOutcome, VerifyOutcome,
};
pub use changes::{Change, Changes};
pub use comments::{
    Comment, CommentEdit, CommentHistory, CommentNode, CommentRemoval, CommentTree, CommentVersion, Comments,
    NewComment,
};
pub use events::Event;
pub use graph::{
    CheckRequest, CheckResults, Counts, CountsList, Follows, ListEntry, Member, Relationship, Relationships,
    Users,
};
pub use page::{CountedPage, Page};
pub use payload::Payload;
pub use posts::{NewPost, Post, PostWithComments, Posts};
pub use problem::Problem;
pub use scalar::{CommentId, Id, Time};
pub use suggestions::{SuggestedUser, Suggestions};
pub use write::{WriteOutcome, Written};

/// The names of headers.
pub mod header {
    /// Carries consistency tokens, both ways.
    pub const TOKEN: &str = "kinfolk-token";
    /// Says whether a write changed anything: `true` or `false`.
    pub const CHANGED: &str = "kinfolk-changed";
    /// Names the user for whom a service acts.
    pub const ACTOR: &str = "kinfolk-actor";
    /// Names a write, so that it can be repeated safely.
    pub const IDEMPOTENCY_KEY: &str = "idempotency-key";
    /// Names a request in responses and logs.
    pub const REQUEST_ID: &str = "x-request-id";
}
