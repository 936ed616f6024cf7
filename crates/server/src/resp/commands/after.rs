//! `AFTER token`: makes the next read at least as fresh as a consistency token.

use super::prelude::*;

/// No token is longer, even of 512 shards.
const TOKEN_BYTES_MAX: usize = 8 << 10;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "after",
        summary: "makes the next read at least as fresh as a consistency token",
        syntax: "token",
        example: &["token"],
        arity: 2,
        ..Command::session(run)
    }
}

fn run<S: Store>(session: &mut Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    let token = arguments.get(1).filter(|token| token.len() <= TOKEN_BYTES_MAX).ok_or(Error::InvalidToken)?;
    session.require_after(text(token)?)?;
    out.ok();
    Ok(())
}
