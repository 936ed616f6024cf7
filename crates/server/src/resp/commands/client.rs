//! `CLIENT`: what libraries say and ask about their connection. No connection learns of, or ends, another.

use kinfolk_core::{Result, Store};

use super::super::batch::Arguments;
use super::super::reply::Output;
use super::super::session::Session;
use super::{invalid, is};

const NAME_BYTES_MAX: usize = 256;

/// Runs a subcommand.
pub fn run<S: Store>(session: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
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
        (Some(given), 3) if is(subcommand, "SETNAME") => {
            session.name = name(given)?;
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

/// A name for a connection: printable, without spaces, as lists of connections are lines of words.
pub fn name(given: &[u8]) -> Result<String> {
    if given.len() > NAME_BYTES_MAX || !given.iter().all(u8::is_ascii_graphic) {
        return Err(invalid("a client's name has up to 256 printable characters and no spaces"));
    }
    Ok(String::from_utf8_lossy(given).into_owned())
}

fn describe<S: Store>(session: &Session<S>) -> String {
    let Session { id, peer, name, version, .. } = session;
    let queued = session.transaction.as_ref().map_or(-1, |queue| queue.batch.len() as i64);
    format!("id={id} addr={peer} name={name} db=0 multi={queued} resp={}\n", version.number())
}
