//! `SLOWLOG subcommand`: the commands that took long. For administrators, as it shows what others do.

use super::prelude::*;
use crate::access::Scope;

const COUNT_DEFAULT: usize = 10;

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand { name: "get", summary: "the latest slow commands", syntax: "[count]", arity: -2 },
    Subcommand { name: "len", summary: "how many slow commands there are", syntax: "", arity: 2 },
    Subcommand { name: "reset", summary: "forgets all slow commands", syntax: "", arity: 2 },
];

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "slowlog",
        summary: "the commands that took long",
        subcommands: SUBCOMMANDS,
        example: &["len"],
        arity: -2,
        group: "server",
        scope: Some(Scope::Admin),
        ..Command::session(run)
    }
}

fn run<S: Store>(session: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    let found = subcommand::find("slowlog", SUBCOMMANDS, arguments, out)?;
    let Some(subcommand) = found else { return Ok(()) };
    let log = &session.shared.slow_log;
    match subcommand.name {
        "len" => out.integer(log.len()),
        "reset" => {
            log.clear();
            out.ok();
        }
        _ if arguments.len() > 3 => return Err(wrong_number("slowlog|get")),
        _ => {
            let count = match arguments.get(2).map(number::<i64>).transpose()? {
                None => COUNT_DEFAULT,
                Some(-1) => usize::MAX,
                Some(count) => usize::try_from(count)
                    .map_err(|_| invalid("count should be greater than or equal to -1"))?,
            };
            let latest = log.latest(count);
            out.array(latest.len());
            for entry in latest {
                out.array(6);
                out.integer(entry.id);
                out.integer(entry.unix_seconds());
                out.integer(entry.took.as_micros() as u64);
                out.array(entry.arguments.len());
                entry.arguments.iter().for_each(|argument| out.bulk(argument));
                out.bulk(&entry.peer);
                out.bulk(&entry.name);
            }
        }
    }
    Ok(())
}
