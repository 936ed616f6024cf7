//! `HELLO [version [AUTH name credential] [SETNAME name]]`: negotiates the version of the protocol.

use super::auth::authenticate;
use super::client;
use super::info::REDIS_VERSION;
use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "hello",
        summary: "negotiates the version of the protocol",
        syntax: "[protover [AUTH username credential] [SETNAME name]]",
        arity: -1,
        ..Command::open(run)
    }
}

fn run<S: Store>(session: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    let requested = arguments.get(1).map(number::<u64>).transpose();
    let version =
        match requested.map_err(|_| invalid("Protocol version is not an integer or out of range"))? {
            None => session.version,
            Some(2) => Version::Two,
            Some(3) => Version::Three,
            Some(_) => return Err(Error::UnsupportedProtocol),
        };
    let mut at = 2;
    let mut name = None;
    let mut credential = None;
    let mut username = None;
    while let Some(option) = arguments.get(at) {
        if is(option, "AUTH") && at + 2 < arguments.len() {
            username = arguments.get(at + 1);
            credential = arguments.get(at + 2);
            at += 3;
        } else if is(option, "SETNAME") && at + 1 < arguments.len() {
            name = arguments.get(at + 1).map(client::parse_name).transpose()?;
            at += 2;
        } else {
            return Err(invalid("Syntax error in HELLO option"));
        }
    }
    if credential.is_some() {
        authenticate(session, username, credential)?;
    }
    if session.caller.is_none() {
        return Err(Error::Unauthenticated {
            detail: "authentication required: HELLO with AUTH name credential, or AUTH credential first",
        });
    }
    if let Some(name) = name {
        session.client.set_name(name);
    }
    if version == Version::Two {
        // It has no messages besides replies, so that the client could not hear what to drop.
        session.subscription = None;
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
    out.bulk(REDIS_VERSION);
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
