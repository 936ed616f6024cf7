//! `TTL`, `PTTL`, `EXPIRETIME` and `PEXPIRETIME`: sets do not expire, so the reply is -1, or -2 if the set is empty.

use super::prelude::*;
use super::scard::sizes;

pub(crate) const fn ttl<S: Store>() -> Command<S> {
    named("ttl", "when a set expires, in seconds: never")
}

pub(crate) const fn pttl<S: Store>() -> Command<S> {
    named("pttl", "when a set expires, in milliseconds: never")
}

pub(crate) const fn expiretime<S: Store>() -> Command<S> {
    named("expiretime", "the second at which a set expires: never")
}

pub(crate) const fn pexpiretime<S: Store>() -> Command<S> {
    named("pexpiretime", "the millisecond at which a set expires: never")
}

const fn named<S: Store>(name: &'static str, summary: &'static str) -> Command<S> {
    Command {
        name,
        summary,
        syntax: "key",
        complexity: "O(1)",
        example: &["following:7"],
        arity: 2,
        keys: Keys::ONE,
        flags: FAST_READ,
        operation: Operation::Counts,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let sizes = sizes(request, &[request.key(1)?]).await?;
    out.integer(if sizes.iter().any(|&size| size > 0) { -1 } else { -2 });
    Ok(())
}
