//! The commands, one file each: arguments, call, output. A new command is a file, its `mod` line and its line in the
//! table below.

mod apply;
mod arguments;
mod backup;
mod changes;
mod check;
mod comment;
mod comment_history;
mod comments;
mod common;
mod compact;
mod config;
mod counts;
mod delete_comment;
mod delete_post;
mod demo;
mod dismiss;
mod edit_comment;
mod export;
mod feed;
mod fleet;
mod follow;
mod followers;
mod following;
mod friends;
mod generate;
mod import;
mod keys;
mod known_followers;
mod lock_comments;
mod pages;
mod plan;
mod post;
mod posts;
mod purge_comment;
mod remove_comment;
mod restore;
mod serve;
mod shards;
mod suggest;
mod suggestions;
mod unfollow;
mod verify;

use anyhow::Result;
use clap::Subcommand;
use kinfolk_core::EdgeKind;

use crate::context::Context;
use crate::print::Outcome;
use crate::settings::Flags;

/// The edge kind that the command line reads and writes.
const KIND: EdgeKind = EdgeKind::Follow;

/// What the files of commands import.
mod prelude {
    pub(super) use std::io::{self, Write};

    pub(super) use anyhow::Result;
    pub(super) use clap::Args;
    pub(super) use kinfolk_core::Id;
    pub(super) use serde::Serialize;

    pub(super) use super::KIND;
    pub(super) use super::arguments::{parse_comment_id, parse_id, parse_key};
    pub(super) use super::pages::PageArguments;
    pub(super) use crate::client::{Client, page_of};
    pub(super) use crate::context::Context;
    pub(super) use crate::interrupt;
    pub(super) use crate::print::{Outcome, Print, grouped, write_stats};
}

macro_rules! commands {
    ($($module:ident::$command:ident,)+) => {
        /// A command with its arguments.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($command($module::$command),)+
        }

        impl Command {
            /// Runs the command.
            pub(crate) fn run(self, context: &Context) -> Result<Outcome> {
                match self {
                    $(Self::$command(command) => command.run(context),)+
                }
            }
        }
    };
}

// In the order of `kinfolk --help`.
commands! {
    serve::Serve,
    demo::Demo,
    config::Config,
    keys::Keys,
    fleet::Fleet,
    shards::Shards,
    plan::Plan,
    follow::Follow,
    unfollow::Unfollow,
    check::Check,
    following::Following,
    followers::Followers,
    friends::Friends,
    counts::Counts,
    common::Common,
    known_followers::KnownFollowers,
    suggestions::Suggestions,
    dismiss::Dismiss,
    suggest::Suggest,
    post::Post,
    delete_post::DeletePost,
    posts::Posts,
    feed::Feed,
    comment::Comment,
    edit_comment::EditComment,
    comments::Comments,
    comment_history::CommentHistory,
    delete_comment::DeleteComment,
    remove_comment::RemoveComment,
    purge_comment::PurgeComment,
    lock_comments::LockComments,
    lock_comments::UnlockComments,
    changes::Changes,
    apply::Apply,
    import::Import,
    export::Export,
    generate::Generate,
    verify::Verify,
    compact::Compact,
    backup::Backup,
    restore::Restore,
}

impl Command {
    /// The settings that were typed as flags of this command only.
    pub(crate) fn server_flags(&self) -> Flags {
        match self {
            Self::Serve(command) => command.flags.0.clone(),
            Self::Demo(command) => command.flags.0.clone(),
            Self::Config(command) => command.flags.0.clone(),
            _ => Flags::default(),
        }
    }
}
