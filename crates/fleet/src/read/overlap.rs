//! Overlaps: the smallest set is walked by id, a chunk at a time, and each chunk is narrowed down by the other sets.

use futures_util::future::try_join_all;
use kinfolk_core::graph::{OVERLAP_WALK_MAX, Overlap, Side, UserSet};
use kinfolk_core::{EdgeKind, Error, Id, IdKind};
use tokio_postgres::Row;

use super::counts::Needed;
use super::freshness::{GUARD_COLUMNS, Guard, Reader};
use crate::postgres::{Failure, IdValue, Query, id_min, limit_value};

/// How many members are read and probed at once.
const CHUNK: usize = 2_000;

/// Which of the common members are wanted: all are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) after: Option<Id>,
    pub(crate) limit: usize,
}

impl Reader {
    /// Those who are in all of the sets.
    pub(crate) async fn overlap(
        &self,
        kind: EdgeKind,
        sets: &[UserSet],
        wanted: Wanted,
    ) -> Result<Overlap, Failure> {
        let mut distinct: Vec<UserSet> = Vec::new();
        for &set in sets {
            if !distinct.contains(&set) {
                distinct.push(set);
            }
        }
        let users: Vec<Id> = distinct.iter().map(|set| set.of).collect();
        let is_own_side = distinct.iter().all(|set| set.side == Side::Following);
        let needed = if is_own_side { Needed::OwnSide } else { Needed::BothSides };
        let counts = self.counts_as_of(kind, &users, needed).await?;
        let sizes = distinct.iter().zip(counts).map(|(&set, counts)| (counts.on(set.side), set));
        let mut by_size: Vec<(u64, UserSet)> = sizes.collect();
        by_size.sort_by_key(|&(size, _)| size);
        let Some((&(size, smallest), others)) = by_size.split_first() else { return Ok(Overlap::default()) };
        let others: Vec<UserSet> = others.iter().map(|&(_, set)| set).collect();
        if others.is_empty() {
            let ids = match successor(wanted.after, self.topology.id_kind) {
                Some(from) => self.ids(kind, smallest, from, wanted.limit).await?,
                None => Vec::new(),
            };
            return Ok(Overlap { count: size, ids });
        }
        if size > OVERLAP_WALK_MAX as u64 {
            let error = Error::TooMany { what: "members", count: size as usize, max: OVERLAP_WALK_MAX };
            return Err(Failure::Final(error));
        }
        self.walk(kind, smallest, &others, wanted).await
    }

    async fn walk(
        &self,
        kind: EdgeKind,
        walked: UserSet,
        others: &[UserSet],
        wanted: Wanted,
    ) -> Result<Overlap, Failure> {
        let mut overlap = Overlap::default();
        let mut next = successor(None, self.topology.id_kind);
        while let Some(from) = next {
            let chunk = self.ids(kind, walked, from, CHUNK).await?;
            next = match chunk.last() {
                Some(&last) if chunk.len() == CHUNK => successor(Some(last), self.topology.id_kind),
                _ => None,
            };
            let common = self.narrow(kind, chunk, others).await?;
            overlap.count += common.len() as u64;
            let room = wanted.limit - overlap.ids.len();
            let is_wanted = |id: &Id| wanted.after.is_none_or(|after| *id > after);
            overlap.ids.extend(common.into_iter().filter(is_wanted).take(room));
        }
        Ok(overlap)
    }

    /// Which of some users are in all of the sets, in their order.
    async fn narrow(&self, kind: EdgeKind, users: Vec<Id>, sets: &[UserSet]) -> Result<Vec<Id>, Failure> {
        if users.is_empty() {
            return Ok(users);
        }
        let members = try_join_all(sets.iter().map(|&set| self.members(kind, set, &users))).await?;
        let is_common = |id: &Id| members.iter().all(|members| members.binary_search(id).is_ok());
        Ok(users.into_iter().filter(is_common).collect())
    }

    /// Which of some users are in a set, by id.
    pub(crate) async fn members(
        &self,
        kind: EdgeKind,
        set: UserSet,
        users: &[Id],
    ) -> Result<Vec<Id>, Failure> {
        let asked: Vec<IdValue> = users.iter().copied().map(IdValue).collect();
        let query = match set.side {
            Side::Following => Query::FollowingMembers,
            Side::Followers => Query::FollowersMembers,
        };
        let (number, kind, of, guard) = self.set_parameters(kind, set);
        let host = self.topology.host_of(self.topology.shard_of(set.of));
        let rows = self.ask(host, query, &guard, &[&number, &kind, &of, &asked]).await?;
        let mut members: Vec<Id> = rows.iter().filter_map(id_of).collect();
        members.sort_unstable();
        Ok(members)
    }

    /// Up to `limit` members of a set by id, from one on.
    async fn ids(&self, kind: EdgeKind, set: UserSet, from: Id, limit: usize) -> Result<Vec<Id>, Failure> {
        let query = match set.side {
            Side::Following => Query::FollowingIds,
            Side::Followers => Query::FollowersIds,
        };
        let (number, kind, of, guard) = self.set_parameters(kind, set);
        let host = self.topology.host_of(self.topology.shard_of(set.of));
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&number, &kind, &of, &IdValue(from), &limit_value(limit)];
        let rows = self.ask(host, query, &guard, &parameters).await?;
        let mut ids: Vec<Id> = rows.iter().filter_map(id_of).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    fn set_parameters(&self, kind: EdgeKind, set: UserSet) -> (i16, i16, IdValue, Guard) {
        let shard = self.topology.shard_of(set.of);
        let guard = match set.side {
            Side::Following => Guard::of_truth(&self.topology, [shard], &self.at_least),
            Side::Followers => Guard::of_followers(&self.topology, [shard], &self.at_least),
        };
        (shard.0 as i16, i16::from(kind.number()), IdValue(set.of), guard)
    }
}

fn id_of(row: &Row) -> Option<Id> {
    row.get::<_, Option<IdValue>>(GUARD_COLUMNS).map(|IdValue(id)| id)
}

/// The lowest id after another, or of all. After the highest there is none.
fn successor(after: Option<Id>, kind: IdKind) -> Option<Id> {
    match after {
        None => Some(id_min(kind)),
        Some(Id::Integer(id)) => (id < i64::MAX as u64).then(|| Id::Integer(id + 1)),
        Some(Id::Uuid(id)) => id.checked_add(1).map(Id::Uuid),
    }
}
