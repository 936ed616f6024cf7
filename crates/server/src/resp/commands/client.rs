//! `CLIENT subcommand`: what libraries set and ask about their connection. No connection learns of, or ends, another.

use super::prelude::*;

const NAME_BYTES_MAX: usize = 256;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "client",
        summary: "describes and names this connection",
        example: &["id"],
        arity: -2,
        ..Command::session(run)
    }
}

fn run<S: Store>(session: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    let subcommand = arguments.get(1).unwrap_or_default();
    let first = arguments.get(2);
    match (first, arguments.len()) {
        (None, _) if is(subcommand, "ID") => out.integer(session.id),
        (None, _) if is(subcommand, "GETNAME") => match session.name.as_str() {
            "" => out.null(),
            name => out.bulk(name),
        },
        (None, _) if is(subcommand, "INFO") => out.verbatim(&describe(session)),
        (_, _) if is(subcommand, "LIST") => out.verbatim(&describe(session)),
        (Some(text), 3) if is(subcommand, "SETNAME") => {
            session.name = name(text)?;
            out.ok();
        }
        // The library's name and version; nothing here depends on them.
        (Some(_), 4) if is(subcommand, "SETINFO") => out.ok(),
        (Some(_), 3) if is(subcommand, "NO-EVICT") || is(subcommand, "NO-TOUCH") => out.ok(),
        (Some(mode), 3) if is(subcommand, "REPLY") && is(mode, "ON") => out.ok(),
        _ => {
            return Err(invalid(
                "CLIENT has ID, INFO, LIST, GETNAME, SETNAME, SETINFO, NO-EVICT, NO-TOUCH and REPLY ON",
            ));
        }
    }
    Ok(())
}

/// A name for a connection: printable, without spaces, as a list of connections separates fields by spaces.
pub(super) fn name(text: &[u8]) -> Result<String> {
    if text.len() > NAME_BYTES_MAX || !text.iter().all(u8::is_ascii_graphic) {
        return Err(invalid("a client's name has up to 256 printable characters and no spaces"));
    }
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn describe<S: Store>(session: &Session<S>) -> String {
    let Session { id, peer, name, version, .. } = session;
    let queued = session.transaction.as_ref().map_or(-1, |queue| queue.batch.len() as i64);
    format!("id={id} addr={peer} name={name} db=0 multi={queued} resp={}\n", version.number())
}
