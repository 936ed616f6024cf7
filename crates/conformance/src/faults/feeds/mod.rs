//! Faults of posts, feeds and inboxes.

pub(super) mod declared;
mod inboxes;
pub(super) mod pages;
mod posts;
