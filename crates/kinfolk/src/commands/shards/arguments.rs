//! The arguments of `shards` and its commands. Every binary has them, so that a file may set their flags everywhere.
//! What the commands do is in the files of their names.

#![cfg_attr(
    not(feature = "fleet"),
    allow(dead_code, reason = "only a binary with the fleet profile runs them")
)]

use clap::{Args, Subcommand};

/// Show which host has which shard of a fleet, move a shard, or plan moves
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk shards --config fleet.toml\n\n\
    Shows every shard with its host, and unfinished moves.")]
#[cfg_attr(
    not(feature = "fleet"),
    command(about = "Show or move the shards of a fleet (not in this binary)")
)]
pub(crate) struct Shards {
    #[command(subcommand)]
    pub(super) command: Option<ShardsCommand>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ShardsCommand {
    Move(Move),
    Balance(Balance),
}

/// Move a shard to another host while it is read and written
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk shards move 17 c --config fleet.toml\n\n\
    The shard's rows are copied, changes follow, and in the end writes to it wait for a moment. An interrupted move does\n\
    no harm: run the same command again, or give it up with --abort. A new host is added by 'kinfolk fleet init' after it is\n\
    in fleet.hosts of all processes.")]
pub(crate) struct Move {
    /// The number of the shard
    pub(super) shard: u16,
    /// The host that it is moved to
    // Not required for clap, which does not see an --abort that comes from the configuration.
    #[arg(conflicts_with = "abort")]
    pub(super) host: Option<String>,
    /// Give up a move that was interrupted: the shard stays on its old host
    #[arg(long)]
    pub(super) abort: bool,
}

/// Plan the moves that spread the shards evenly over the hosts
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk shards balance --config fleet.toml\n\n\
    Afterwards no host has two shards more than another. Shards count alike, whatever is in them. Finish or abort the moves\n\
    that 'kinfolk shards' shows first. Nothing is moved without --run, which makes one move after another.")]
pub(crate) struct Balance {
    /// Make the moves
    #[arg(long)]
    pub(super) run: bool,
}
