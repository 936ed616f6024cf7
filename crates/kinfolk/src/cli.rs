//! The top of the command line: the global options, and the context that they and the configuration give to a command.
//! The commands themselves are in `commands`.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser};

use crate::commands::Command;
use crate::context::Context;
use crate::print::Outcome;
use crate::profile::embedded::{ClockLimits, Settings, WallClock};
use crate::settings::{CommonFlags, Configuration, FileArgument, Flags, Texts};

const EXAMPLES: &str = "\
Examples:
  kinfolk serve                          serve ./kinfolk-data on 127.0.0.1:7400 (REST) and :7401 (Redis)
  kinfolk follow 1 2                     make user 1 follow user 2
  kinfolk check 1 2                      print yes or no; exit with status 0 or 1
  kinfolk followers 2 --limit 10         list the followers of user 2, newest first
  kinfolk suggestions 1                  suggest users for user 1 to follow
  kinfolk post 2                         register a post by user 2
  kinfolk feed 1                         list the posts of user 1's followees, newest first
  kinfolk comments 70 --tree             show the comments on post 70 as a tree
  kinfolk import follows.csv.zst         add the edges of a file
  kinfolk export - | head                print all edges as CSV
  kinfolk counts 1 2 3 --json            print the result as one JSON document

Commands use the server at --url, or the folder --data while no server has it open.
Exit status: 0 success, 1 the result is no or the command failed, 2 wrong usage.";

/// A social graph service: who follows whom.
#[derive(Debug, Parser)]
#[command(name = "kinfolk", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    global: GlobalArguments,
    #[command(subcommand)]
    command: Command,
}

/// The options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct GlobalArguments {
    #[command(flatten)]
    file: FileArgument,
    #[command(flatten)]
    flags: CommonFlags,
    /// Show at least the writes that this token covers; tokens that are printed cover it too
    // One token in 64 starts with a hyphen.
    #[arg(long, global = true, value_name = "TOKEN", allow_hyphen_values = true)]
    token: Option<String>,
    #[command(flatten)]
    tuning: TuningArguments,
}

/// Store sizes whose defaults suit everybody. Tests shrink them so that flushes and snapshots happen often.
#[derive(Debug, Args)]
struct TuningArguments {
    /// Close a segment of the change log at this size
    #[arg(long, global = true, value_name = "BYTES", env = "KINFOLK_TEST_SEGMENT_BYTES", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1_024..=1 << 32))]
    segment_bytes: Option<u64>,

    /// Flush the memtable at this number of rows
    #[arg(long, global = true, value_name = "ROWS", env = "KINFOLK_TEST_FLUSH_ROWS", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    flush_rows: Option<u64>,

    /// Flush posts in memory at this size
    #[arg(long, global = true, value_name = "BYTES", env = "KINFOLK_TEST_FLUSH_POST_BYTES", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    flush_post_bytes: Option<u64>,

    /// Write an index snapshot after this number of events
    #[arg(long, global = true, value_name = "EVENTS", env = "KINFOLK_TEST_SNAPSHOT_EVENTS", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    snapshot_events: Option<u64>,

    /// Keep at most this much of the change log
    #[arg(long, global = true, value_name = "BYTES", env = "KINFOLK_TEST_LOG_KEEP_BYTES", hide = true)]
    log_keep_bytes: Option<u64>,

    /// Offset the clock by the milliseconds in this file
    #[arg(long, global = true, value_name = "FILE", env = "KINFOLK_TEST_CLOCK_FILE", hide = true)]
    clock_file: Option<PathBuf>,
}

impl TuningArguments {
    /// The settings of a store: those of the configuration, with these sizes.
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

impl Arguments {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<Outcome> {
        let context = self.global.into_context(self.command.server_flags())?;
        self.command.run(&context)
    }
}

impl GlobalArguments {
    fn into_context(self, server_flags: Flags) -> Result<Context> {
        let flags = self.flags.0.and(server_flags);
        let texts = Texts::read(&flags, self.file.config.as_deref(), |name| std::env::var_os(name))?;
        let configuration = Configuration::from_texts(&texts)?;
        let clock = WallClock { file: self.tuning.clock_file.clone() };
        let store_settings = self.tuning.into_settings(&configuration);
        let context = Context::new(configuration, texts, store_settings, clock)?;
        Ok(Context { token: self.token, ..context })
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_fit_together() {
        Arguments::command().debug_assert();
    }
}
