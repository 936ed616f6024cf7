//! The command line as it can be typed. Every flag is defined here or beside its command, once.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use kinfolk_core::comments::CommentId;
use kinfolk_core::{Id, IdKind};

use crate::answer::Outcome;
use crate::commands::{
    apply, backup, changes, check, comment, comments, compact, config, counts, demo, export, generate,
    import, keys, list, moderate, overlap, post, posts, restore, serve, suggest, suggestions, verify, write,
};
use crate::context::Context;
use crate::place::{List, PostList};
use crate::profile::embedded::{ClockLimits, Settings, WallClock};
use crate::settings::{CommonFlags, Configuration, FileArgument, Flags, Texts};

const EXAMPLES: &str = "\
Examples:
  kinfolk serve                          serve ./kinfolk-data on 127.0.0.1:7400 (REST) and :7401 (Redis)
  kinfolk follow 1 2                     user 1 follows user 2
  kinfolk check 1 2                      yes or no; exit status 0 or 1
  kinfolk followers 2 --limit 10         who follows user 2, newest first
  kinfolk suggestions 1                  whom user 1 may know
  kinfolk post 2                         user 2 posts something
  kinfolk feed 1                         the posts of those whom user 1 follows, newest first
  kinfolk comments 70 --tree             what was said about post 70
  kinfolk import follows.csv.zst         add the edges of a file
  kinfolk export - | head                all edges as CSV
  kinfolk counts 1 2 3 --json            answers as one JSON document

Commands ask the server at --url, or work on the folder --data, which no server may have open.
Exit status: 0, 1 (the answer is no, or the work failed), 2 (wrong usage).";

/// A social graph service: who follows whom.
#[derive(Debug, Parser)]
#[command(name = "kinfolk", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct Arguments {
    #[command(flatten)]
    global: GlobalArguments,
    #[command(subcommand)]
    command: Command,
}

/// What can be given to every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct GlobalArguments {
    #[command(flatten)]
    file: FileArgument,
    #[command(flatten)]
    flags: CommonFlags,
    #[command(flatten)]
    tuning: TuningArguments,
}

/// Sizes that suit everybody as they are; tests make them small so that everything happens often.
#[derive(Debug, Args)]
struct TuningArguments {
    /// Close a segment of the change log at this size
    #[arg(long, global = true, value_name = "BYTES", env = "KINFOLK_TEST_SEGMENT_BYTES", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1_024..=1 << 32))]
    segment_bytes: Option<u64>,

    /// Write recent rows to disk when there are so many
    #[arg(long, global = true, value_name = "ROWS", env = "KINFOLK_TEST_FLUSH_ROWS", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    flush_rows: Option<u64>,

    /// Write recent posts to disk when they take so much
    #[arg(long, global = true, value_name = "BYTES", env = "KINFOLK_TEST_FLUSH_POST_BYTES", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    flush_post_bytes: Option<u64>,

    /// Write an index snapshot after so many events
    #[arg(long, global = true, value_name = "EVENTS", env = "KINFOLK_TEST_SNAPSHOT_EVENTS", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    snapshot_events: Option<u64>,

    /// Keep at most so much of the change log
    #[arg(long, global = true, value_name = "BYTES", env = "KINFOLK_TEST_LOG_KEEP_BYTES", hide = true)]
    log_keep_bytes: Option<u64>,

    /// Move the clock by so many milliseconds as this file says
    #[arg(long, global = true, value_name = "FILE", env = "KINFOLK_TEST_CLOCK_FILE", hide = true)]
    clock_file: Option<PathBuf>,
}

impl TuningArguments {
    /// The sizes of a store, with those that are settings.
    fn into_settings(self, configuration: &Configuration) -> Settings {
        let defaults = Settings::default();
        Settings {
            cache_bytes: configuration.cache.size.0,
            log_keep: configuration.log.keep.0,
            log_keep_bytes: self.log_keep_bytes.unwrap_or(configuration.log.keep_bytes.0),
            segment_bytes: self.segment_bytes.unwrap_or(defaults.segment_bytes),
            flush_rows: self.flush_rows.unwrap_or(defaults.flush_rows),
            flush_post_bytes: self.flush_post_bytes.unwrap_or(defaults.flush_post_bytes),
            snapshot_events: self.snapshot_events.unwrap_or(defaults.snapshot_events),
            fan_out_threshold: configuration.feed.fan_out_threshold.into(),
            inbox_entries: configuration.feed.inbox_entries.0,
            inbox_idle: configuration.feed.inbox_idle.0,
            inbox_bytes: configuration.feed.inbox_memory.0,
            backfill_posts: configuration.feed.backfill_posts as usize,
            comment_key_keep: configuration.comments.key_keep.0,
            erase_after: configuration.comments.erase_after.0,
            clock: ClockLimits {
                jump_max: configuration.clock.jump_max.0,
                gap_max: configuration.clock.gap_max.0,
            },
            ..defaults
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a graph over REST and the Redis protocol
    Serve(serve::Arguments),
    /// Make up a graph in a temporary folder, serve it, and show what it answers
    Demo(demo::Arguments),
    /// Print the effective configuration, or the reference of all settings
    Config(config::Arguments),
    /// Manage the API keys that a server lets in
    Keys(keys::Arguments),
    /// Make one user follow another
    Follow(write::FollowArguments),
    /// Make one user not follow another any more
    Unfollow(write::UnfollowArguments),
    /// Say whether one user follows another
    Check(check::Arguments),
    /// List whom a user follows, newest first
    Following(list::Arguments),
    /// List who follows a user, newest first
    Followers(list::Arguments),
    /// List who follows a user and is followed back, newest first
    Friends(list::Arguments),
    /// Count whom users follow and who follows them
    Counts(counts::Arguments),
    /// List whom users follow in common, by id
    Common(overlap::CommonArguments),
    /// List those whom a viewer follows and who follow a user, by id
    KnownFollowers(overlap::KnownFollowersArguments),
    /// List whom a user may know, the best first
    Suggestions(suggestions::Arguments),
    /// Never suggest one user to another again
    Dismiss(suggestions::DismissArguments),
    /// Compute suggestions for everyone
    Suggest(suggest::Arguments),
    /// Register a post
    Post(post::Arguments),
    /// Delete a post
    DeletePost(post::DeleteArguments),
    /// List a user's own posts, newest first
    Posts(posts::Arguments),
    /// List the posts of those whom a user follows, newest first
    Feed(posts::Arguments),
    /// Write a comment on a post
    Comment(comment::Arguments),
    /// Edit a comment
    EditComment(comment::EditArguments),
    /// List the comments on a post, or a user's own
    Comments(comments::Arguments),
    /// List the texts that a comment has or had
    CommentHistory(comments::HistoryArguments),
    /// Delete a comment as its author
    DeleteComment(moderate::DeleteArguments),
    /// Remove a comment as a moderator
    RemoveComment(moderate::RemoveArguments),
    /// Erase the text of a comment for good, as a moderator
    PurgeComment(moderate::PurgeArguments),
    /// Take no more comments on a post, as a moderator
    LockComments(moderate::LockArguments),
    /// Take comments on a post again, as a moderator
    UnlockComments(moderate::LockArguments),
    /// List what has changed, oldest first
    Changes(changes::Arguments),
    /// Follow and unfollow by lines on standard input
    Apply(apply::Arguments),
    /// Add the edges of files
    Import(import::Arguments),
    /// Write all edges, or all comments, to a file
    Export(export::Arguments),
    /// Write a file of made-up edges with power-law degrees
    Generate(generate::Arguments),
    /// Compare everything that is derived with the edges themselves
    Verify(verify::Arguments),
    /// Merge files, and erase the texts of purged comments from them
    Compact(compact::Arguments),
    /// Write the whole graph to one file that restore can read
    Backup(backup::Arguments),
    /// Make a graph from a backup
    Restore(restore::Arguments),
}

impl Command {
    /// The flags of settings that only this command has.
    fn server_flags(&self) -> Flags {
        match self {
            Self::Serve(command) => command.flags.0.clone(),
            Self::Demo(command) => command.flags.0.clone(),
            Self::Config(command) => command.flags.0.clone(),
            _ => Flags::default(),
        }
    }
}

impl Arguments {
    /// Runs the command.
    pub fn run(self) -> Result<Outcome> {
        let context = self.global.into_context(self.command.server_flags())?;
        match self.command {
            Command::Serve(command) => command.run(&context),
            Command::Demo(command) => command.run(&context),
            Command::Config(command) => command.run(&context),
            Command::Keys(command) => command.run(&context),
            Command::Follow(command) => command.run(&context),
            Command::Unfollow(command) => command.run(&context),
            Command::Check(command) => command.run(&context),
            Command::Following(command) => command.run(List::Following, &context),
            Command::Followers(command) => command.run(List::Followers, &context),
            Command::Friends(command) => command.run(List::Friends, &context),
            Command::Counts(command) => command.run(&context),
            Command::Common(command) => command.run(&context),
            Command::KnownFollowers(command) => command.run(&context),
            Command::Suggestions(command) => command.run(&context),
            Command::Dismiss(command) => command.run(&context),
            Command::Suggest(command) => command.run(&context),
            Command::Post(command) => command.run(&context),
            Command::DeletePost(command) => command.run(&context),
            Command::Posts(command) => command.run(PostList::Posts, &context),
            Command::Feed(command) => command.run(PostList::Feed, &context),
            Command::Comment(command) => command.run(&context),
            Command::EditComment(command) => command.run(&context),
            Command::Comments(command) => command.run(&context),
            Command::CommentHistory(command) => command.run(&context),
            Command::DeleteComment(command) => command.run(&context),
            Command::RemoveComment(command) => command.run(&context),
            Command::PurgeComment(command) => command.run(&context),
            Command::LockComments(command) => command.run(true, &context),
            Command::UnlockComments(command) => command.run(false, &context),
            Command::Changes(command) => command.run(&context),
            Command::Apply(command) => command.run(&context),
            Command::Import(command) => command.run(&context),
            Command::Export(command) => command.run(&context),
            Command::Generate(command) => command.run(&context),
            Command::Verify(command) => command.run(&context),
            Command::Compact(command) => command.run(&context),
            Command::Backup(command) => command.run(&context),
            Command::Restore(command) => command.run(&context),
        }
    }
}

impl GlobalArguments {
    fn into_context(self, server_flags: Flags) -> Result<Context> {
        let flags = self.flags.0.and(server_flags);
        let texts = Texts::read(&flags, self.file.config.as_deref(), |name| std::env::var_os(name))?;
        let configuration = Configuration::from_texts(&texts)?;
        let clock = WallClock { file: self.tuning.clock_file.clone() };
        let store = self.tuning.into_settings(&configuration);
        Context::new(configuration, texts, (store, clock))
    }
}

/// The id of a comment as typed.
pub fn parse_comment_id(text: &str) -> Result<CommentId, String> {
    CommentId::parse(text).map_err(|_| "the id of a comment is a UUID".to_owned())
}

/// An id as typed: of which kind it must be, only the store knows.
pub fn parse_id(text: &str) -> Result<Id, String> {
    let kind = if text.contains('-') { IdKind::Uuid } else { IdKind::Integer };
    kind.parse(text).map_err(|_| "an id is an integer from 0 to 2^63 - 1 or a UUID".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_fit_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn ids_are_recognised_by_their_form() {
        assert_eq!(parse_id("12"), Ok(Id::Integer(12)));
        assert_eq!(parse_id("00000000-0000-0000-0000-00000000000c"), Ok(Id::Uuid(12)));
        for text in ["", "x", "1.5", "9223372036854775808", "0-0", "١"] {
            assert!(parse_id(text).is_err(), "{text}");
        }
    }
}
