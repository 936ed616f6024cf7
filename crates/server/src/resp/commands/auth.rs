//! `AUTH [name] credential`: authenticates the caller, by an API key or a JWT.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "auth",
        summary: "authenticates the caller, by an API key or a JWT",
        example: &["credential"],
        arity: -2,
        ..Command::open(run)
    }
}

fn run<S: Store>(session: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    if arguments.len() > 3 {
        return Err(syntax_error());
    }
    authenticate(session, arguments.get(arguments.len() - 1))?;
    out.ok();
    Ok(())
}

/// Clients may send a name before the credential; it is ignored.
pub(super) fn authenticate<S: Store>(session: &mut Session<S>, credential: Option<&[u8]>) -> Result<()> {
    const INVALID: Error = Error::Unauthenticated { detail: "the credential is not valid" };
    let credential = credential.and_then(|bytes| str::from_utf8(bytes).ok()).ok_or(INVALID)?;
    let caller = session.shared.service.access.authenticate(credential)?;
    session.set_caller(caller)
}
