//! `KNOWN viewer user [LIMIT n] [CURSOR c]`: a page of the viewer's followees that follow a user, by id.

use kinfolk_core::graph::OverlapPage;

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "known",
        summary: "the viewer's followees that follow a user, by id",
        syntax: "viewer user [LIMIT limit] [CURSOR cursor]",
        example: &["7", "8"],
        arity: -3,
        operation: Operation::KnownFollowers,
        cost: Cost::Rows,
        is_abandonable: true,
        ..Command::view(|viewer, request, out| Box::pin(run(viewer, request, out)))
    }
}

async fn run<S: Store>(viewer: Viewer, request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let (of, page) = (request.id(2)?, request.page(3)?);
    write_page(request.service.known_followers(request.reading(), viewer, of, page).await?, out);
    Ok(())
}

/// How many there are, some of them, and the cursor of the next page, or null at the end.
pub(super) fn write_page(page: OverlapPage, out: &mut Output) {
    out.array(3);
    out.integer(page.count);
    out.id_list(&page.items);
    out.bulk_or_null(page.next);
}
