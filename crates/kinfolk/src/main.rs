//! The binary: parses the command line, runs one command and turns its outcome into an exit status.

#![warn(clippy::too_many_lines, unreachable_pub)]

mod bulk;
mod cli;
mod client;
mod commands;
mod context;
mod failure;
mod free_space;
mod interrupt;
mod output;
mod print;
mod profile;
mod progress;
mod serve;
mod settings;
mod signals;
mod standard_output;

use std::process::ExitCode;

use kinfolk::input;

/// Import and the writer of a store allocate from several threads at once.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::run() {
        Ok(outcome) => outcome.into(),
        Err(error) => failure::report(&error),
    }
}
