//! The Redis protocol: frames, commands, connections. Versions 2 and 3, in front of the graph.
//!
//! ```text
//! listener    accepts, hands connections to threads
//! connection  reads a batch, sends the replies with one write
//!   frame, batch    what was received, as positions of arguments in it
//!   pipeline        runs the commands of a batch in order
//!   guard           refuses what a command does not allow
//!   table           the list of all commands
//!   command         what a command declares
//!   commands/       the commands, one file each
//!   request         what a command gets: its arguments and the graph
//!   checks          consecutive checks, sent to the store together where they have to wait
//!   writes          consecutive writes, committed together
//!   reply           replies as bytes
//!   memory          what connections hold while they wait, per caller and in all
//!   timeouts        how long they may wait
//!   trace           spans
//! ```

mod batch;
mod checks;
mod command;
mod command_counts;
mod commands;
mod connection;
mod connection_quota;
pub mod frame;
mod glob;
mod guard;
mod keys;
mod listener;
mod memory;
mod pipeline;
mod reply;
mod request;
mod session;
mod settings;
pub mod table;
mod timeouts;
mod trace;
mod transport;
mod workspace;
mod writes;

pub use listener::run;
pub use settings::RespSettings;
