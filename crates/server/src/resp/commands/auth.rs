//! `AUTH [name] credential`: authenticates the caller, by an API key or a JWT.

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "auth",
        summary: "authenticates the caller, by an API key or a JWT",
        syntax: "[username] credential",
        example: &["credential"],
        arity: -2,
        ..Command::open(run)
    }
}

fn run<S: Store>(session: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    if arguments.len() > 3 {
        return Err(syntax_error());
    }
    let username = arguments.get(1).filter(|_| arguments.len() == 3);
    authenticate(session, username, arguments.get(arguments.len() - 1))?;
    out.ok();
    Ok(())
}

/// Clients may send a name before the credential; it is ignored. With authentication off, a credential without a name is
/// refused, as in Redis: the client believes that it needs one.
pub(super) fn authenticate<S: Store>(
    session: &mut Session<S>,
    username: Option<&[u8]>,
    credential: Option<&[u8]>,
) -> Result<()> {
    let access = &session.shared.service.access;
    if access.is_open() && username.is_none() {
        return Err(invalid(
            "AUTH <password> called without any password configured for the default user. Are you sure your \
             configuration is correct?",
        ));
    }
    const INVALID: Error = Error::WrongCredential { detail: "the credential is not valid" };
    let credential = credential.and_then(|bytes| str::from_utf8(bytes).ok()).ok_or(INVALID)?;
    let caller = access.authenticate(credential).map_err(|error| match error {
        Error::Unauthenticated { detail } => Error::WrongCredential { detail },
        other => other,
    })?;
    session.set_caller(caller)
}
