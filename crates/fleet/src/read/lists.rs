//! Lists: pages of an index, from a key on.

use kinfolk_core::graph::{EdgeList, ListEntry, ListKey, Side};
use kinfolk_core::{EdgeKind, Id, Timestamp};
use tokio_postgres::Row;

use super::freshness::{GUARD_COLUMNS, Guard, Reader};
use crate::postgres::{Failure, IdValue, Query, id_max, limit_value};

/// A page of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) after: Option<ListKey>,
    pub(crate) limit: usize,
}

/// Which statement reads a page, and whose list it is.
pub(super) struct PageOf {
    pub(super) query: Query,
    pub(super) kind: EdgeKind,
    pub(super) of: Id,
}

impl Reader {
    /// A page of one side of a user.
    pub(crate) async fn list(&self, list: EdgeList, page: Page) -> Result<Vec<ListEntry>, Failure> {
        let EdgeList { kind, side, of } = list;
        let shard = [self.topology.shard_of(of)];
        let (query, guard) = match side {
            Side::Following => (Query::FollowingPage, Guard::of_truth(&self.topology, shard, &self.at_least)),
            Side::Followers => {
                (Query::FollowersPage, Guard::of_followers(&self.topology, shard, &self.at_least))
            }
        };
        self.page(PageOf { query, kind, of }, &guard, page).await
    }

    pub(super) async fn page(
        &self,
        which: PageOf,
        guard: &Guard,
        page: Page,
    ) -> Result<Vec<ListEntry>, Failure> {
        let shard = self.topology.shard_of(which.of);
        let (number, kind) = (shard.0 as i16, i16::from(which.kind.number()));
        let of = IdValue(which.of);
        // Before the first entry of any list.
        let start = || (i64::MAX, IdValue(id_max(self.topology.id_kind)));
        let (since, id) = page.after.map_or_else(start, |key| (key.since.millis() as i64, IdValue(key.id)));
        let limit = limit_value(page.limit);
        let host = self.topology.host_of(shard);
        let rows = self.ask(host, which.query, guard, &[&number, &kind, &of, &since, &id, &limit]).await?;
        let mut entries: Vec<ListEntry> = rows.iter().filter_map(entry).collect();
        // They come in this order; the join around the page does not promise it.
        entries.sort_unstable();
        Ok(entries)
    }
}

fn entry(row: &Row) -> Option<ListEntry> {
    let since = row.get::<_, Option<i64>>(GUARD_COLUMNS)?;
    let IdValue(id) = row.get(GUARD_COLUMNS + 1);
    Some(ListKey { since: Timestamp::from_millis(since as u64), id })
}
