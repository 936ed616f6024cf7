//! The Redis protocol: frames, commands, connections. Versions 2 and 3, in front of the graph.
//!
//! ```text
//! listener    accepts, hands connections to threads
//! connection  reads a batch, runs it in order, sends the replies with one write
//!   frame, batch    what was received, as places of arguments in it
//!   table           every command once
//!   commands/       what they do, one file a family
//!   checks          checks that follow each other, asked together where they have to wait
//!   writes          writes that follow each other, committed together
//!   reply           what is answered, as bytes
//!   memory          what connections hold while they wait, per caller and in all
//!   patience        how long they may wait
//!   trace           spans
//! ```

mod batch;
mod checks;
mod commands;
mod connection;
pub mod frame;
mod glob;
mod keys;
mod listener;
mod memory;
mod patience;
mod reply;
mod seats;
mod session;
mod settings;
pub mod table;
mod tally;
mod trace;
mod transport;
mod workspace;
mod writes;

pub use listener::run;
pub use settings::RespSettings;
