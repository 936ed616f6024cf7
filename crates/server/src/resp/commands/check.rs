//! `SISMEMBER`, `SMISMEMBER`, `FOLLOWS`: whether edges exist.

use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Result, Store};

use super::super::reply::Output;
use super::Request;

/// `SISMEMBER key member`. The most frequent question: it allocates nothing.
pub async fn is_member<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let edge = request.key(1)?.edge(request.id(2)?);
    out.flag(request.service.graph.check_one(EdgeKind::Follow, edge, request.fresh).await?);
    Ok(())
}

/// `SMISMEMBER key member [member …]`.
pub async fn are_members<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let key = request.key(1)?;
    let edges = request.ids(2).map(|member| Ok(key.edge(member?))).collect::<Result<Vec<_>>>()?;
    check(request, &edges, out).await
}

/// `FOLLOWS follower followee [followee …]`: an integer for one, an array for more.
pub async fn follows<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let follower = request.id(1)?;
    if request.arguments.len() == 3 {
        let edge = Edge { follower, followee: request.id(2)? };
        out.flag(request.service.graph.check_one(EdgeKind::Follow, edge, request.fresh).await?);
        return Ok(());
    }
    let edge = |followee: Result<_>| Ok(Edge { follower, followee: followee? });
    let edges = request.ids(2).map(edge).collect::<Result<Vec<_>>>()?;
    check(request, &edges, out).await
}

async fn check<S: Store>(request: &Request<'_, S>, edges: &[Edge], out: &mut Output) -> Result<()> {
    let found = request.service.graph.check(EdgeKind::Follow, edges, request.fresh).await?;
    out.array(found.len());
    found.into_iter().for_each(|found| out.flag(found));
    Ok(())
}
