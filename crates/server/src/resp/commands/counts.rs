//! `SCARD`, `EXISTS`, `TYPE`, `COUNTS`: how many edges users have. Never walks a list.

use kinfolk_core::graph::{Counts, UserSet};
use kinfolk_core::{EdgeKind, Id, Result, Store};

use super::super::reply::Output;
use super::Request;

/// `SCARD key`.
pub async fn cardinality<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    out.integer(sizes(request, &[request.key(1)?]).await?.first().copied().unwrap_or_default());
    Ok(())
}

/// `EXISTS key [key …]`: how many sets have members; one that is named twice counts twice, as in Redis.
pub async fn exists<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let keys = request.keys(1).collect::<Result<Vec<_>>>()?;
    out.integer(sizes(request, &keys).await?.iter().filter(|&&size| size > 0).count());
    Ok(())
}

/// `TYPE key`.
pub async fn kind<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let sizes = sizes(request, &[request.key(1)?]).await?;
    out.simple(if sizes.iter().any(|&size| size > 0) { "set" } else { "none" });
    Ok(())
}

/// `COUNTS user [user …]`: following and followers, for more than one user as an array of such pairs.
pub async fn counts<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let users = request.ids(1).collect::<Result<Vec<_>>>()?;
    let counts = request.service.graph.counts(EdgeKind::Follow, &users, request.at_least).await?;
    if counts.len() > 1 {
        out.array(counts.len());
    }
    for Counts { following, followers } in counts {
        out.array(2);
        out.integer(following);
        out.integer(followers);
    }
    Ok(())
}

/// How many members each set has.
pub async fn sizes<S: Store>(request: &Request<'_, S>, keys: &[UserSet]) -> Result<Vec<u64>> {
    let users: Vec<Id> = keys.iter().map(|key| key.of).collect();
    let counts = request.service.graph.counts(EdgeKind::Follow, &users, request.at_least).await?;
    Ok(keys.iter().zip(counts).map(|(key, counts)| counts.on(key.side)).collect())
}
