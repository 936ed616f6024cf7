//! `FOLLOWING user [LIMIT n] [CURSOR c]`: a page of a user's followees. Also how pages of users are replied.

use kinfolk_core::graph::ListPage;

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "following",
        summary: "a user's followees, newest first",
        syntax: "user [LIMIT limit] [CURSOR cursor]",
        example: &["7"],
        arity: -2,
        operation: Operation::Following,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let (of, page) = (request.id(1)?, request.page(2)?);
    write_page(request.graph().following(EdgeKind::Follow, of, page, request.at_least).await?, out);
    Ok(())
}

/// An array of entries, each an id and milliseconds since 1970; then the cursor of the next page, or null at the end.
pub(super) fn write_page(page: ListPage, out: &mut Output) {
    out.array(2);
    out.array(page.items.len());
    for entry in page.items {
        out.array(2);
        out.id(entry.id);
        out.integer(entry.since.millis());
    }
    out.bulk_or_null(page.next);
}
