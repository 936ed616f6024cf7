//! `SUGGEST user [LIMIT n]`: suggestions of users to follow, best first.

use super::prelude::*;

const LIMIT_DEFAULT: usize = 20;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "suggest",
        summary: "suggestions of users to follow, best first",
        syntax: "viewer [LIMIT limit]",
        example: &["7"],
        arity: -2,
        operation: Operation::Suggestions,
        capability: Some(Capability::Suggestions),
        is_abandonable: true,
        ..Command::view(|viewer, request, out| Box::pin(run(viewer, request, out)))
    }
}

/// Replies for each an id, how many of the viewer's followees follow it, its score, and up to three of these followees.
async fn run<S: Store>(viewer: Viewer, request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let mut limit = LIMIT_DEFAULT;
    for option in request.options(2) {
        match option? {
            option if option.is("LIMIT") => limit = number(option.value)?,
            _ => return Err(syntax_error()),
        }
    }
    let found = request.suggest(viewer, limit).await?;
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
