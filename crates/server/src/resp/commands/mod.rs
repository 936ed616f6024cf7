//! The commands, one file each: its entry in the table, how it is parsed, what it does, what it replies.
//!
//! A command writes its reply only when nothing can fail any more, so that an error is its only reply.

pub(super) mod after;
pub(super) mod auth;
pub(super) mod client;
pub(super) mod command;
pub(super) mod common;
pub(super) mod config;
pub(super) mod counts;
pub(super) mod dbsize;
pub(super) mod delpost;
pub(super) mod discard;
pub(super) mod dismiss;
pub(super) mod echo;
pub(super) mod exec;
pub(super) mod exists;
pub(super) mod feed;
pub(super) mod follow;
pub(super) mod followers;
pub(super) mod following;
pub(super) mod follows;
pub(super) mod friends;
pub(super) mod hello;
pub(super) mod info;
pub(super) mod key_type;
pub(super) mod known;
pub(super) mod memory;
pub(super) mod multi;
pub(super) mod object;
pub(super) mod ping;
pub(super) mod post;
pub(super) mod posts;
pub(super) mod quit;
pub(super) mod reset;
pub(super) mod scan;
pub(super) mod scard;
pub(super) mod select;
pub(super) mod sinter;
pub(super) mod sintercard;
pub(super) mod sismember;
pub(super) mod slowlog;
pub(super) mod smembers;
pub(super) mod smismember;
pub(super) mod srandmember;
pub(super) mod sscan;
pub(super) mod suggest;
pub(super) mod time;
pub(super) mod ttl;
pub(super) mod unfollow;
pub(super) mod unwatch;
pub(super) mod watch;

/// What the files of commands import.
mod prelude {
    pub(super) use kinfolk_core::{EdgeKind, Error, Id, Position, Result, Store};

    pub(super) use super::super::batch::Arguments;
    pub(super) use super::super::command::{
        ActorIn, Command, Cost, FAST_READ, Keys, MOVABLE_READ, Run, SESSION,
    };
    pub(super) use super::super::reply::{Output, Version};
    pub(super) use super::super::request::{Request, invalid, is, number, syntax_error, text};
    pub(super) use super::super::session::{Queue, Session};
    pub(super) use super::super::subcommand::{self, Subcommand, wrong_number};
    pub(super) use crate::access::{Actor, Viewer};
    pub(super) use crate::metrics::Operation;
    pub(super) use crate::service::Capability;
}
