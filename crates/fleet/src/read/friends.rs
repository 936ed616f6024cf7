//! Friends: both sides of a user are on one shard. The shorter one is walked, and the other is probed.

use kinfolk_core::graph::ListEntry;
use kinfolk_core::{EdgeKind, Id};

use super::freshness::{Guard, Reader};
use super::lists::{Page, PageOf};
use crate::postgres::{Failure, Query};

impl Reader {
    /// A page of a user's followers that it follows back.
    pub(crate) async fn friends(
        &self,
        kind: EdgeKind,
        of: Id,
        page: Page,
    ) -> Result<Vec<ListEntry>, Failure> {
        let counts = self.counts(kind, &[of]).await?;
        let few_followers = counts.first().is_none_or(|counts| counts.followers <= counts.following);
        let query = if few_followers { Query::FriendsOfFewFollowers } else { Query::FriendsOfFewFollowees };
        let shard = [self.topology.shard_of(of)];
        let guard = Guard::of_truth(&self.topology, shard, &self.at_least).and_followers(&self.at_least);
        self.page(PageOf { query, kind, of }, &guard, page).await
    }
}
