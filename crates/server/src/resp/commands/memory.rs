//! `MEMORY USAGE key [SAMPLES count]`: an estimate of the bytes that a set takes.
//!
//! It is computed from the number of members, each with its id and its time, and a constant for the set: the size of the data
//! that the store keeps for it, before compression and caches. No store keeps a set in one piece that could be measured.

use kinfolk_core::IdKind;

use super::prelude::*;
use super::scard::sizes;

/// What a set takes besides its members.
const SET_BYTES: u64 = 64;
const SINCE_BYTES: u64 = 8;

const SUBCOMMANDS: &[Subcommand] = &[Subcommand {
    name: "usage",
    summary: "an estimate of the bytes that a set takes",
    syntax: "key [SAMPLES count]",
    arity: -3,
}];

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "memory",
        summary: "estimates the size of a set",
        subcommands: SUBCOMMANDS,
        example: &["usage", "following:7"],
        arity: -2,
        keys: Keys::SECOND,
        operation: Operation::Counts,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    if subcommand::find("memory", SUBCOMMANDS, request.arguments, out)?.is_none() {
        return Ok(());
    }
    for option in request.options(3) {
        match option? {
            // All members count: none has to be sampled.
            option if option.is("SAMPLES") => drop(number::<u64>(option.value)?),
            _ => return Err(syntax_error()),
        }
    }
    let id_bytes = match request.service.id_kind() {
        IdKind::Integer => size_of::<u64>(),
        IdKind::Uuid => size_of::<u128>(),
    };
    match sizes(request, &[request.key(2)?]).await?.into_iter().sum::<u64>() {
        0 => out.null(),
        size => out.integer(SET_BYTES + size * (id_bytes as u64 + SINCE_BYTES)),
    }
    Ok(())
}
