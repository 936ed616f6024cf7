//! `SISMEMBER`, `SMISMEMBER`, `FOLLOWS`: whether edges exist.

use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Result, Store};

use super::super::reply::Output;
use super::super::table::Read;
use super::Request;

/// The edge that a command asks for, if it is one that asks for one only: `SISMEMBER key member`, `FOLLOWS follower followee`.
pub fn edge<S: Store>(verb: Read, request: &Request<'_, S>) -> Result<Edge> {
    match verb {
        Read::IsMember => Ok(request.key(1)?.edge(request.id(2)?)),
        _ => Ok(Edge { follower: request.id(1)?, followee: request.id(2)? }),
    }
}

/// One check that could not be answered together with others.
pub async fn one<S: Store>(verb: Read, request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let edge = edge(verb, request)?;
    out.flag(request.service.graph.check_one(EdgeKind::Follow, edge, request.at_least).await?);
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
    if Read::Follows.is_one_check(request.arguments.len()) {
        return one(Read::Follows, request, out).await;
    }
    let follower = request.id(1)?;
    let edge = |followee: Result<_>| Ok(Edge { follower, followee: followee? });
    let edges = request.ids(2).map(edge).collect::<Result<Vec<_>>>()?;
    check(request, &edges, out).await
}

async fn check<S: Store>(request: &Request<'_, S>, edges: &[Edge], out: &mut Output) -> Result<()> {
    let found = request.service.graph.check(EdgeKind::Follow, edges, request.at_least).await?;
    out.array(found.len());
    found.into_iter().for_each(|found| out.flag(found));
    Ok(())
}
