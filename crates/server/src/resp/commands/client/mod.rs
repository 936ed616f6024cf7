//! `CLIENT subcommand`: what libraries set and ask about their connection, and what people ask about all of them.

mod kill;
mod list;
mod reply;
mod tracking;

use super::prelude::*;

const NAME_BYTES_MAX: usize = 256;

const SUBCOMMANDS: &[Subcommand] = &[
    Subcommand { name: "getname", summary: "the name of this connection", syntax: "", arity: 2 },
    Subcommand {
        name: "caching",
        summary: "whether this client caches what the next command reads",
        syntax: "YES|NO",
        arity: 3,
    },
    Subcommand {
        name: "getredir",
        summary: "the connection that gets this one's invalidations: 0, itself, or -1 without tracking",
        syntax: "",
        arity: 2,
    },
    Subcommand { name: "id", summary: "the number of this connection", syntax: "", arity: 2 },
    Subcommand { name: "info", summary: "describes this connection", syntax: "", arity: 2 },
    Subcommand {
        name: "kill",
        summary: "ends connections that the caller can list",
        syntax: "[ip:port] [ID client-id] [TYPE NORMAL|MASTER|REPLICA|PUBSUB] [USER username] [ADDR ip:port] [LADDR ip:port] [SKIPME yes/no] [MAXAGE seconds]",
        arity: -3,
    },
    Subcommand {
        name: "list",
        summary: "the connections of the caller; of all callers for administrators",
        syntax: "[TYPE NORMAL|MASTER|REPLICA|PUBSUB] [ID client-id [client-id …]]",
        arity: -2,
    },
    Subcommand {
        name: "no-evict",
        summary: "accepted; connections are not evicted",
        syntax: "ON|OFF",
        arity: 3,
    },
    Subcommand { name: "no-touch", summary: "accepted; keys are not evicted", syntax: "ON|OFF", arity: 3 },
    Subcommand { name: "reply", summary: "whether commands get replies", syntax: "ON|OFF|SKIP", arity: 3 },
    Subcommand {
        name: "setinfo",
        summary: "names the client's library or its version",
        syntax: "LIB-NAME|LIB-VER value",
        arity: 4,
    },
    Subcommand { name: "setname", summary: "names this connection", syntax: "name", arity: 3 },
    Subcommand {
        name: "tracking",
        summary: "says when a set changes that this client has cached",
        syntax: "ON|OFF [PREFIX prefix [PREFIX prefix …]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
        arity: -3,
    },
    Subcommand {
        name: "trackinginfo",
        summary: "describes the tracking of this connection",
        syntax: "",
        arity: 2,
    },
];

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "client",
        summary: "describes connections, and sets how this one behaves",
        subcommands: SUBCOMMANDS,
        example: &["id"],
        arity: -2,
        ..Command::session(run)
    }
}

fn run<S: Store>(session: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    let Some(subcommand) = subcommand::find("client", SUBCOMMANDS, arguments, out)? else { return Ok(()) };
    let value = arguments.get(2).unwrap_or_default();
    match subcommand.name {
        "id" => out.integer(session.id),
        "getname" => match session.client.labels().name.as_str() {
            "" => out.null(),
            name => out.bulk(name),
        },
        "getredir" => tracking::write_redirection(session, out),
        "tracking" => tracking::track(session, value, arguments.skip(3), out)?,
        "caching" => tracking::cache(session, value, out)?,
        "trackinginfo" => tracking::write_info(session, out),
        "info" => list::write_own(session, out),
        "list" => list::write(session, arguments.skip(2), out)?,
        "kill" => kill::run(session, arguments.skip(2), out)?,
        "reply" => reply::set(session, value, out)?,
        "setname" => {
            session.client.set_name(parse_name(value)?);
            out.ok();
        }
        "setinfo" => set_info(session, value, arguments.get(3).unwrap_or_default(), out)?,
        // NO-EVICT and NO-TOUCH: nothing here depends on them.
        _ if is(value, "ON") || is(value, "OFF") => out.ok(),
        _ => return Err(syntax_error()),
    }
    Ok(())
}

/// The library's name and version, for `CLIENT LIST`.
fn set_info<S: Store>(session: &Session<S>, what: &[u8], value: &[u8], out: &mut Output) -> Result<()> {
    let shown = subcommand::shown(what).to_lowercase();
    let is_name = is(what, "LIB-NAME");
    if !is_name && !is(what, "LIB-VER") {
        return Err(invalid(format!("Unrecognized option '{shown}'")));
    }
    let refused = || invalid(format!("{shown} cannot contain spaces, newlines or special characters."));
    let value = parse_name(value).map_err(|_| refused())?;
    if is_name {
        session.client.set_library_name(value);
    } else {
        session.client.set_library_version(value);
    }
    out.ok();
    Ok(())
}

/// A name for a connection: printable, without spaces, as a list of connections separates fields by spaces.
pub(super) fn parse_name(text: &[u8]) -> Result<String> {
    if text.len() > NAME_BYTES_MAX || !text.iter().all(u8::is_ascii_graphic) {
        return Err(invalid(
            "Client names cannot contain spaces, newlines or special characters, and have up to 256 characters",
        ));
    }
    Ok(String::from_utf8_lossy(text).into_owned())
}
