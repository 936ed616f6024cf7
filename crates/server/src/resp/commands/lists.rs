//! `FOLLOWING`, `FOLLOWERS`, `FRIENDS`: pages of lists, with the graph's own cursors.

use kinfolk_core::{EdgeKind, PageRequest, Result, Store};

use super::super::reply::Output;
use super::super::table::Read;
use super::{Request, is, number, syntax_error, text};

const LIMIT_DEFAULT: usize = 50;

/// `FOLLOWING user [LIMIT n] [CURSOR c]` and the like: an array of entries, each an id and milliseconds since 1970;
/// then the cursor of the next page, or null at the end.
pub async fn list<S: Store>(list: Read, request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let of = request.id(1)?;
    let page = page(request, 2)?;
    let graph = &request.service.graph;
    let page = match list {
        Read::Followers => graph.followers(EdgeKind::Follow, of, page, request.at_least).await?,
        Read::Friends => request.service.friends(request.budget, of, page, request.at_least).await?,
        _ => graph.following(EdgeKind::Follow, of, page, request.at_least).await?,
    };
    out.array(2);
    out.array(page.items.len());
    for entry in page.items {
        out.array(2);
        out.id(entry.id);
        out.integer(entry.since.millis());
    }
    out.bulk_or_null(page.next);
    Ok(())
}

/// The options `LIMIT n` and `CURSOR c`, from an argument on.
pub fn page<'a, S: Store>(request: &Request<'a, S>, first: usize) -> Result<PageRequest<'a>> {
    let mut page = PageRequest { limit: LIMIT_DEFAULT, cursor: None };
    for option in request.options(first) {
        match option? {
            (name, value) if is(name, "LIMIT") => page.limit = number(value)?,
            (name, value) if is(name, "CURSOR") => page.cursor = Some(text(value)?),
            _ => return Err(syntax_error()),
        }
    }
    Ok(page)
}
