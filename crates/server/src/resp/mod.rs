//! The Redis protocol: frames, commands, connections. Versions 2 and 3, in front of the graph.
//!
//! ```text
//! loading     replies while there is no store yet
//! listener    accepts, hands connections to threads
//! worker      a thread that serves connections
//!   balance, idle_cores  how many threads, and which connections move
//! connection  reads a batch, sends the replies with one write
//!   frame, inline, batch  what was received, as positions of arguments in it
//!   pipeline        runs the commands of a batch in order
//!   guard           refuses what a command does not allow
//!   table           the list of all commands
//!   command, subcommand, syntax  what a command declares
//!   commands/       the commands, one file each
//!   request         what a command gets: its arguments and the graph
//!   checks          consecutive checks, looked up together
//!   writes          consecutive writes, committed together
//!   reply           replies as bytes
//!   reply_mode      connections that want no replies
//!   clients         all connections, for CLIENT LIST
//!   slow_log        commands that took long
//!   memory          what connections hold while they wait, per caller and in all
//!   timeouts        how long they may wait
//!   tracking        invalidates what clients have cached
//!   trace           spans
//! ```

mod balance;
mod batch;
mod checks;
mod clients;
mod command;
mod command_counts;
mod commands;
mod connection;
mod connection_quota;
pub mod frame;
mod glob;
mod guard;
mod idle_cores;
mod inline;
mod keys;
mod listener;
mod loading;
mod memory;
mod operation_rate;
mod pipeline;
mod random;
mod reply;
mod reply_mode;
mod request;
mod session;
mod settings;
mod slow_log;
mod subcommand;
mod syntax;
pub mod table;
mod timeouts;
mod trace;
mod tracking;
mod transport;
mod worker;
mod workspace;
mod writes;

pub use listener::{run, run_after_loading};
pub use loading::{Loading, Waiting};
pub use settings::RespSettings;
