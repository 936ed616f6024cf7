//! `SINTER`, `SINTERCARD`, `COMMON`: who is in all of some sets. Walks the smallest and checks the others.

use kinfolk_core::graph::{Edge, Side};
use kinfolk_core::{EdgeKind, Id, Result, Store};

use super::super::keys::Key;
use super::super::reply::Output;
use super::members::{MEMBERS_MAX, Walk};
use super::{Request, counts, invalid, is, number, syntax_error};

/// The most sets in one call.
const SETS_MAX: usize = 10;
/// The most members of the smallest set: it is walked in the request.
const WALK_MAX: u64 = 1_000_000;

/// `SINTER key [key …]`, by id.
pub async fn intersection<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let keys = request.keys(1).collect::<Result<Vec<_>>>()?;
    out.ids(&collect(request, &keys).await?);
    Ok(())
}

/// `COMMON user user [user …]`: whom all of them follow, by id.
pub async fn common<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let key = |of: Result<Id>| Ok(Key { side: Side::Following, of: of? });
    let keys = request.ids(1).map(key).collect::<Result<Vec<_>>>()?;
    let common = collect(request, &keys).await?;
    // Unlike a set, this has an order.
    out.array(common.len());
    common.into_iter().for_each(|id| out.id(id));
    Ok(())
}

/// `SINTERCARD numkeys key [key …] [LIMIT limit]`.
pub async fn cardinality<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let count: usize = number(request.argument(1)?)?;
    let given = request.arguments.len() - 2;
    if count == 0 || count > given {
        return Err(invalid("the number of keys must be at least 1 and at most the keys that follow"));
    }
    let keys = request.keys(2).take(count).collect::<Result<Vec<_>>>()?;
    let mut limit = 0;
    for option in request.options(2 + count) {
        let (name, value) = option?;
        if !is(name, "LIMIT") {
            return Err(syntax_error());
        }
        limit = number(value)?;
    }
    let mut found = 0;
    // As in Redis, 0 means no limit.
    let max = if limit == 0 { usize::MAX } else { limit };
    intersect(request, &keys, |ids| {
        found += ids.len();
        Ok(found < max)
    })
    .await?;
    out.integer(found.min(max));
    Ok(())
}

async fn collect<S: Store>(request: &Request<'_, S>, keys: &[Key]) -> Result<Vec<Id>> {
    let mut all = Vec::new();
    intersect(request, keys, |ids| {
        all.extend_from_slice(ids);
        if all.len() > MEMBERS_MAX {
            return Err(invalid(format!(
                "more than {MEMBERS_MAX} are in all of the sets, the most in one answer: use SINTERCARD or SSCAN"
            )));
        }
        Ok(true)
    })
    .await?;
    all.sort_unstable();
    Ok(all)
}

/// Passes those who are in all sets to `found`, some at a time, until it says that it has enough.
async fn intersect<S: Store>(
    request: &Request<'_, S>,
    keys: &[Key],
    mut found: impl FnMut(&[Id]) -> Result<bool>,
) -> Result<()> {
    if keys.len() > SETS_MAX {
        return Err(kinfolk_core::Error::TooMany { what: "sets", given: keys.len(), max: SETS_MAX });
    }
    let sizes = counts::sizes(request, keys).await?;
    let Some((&smallest, &size)) = keys.iter().zip(&sizes).min_by_key(|&(_, &size)| size) else {
        return Ok(());
    };
    if size > WALK_MAX {
        return Err(invalid(format!(
            "each of the sets has more than {WALK_MAX} members, too many to compare"
        )));
    }
    let mut walk = Walk::new(smallest);
    while let Some(page) = walk.next(request).await? {
        let mut ids: Vec<Id> = page.into_iter().map(|entry| entry.id).collect();
        for &other in keys.iter().filter(|&&key| key != smallest) {
            walk.pay(request, ids.len())?;
            let edges: Vec<Edge> = ids.iter().map(|&id| other.edge(id)).collect();
            let are_in = request.service.graph.check(EdgeKind::Follow, &edges, request.fresh).await?;
            let mut are_in = are_in.into_iter();
            ids.retain(|_| are_in.next().unwrap_or_default());
        }
        if !found(&ids)? {
            break;
        }
    }
    Ok(())
}
