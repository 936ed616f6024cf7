//! The binary: reads what was typed, runs one command, turns its outcome into an exit status.

mod answer;
mod arguments;
mod bulk;
mod commands;
mod context;
mod failure;
mod interrupt;
mod output;
mod place;
mod profile;
mod progress;
mod room;
mod serve;
mod settings;
mod standard_output;

use std::process::ExitCode;

use clap::Parser;
use kinfolk::input;

use crate::arguments::Arguments;

/// Import and the writer of a store allocate from several threads at once.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return failure::usage(&error),
    };
    match arguments.run() {
        Ok(outcome) => outcome.into(),
        Err(error) => failure::report(&error),
    }
}
