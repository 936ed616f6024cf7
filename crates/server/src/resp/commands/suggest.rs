//! `SUGGEST`: whom a user may know. Dismissing a suggestion is a write, see [`super::change`].

use kinfolk_core::{Result, Store};

use super::super::reply::Output;
use super::{Request, is, number, syntax_error};

const LIMIT_DEFAULT: usize = 20;

/// `SUGGEST user [LIMIT n]`: the best first, each an id, how many of the user's followees follow it, its score, and up
/// to three of these.
pub async fn suggestions<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let of = request.id(1)?;
    let mut limit = LIMIT_DEFAULT;
    for option in request.options(2) {
        match option? {
            (name, value) if is(name, "LIMIT") => limit = number(value)?,
            _ => return Err(syntax_error()),
        }
    }
    let found = request.service.suggest(of, limit, request.at_least).await?;
    out.array(found.items.len());
    for suggestion in found.items {
        out.array(4);
        out.id(suggestion.id);
        out.integer(suggestion.mutual_count);
        out.double(suggestion.score.value());
        out.id_list(&suggestion.via);
    }
    Ok(())
}
