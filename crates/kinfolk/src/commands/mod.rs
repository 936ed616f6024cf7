//! One file a command, or a few that answer alike: arguments, work, answer. How lists are printed is in `pages`.

pub mod apply;
pub mod backup;
pub mod changes;
pub mod check;
pub mod comment;
pub mod comments;
pub mod compact;
pub mod config;
pub mod counts;
pub mod demo;
pub mod export;
pub mod generate;
pub mod import;
pub mod keys;
pub mod list;
pub mod moderate;
pub mod overlap;
mod pages;
pub mod post;
pub mod posts;
pub mod restore;
pub mod serve;
pub mod suggest;
pub mod suggestions;
pub mod verify;
pub mod write;

use kinfolk_core::EdgeKind;

/// The kind of edge that the command line works on.
const KIND: EdgeKind = EdgeKind::Follow;
