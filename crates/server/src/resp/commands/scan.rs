//! `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`: a walk over the keys of all users. The server keeps nothing between
//! its steps. For services: no other command shows all users to an end user.
//!
//! A step takes users in the order of their numbers, so each key that exists during the whole walk is replied, and none twice.
//! A cursor has 53 bits, because some clients keep it as a floating-point number: the numbering (21), then the number of the next
//! user (32). Numbers change when the server restarts; a cursor from before is refused, and the client starts again.

use kinfolk_core::graph::{Counts, Side};

use super::super::glob::Pattern;
use super::super::keys;
use super::prelude::*;
use crate::access::Scope;
use crate::limits::RowCost;

const COUNT_DEFAULT: usize = 10;
const COUNT_MAX: usize = 1_000;
/// How many users the graph counts in one call.
const COUNTS_MAX: usize = 100;
const NUMBER_BITS: u32 = 32;
const NUMBERING_BITS: u32 = 21;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "scan",
        summary: "iterates over the keys of all users",
        syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]",
        complexity: "O(1) for every call; O(N) for a whole iteration of N users",
        example: &["0"],
        arity: -2,
        group: "generic",
        scope: Some(Scope::Read),
        is_for_services: true,
        ..Command::server(|session, arguments, out| Box::pin(run(session, arguments, out)))
    }
}

/// What a step is asked for.
struct Step<'a> {
    cursor: u64,
    pattern: Option<Pattern<'a>>,
    count: usize,
    /// All keys are sets.
    has_sets: bool,
}

impl<'a> Step<'a> {
    fn parse(arguments: Arguments<'a>) -> Result<Self> {
        let cursor = number(arguments.get(1).unwrap_or_default()).map_err(|_| invalid("invalid cursor"))?;
        let mut step = Self { cursor, pattern: None, count: COUNT_DEFAULT, has_sets: true };
        for at in (2..arguments.len()).step_by(2) {
            let option = arguments.get(at).ok_or_else(syntax_error)?;
            let value = arguments.get(at + 1).ok_or_else(syntax_error)?;
            if is(option, "MATCH") {
                step.pattern = Some(Pattern::new(value)?);
            } else if is(option, "COUNT") {
                step.count = number::<usize>(value)?;
            } else if is(option, "TYPE") {
                step.has_sets = is(value, "set");
            } else {
                return Err(syntax_error());
            }
        }
        if step.count == 0 {
            return Err(syntax_error());
        }
        step.count = step.count.min(COUNT_MAX);
        Ok(step)
    }
}

async fn run<S: Store>(session: &Session<S>, arguments: Arguments<'_>, out: &mut Output) -> Result<()> {
    let step = Step::parse(arguments)?;
    let (service, caller) = (&session.shared.service, session.caller.as_ref().ok_or_else(syntax_error)?);
    let permit = caller.permit(Scope::Read)?;
    let from = (step.cursor & ((1 << NUMBER_BITS) - 1)) as u32;
    let page = service.administration(permit).users(from, step.count)?;
    let numbering = page.numbering & ((1 << NUMBERING_BITS) - 1);
    if step.cursor != 0 && step.cursor >> NUMBER_BITS != numbering {
        return Err(invalid("the cursor is from before a restart; start again with 0"));
    }
    RowCost::new(&caller.budget).charge(page.users.len())?;
    let mut found = Vec::new();
    for users in page.users.chunks(COUNTS_MAX).filter(|_| step.has_sets) {
        let counts = service.graph(permit).counts(EdgeKind::Follow, users, &session.seen).await?;
        for (&user, Counts { following, followers }) in users.iter().zip(counts) {
            let sides = [(Side::Following, following), (Side::Followers, followers)];
            let keys =
                sides.into_iter().filter(|&(_, size)| size > 0).map(|(side, _)| keys::write(side, user));
            let matches = |key: &String| step.pattern.is_none_or(|pattern| pattern.matches(key.as_bytes()));
            found.extend(keys.filter(matches));
        }
        tokio::task::yield_now().await;
    }
    let is_last = page.users.len() < step.count;
    let next = u64::from(from) + page.users.len() as u64;
    out.array(2);
    out.bulk(itoa::Buffer::new().format(if is_last { 0 } else { numbering << NUMBER_BITS | next }));
    out.array(found.len());
    found.iter().for_each(|key| out.bulk(key));
    Ok(())
}
