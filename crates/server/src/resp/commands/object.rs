//! `OBJECT subcommand key`: how a set is kept, as far as tools ask for it.

use super::prelude::*;
use super::scard::sizes;

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand { name: "encoding", summary: "how a set is kept: hashtable", syntax: "key", arity: 3 },
    Subcommand { name: "freq", summary: "is not tracked", syntax: "key", arity: 3 },
    Subcommand { name: "idletime", summary: "is not tracked", syntax: "key", arity: 3 },
    Subcommand { name: "refcount", summary: "how often a set is referred to: 1", syntax: "key", arity: 3 },
];

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "object",
        summary: "describes how a set is kept",
        subcommands: SUBCOMMANDS,
        example: &["encoding", "following:7"],
        arity: -2,
        keys: Keys::SECOND,
        operation: Operation::Counts,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let found = subcommand::find("object", SUBCOMMANDS, request.arguments, out)?;
    let Some(subcommand) = found else { return Ok(()) };
    let size = sizes(request, &[request.key(2)?]).await?.into_iter().sum::<u64>();
    match subcommand.name {
        _ if size == 0 => out.null(),
        "encoding" => out.bulk("hashtable"),
        "refcount" => out.integer(1),
        "idletime" => return Err(invalid("idle times of sets are not tracked")),
        _ => {
            return Err(invalid("An LFU maxmemory policy is not selected, access frequency not tracked."));
        }
    }
    Ok(())
}
