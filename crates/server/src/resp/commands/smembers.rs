//! `SMEMBERS key`: all users of a set, if they fit into one reply.

use kinfolk_core::graph::EdgeList;

use super::prelude::*;
use super::scard::sizes;
use crate::limits::RowCost;

/// How many members one reply has at most.
pub(super) const MEMBERS_MAX: usize = 10_000;
/// How many entries are read from a list at once.
const PAGE: usize = 1_000;

pub(crate) const fn command<S: Store>() -> Command<S> {
    Command {
        name: "smembers",
        summary: "all users of a set of up to 10,000",
        syntax: "key",
        complexity: "O(N) where N is the size of the set",
        example: &["following:7"],
        arity: 2,
        keys: Keys::ONE,
        operation: Operation::Following,
        cost: Cost::Rows,
        ..Command::read(|request, out| Box::pin(run(request, out)))
    }
}

async fn run<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let key = request.key(1)?;
    let size = sizes(request, &[key]).await?.into_iter().sum::<u64>();
    if size > MEMBERS_MAX as u64 {
        return Err(too_large());
    }
    let list = EdgeList { kind: EdgeKind::Follow, side: key.side, of: key.of };
    let mut members = Vec::with_capacity(size as usize);
    let mut cost = RowCost::new(request.reading().budget);
    let mut after = None;
    loop {
        let page = request.graph().walk(list, after, PAGE, request.at_least).await?;
        cost.charge(page.len())?;
        members.extend(page.iter().map(|entry| entry.id));
        if members.len() > MEMBERS_MAX {
            return Err(too_large());
        }
        if page.len() < PAGE {
            break;
        }
        after = page.last().copied();
        tokio::task::yield_now().await;
    }
    out.ids(&members);
    Ok(())
}

fn too_large() -> Error {
    invalid(format!("the set has more than {MEMBERS_MAX} members, the maximum in one reply: use SSCAN"))
}
