//! The arguments of `fleet` and its commands. Every binary has them, so that a file may set their flags everywhere.
//! What the commands do is in the files of their names.

#![cfg_attr(
    not(feature = "fleet"),
    allow(dead_code, reason = "only a binary with the fleet profile runs them")
)]

use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Create a fleet of PostgreSQL databases, show its state, begin a new epoch, or warm its cache
#[derive(Debug, Args)]
#[cfg_attr(
    not(feature = "fleet"),
    command(about = "Create a fleet of PostgreSQL databases, or show its state (not in this binary)")
)]
pub(crate) struct Fleet {
    #[command(subcommand)]
    pub(super) command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum FleetCommand {
    Init(Init),
    Status(Status),
    NewEpoch(NewEpoch),
    SaveSets(SaveSets),
    Warm(Warm),
}

/// Create a fleet on the databases of the configuration
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk fleet init --config fleet.toml --shards 256 --ids integer\n\n\
    The databases must exist and be empty; the shards are spread over the hosts of fleet.hosts. Neither the number of\n\
    shards nor the kind of ids (--ids) can be changed later. An interrupted run can be repeated.\n\n\
    Where there is a fleet already, its schemas are brought to the version of this program, and hosts that are new in\n\
    fleet.hosts are added without shards: see 'kinfolk shards balance'.")]
pub(crate) struct Init {
    /// Number of logical shards, at most 512
    #[arg(long, value_name = "N", default_value = "256")]
    pub(super) shards: NonZeroU16,
}

/// Show the hosts, shards, lag and processes of a fleet
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk fleet status --config fleet.toml\n\n\
    'behind' is the number of changes that followers and counts on a host do not show yet; it is unknown while a host\n\
    does not answer. 'not relayed' is the number of changes that are not in the Kafka topic yet. Processes are those with\n\
    connections to a host. With Redis, the last table shows which layer has answered the checks of each process in the\n\
    last ten seconds: its filters, the cache in Redis, or the shards. The exit status is 1 if a host can't be used.")]
pub(crate) struct Status {
    /// List every shard: its host, who relays it, and how far its changes have come
    #[arg(long)]
    pub(super) shards: bool,
}

/// Begin a new epoch, after a database of the fleet was restored from a backup
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk fleet new-epoch --config fleet.toml\n\n\
    A restored database has lost its newest changes, and would give their positions to other ones. A new epoch makes that\n\
    harmless: tokens and cursors of the old one are refused, cached sets and filters are dropped, and the follower side is\n\
    rebuilt from the edges as they are now. The fleet serves neither reads nor writes until it is done; it takes as long as\n\
    writing every edge once more. An interrupted run leaves all shards closed: run it again.")]
pub(crate) struct NewEpoch {}

/// Write the following sets of all users to a file, for 'fleet warm'
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk fleet save-sets --config fleet.toml sets\n\n\
    The file is for this fleet and its current epoch. It is useful until a shard has had 200,000 changes since, or its\n\
    log was trimmed past that point. An existing file is never replaced.")]
pub(crate) struct SaveSets {
    /// The file to create
    pub(super) file: PathBuf,
}

/// Put the following sets of a file into Redis
#[derive(Debug, Args)]
#[command(after_help = "Example: kinfolk fleet warm --config fleet.toml sets\n\n\
    For a Redis that is empty: the shards are spared from reading every set again. Processes that project bring the\n\
    changes since the file was made. Sets that are older than what Redis or the logs have are left out. The exit status is\n\
    1 if some sets could not be stored: run it again.")]
pub(crate) struct Warm {
    /// A file that 'fleet save-sets' has written
    pub(super) file: PathBuf,
}
