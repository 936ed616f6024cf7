//! `SMEMBERS`: all of a set, if it is small enough for one answer.

use kinfolk_core::graph::{EdgeList, ListEntry, ListKey, UserSet};
use kinfolk_core::{EdgeKind, Error, Result, Store};

use super::super::reply::Output;
use super::{Request, counts, invalid};
use crate::limits::Toll;

/// The most members that one answer has.
pub const MEMBERS_MAX: usize = 10_000;
/// How many entries are taken from a list at once.
const PAGE: usize = 1_000;

/// `SMEMBERS key`.
pub async fn members<S: Store>(request: &Request<'_, S>, out: &mut Output) -> Result<()> {
    let key = request.key(1)?;
    let size = counts::sizes(request, &[key]).await?.into_iter().sum::<u64>();
    if size > MEMBERS_MAX as u64 {
        return Err(too_large());
    }
    let mut members = Vec::with_capacity(size as usize);
    let mut walk = Walk::new(key);
    while let Some(page) = walk.next(request).await? {
        members.extend(page.into_iter().map(|entry| entry.id));
        if members.len() > MEMBERS_MAX {
            return Err(too_large());
        }
    }
    out.ids(&members);
    Ok(())
}

fn too_large() -> Error {
    invalid(format!("the set has more than {MEMBERS_MAX} members, the most in one answer: use SSCAN"))
}

/// A walk over a whole set, page by page, that lets others run in between.
struct Walk {
    key: UserSet,
    after: Option<ListKey>,
    ended: bool,
    toll: Toll,
}

impl Walk {
    fn new(key: UserSet) -> Self {
        Self { key, after: None, ended: false, toll: Toll::default() }
    }

    /// The next members, unless there are no more.
    async fn next<S: Store>(&mut self, request: &Request<'_, S>) -> Result<Option<Vec<ListEntry>>> {
        if self.ended {
            return Ok(None);
        }
        if self.after.is_some() {
            tokio::task::yield_now().await;
        }
        let UserSet { side, of } = self.key;
        let graph = &request.service.graph;
        let list = EdgeList { kind: EdgeKind::Follow, side, of };
        let page = graph.walk(list, self.after, PAGE, request.at_least).await?;
        self.ended = page.len() < PAGE;
        self.after = page.last().copied();
        self.toll.pay(request.budget, page.len())?;
        Ok(Some(page))
    }
}
