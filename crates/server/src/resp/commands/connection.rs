//! Commands about the connection itself: `PING ECHO HELLO AUTH SELECT QUIT RESET AFTER`. None asks the store.

use kinfolk_core::{Error, Result, Store};

use super::super::batch::Arguments;
use super::super::reply::{Output, Version};
use super::super::session::Session;
use super::super::table::Connection;
use super::{client, describe, invalid, is, number, server, syntax_error, text};

/// No token is longer, even of 512 shards.
const TOKEN_BYTES_MAX: usize = 8 << 10;

/// Runs one of them.
pub fn run<S: Store>(
    verb: Connection,
    session: &mut Session<S>,
    arguments: Arguments<'_>,
    out: &mut Output,
) -> Result<()> {
    let first = arguments.get(1).unwrap_or_default();
    match verb {
        Connection::Ping => match arguments.len() {
            1 => out.simple("PONG"),
            2 => out.bulk(first),
            _ => return Err(invalid("wrong number of arguments for 'ping'")),
        },
        Connection::Echo => out.bulk(first),
        Connection::Hello => return hello(session, arguments, out),
        Connection::Auth => {
            if arguments.len() > 3 {
                return Err(syntax_error());
            }
            authenticate(session, arguments.get(arguments.len() - 1))?;
            out.ok();
        }
        Connection::Select => match number::<u64>(first)? {
            0 => out.ok(),
            _ => return Err(invalid("there is one database, number 0")),
        },
        Connection::Quit => {
            session.closing = true;
            out.ok();
        }
        Connection::Reset => {
            session.reset();
            out.version = session.version;
            out.simple("RESET");
        }
        Connection::After => {
            if first.len() > TOKEN_BYTES_MAX {
                return Err(Error::InvalidToken);
            }
            session.require_after(text(first)?);
            out.ok();
        }
        Connection::Client => return client::run(session, arguments, out),
        Connection::Command => return describe::run(arguments, out),
        Connection::Config => return server::config(session, arguments, out),
    }
    Ok(())
}

/// The last argument of `AUTH`: user names are taken for the sake of clients that send one, and mean nothing.
fn authenticate<S: Store>(session: &mut Session<S>, credential: Option<&[u8]>) -> Result<()> {
    const INVALID: Error = Error::Unauthenticated { detail: "the credential is not valid" };
    let credential = credential.and_then(|bytes| str::from_utf8(bytes).ok()).ok_or(INVALID)?;
    let caller = session.shared.service.access.authenticate(credential)?;
    session.set_caller(caller)
}

/// `HELLO [version [AUTH name credential] [SETNAME name]]`.
fn hello<S: Store>(session: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    let version = match arguments.get(1).map(number::<u64>).transpose()? {
        None => session.version,
        Some(2) => Version::Two,
        Some(3) => Version::Three,
        Some(_) => return Err(invalid("unsupported protocol version: there are 2 and 3")),
    };
    let mut at = 2;
    let mut name = None;
    let mut credential = None;
    while let Some(option) = arguments.get(at) {
        if is(option, "AUTH") && at + 2 < arguments.len() {
            credential = arguments.get(at + 2);
            at += 3;
        } else if is(option, "SETNAME") && at + 1 < arguments.len() {
            name = arguments.get(at + 1).map(client::name).transpose()?;
            at += 2;
        } else {
            return Err(syntax_error());
        }
    }
    if credential.is_some() {
        authenticate(session, credential)?;
    }
    if session.caller.is_none() {
        return Err(Error::Unauthenticated {
            detail: "authentication required: HELLO with AUTH name credential, or AUTH credential first",
        });
    }
    if let Some(name) = name {
        session.name = name;
    }
    session.version = version;
    out.version = version;
    greet(session, out);
    Ok(())
}

fn greet<S: Store>(session: &Session<S>, out: &mut Output) {
    out.map(7);
    out.bulk("server");
    out.bulk("redis");
    out.bulk("version");
    out.bulk(server::REDIS_VERSION);
    out.bulk("proto");
    out.integer(session.version.number());
    out.bulk("id");
    out.integer(session.id);
    out.bulk("mode");
    out.bulk("standalone");
    out.bulk("role");
    out.bulk("master");
    out.bulk("modules");
    out.array(0);
}
