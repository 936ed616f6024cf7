//! `SINTER`, `SINTERCARD`, `COMMON`, `KNOWN`: who is in all of some sets. The store compares the sets.

use kinfolk_core::graph::{OverlapPage, Side, UserSet};
use kinfolk_core::{Id, Result, Store};

use super::super::reply::Output;
use super::lists::page;
use super::members::MEMBERS_MAX;
use super::{Request, invalid, is, number, syntax_error};

/// `SINTER key [key …]`, by id.
pub async fn intersection<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let sets = request.keys(1).collect::<Result<Vec<_>>>()?;
    out.ids(&collect(request, &sets).await?);
    Ok(())
}

/// `SINTERCARD numkeys key [key …] [LIMIT limit]`.
pub async fn cardinality<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let count: usize = number(request.argument(1)?)?;
    let given = request.arguments.len() - 2;
    if count == 0 || count > given {
        return Err(invalid("the number of keys must be at least 1 and at most the keys that follow"));
    }
    let sets = request.keys(2).take(count).collect::<Result<Vec<_>>>()?;
    let mut limit = 0;
    for option in request.options(2 + count) {
        let (name, value) = option?;
        if !is(name, "LIMIT") {
            return Err(syntax_error());
        }
        limit = number(value)?;
    }
    let found = request.service.overlap(request.budget, &sets, 0, request.at_least).await?.count;
    // As in Redis, 0 means no limit.
    out.integer(if limit == 0 { found } else { found.min(limit) });
    Ok(())
}

/// `COMMON user user [user …] [LIMIT n] [CURSOR c]`: whom all of them follow, by id. All at once as an array or, with
/// one of the options, a page as that of `KNOWN`.
pub async fn common<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    // No id is one of these words.
    let is_option = |word: &[u8]| is(word, "LIMIT") || is(word, "CURSOR");
    let users = request.arguments.iter().skip(1).take_while(|&word| !is_option(word)).count();
    let of = request.ids(1).take(users).collect::<Result<Vec<_>>>()?;
    if of.is_empty() {
        return Err(syntax_error());
    }
    if users + 1 < request.arguments.len() {
        let page = page(request, 1 + users)?;
        write_page(request.service.common(request.budget, &of, page, request.at_least).await?, out);
        return Ok(());
    }
    let sets: Vec<UserSet> = of.into_iter().map(|of| UserSet { side: Side::Following, of }).collect();
    let found = collect(request, &sets).await?;
    // Unlike a set, this has an order.
    out.id_list(&found);
    Ok(())
}

/// `KNOWN viewer user [LIMIT n] [CURSOR c]`: whom the viewer follows and who follow the user, by id. How many, some
/// of them, and the cursor of the next page, or null at the end.
pub async fn known<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let of = (request.id(1)?, request.id(2)?);
    let page = page(request, 3)?;
    write_page(request.service.known_followers(request.budget, of, page, request.at_least).await?, out);
    Ok(())
}

/// All who are in all sets, if they fit into one answer.
async fn collect<S: Store>(request: &Request<'_, S>, sets: &[UserSet]) -> Result<Vec<Id>> {
    let found = request.service.overlap(request.budget, sets, MEMBERS_MAX, request.at_least).await?;
    if found.count > MEMBERS_MAX as u64 {
        return Err(invalid(format!(
            "more than {MEMBERS_MAX} are in all of the sets, the most in one answer: use SINTERCARD, SSCAN, \
             or COMMON with LIMIT and CURSOR"
        )));
    }
    Ok(found.ids)
}

fn write_page(page: OverlapPage, out: &mut Output) {
    out.array(3);
    out.integer(page.count);
    out.id_list(&page.items);
    out.bulk_or_null(page.next);
}
