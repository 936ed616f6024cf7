//! `HELLO [version [AUTH name credential] [SETNAME name]]`: negotiates the version of the protocol.

use super::auth::authenticate;
use super::client;
use super::info::REDIS_VERSION;
use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "hello",
        summary: "negotiates the version of the protocol",
        arity: -1,
        ..Command::open(run)
    }
}

fn run<S: Store>(session: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
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
