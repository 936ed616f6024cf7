//! Faults of posts, feeds and inboxes.

mod inboxes;
pub(super) mod pages;
mod posts;
