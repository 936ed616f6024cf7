//! `FEED user [LIMIT n] [CURSOR c]`: a page of the posts of a user's followees. Also how pages of posts are replied.

use kinfolk_core::feeds::PostPage;

use super::prelude::*;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "feed",
        summary: "the posts of a user's followees, newest first",
        syntax: "user [LIMIT limit] [CURSOR cursor]",
        example: &["7"],
        arity: -2,
        operation: Operation::Feed,
        capability: Some(Capability::Feeds),
        is_abandonable: true,
        ..Command::view(|viewer, request, out| Box::pin(run(viewer, request, out)))
    }
}

async fn run<S: Store>(viewer: Viewer, request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let page = request.page(2)?;
    write_page(request.feeds()?.feed(viewer.id(), page, request.at_least).await?, out);
    Ok(())
}

/// An array of posts, each an id, its author, milliseconds since 1970, and its payload or null; then the cursor of the
/// next page, or null at the end.
pub(super) fn write_page(page: PostPage, out: &mut Output) {
    out.array(2);
    out.array(page.items.len());
    for post in page.items {
        out.array(4);
        out.id(post.id);
        out.id(post.author);
        out.integer(post.created_at.millis());
        out.bulk_or_null(post.payload.as_deref());
    }
    out.bulk_or_null(page.next);
}
