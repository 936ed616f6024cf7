//! What the binary does, seen from outside: one test binary, a module a subject.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod apply;
mod backups;
mod bulk;
mod clock;
mod command_flags;
mod comments;
mod documentation;
mod faults;
#[cfg(feature = "fleet")]
mod fleet;
mod formats;
mod free_space;
mod fuzz;
mod interrupt;
mod json;
mod malformed;
mod plan;
mod posts;
mod queries;
mod real_data;
mod resume;
mod serve;
mod stores;
mod suggest;
mod support;
mod verify;
