//! Faults of reading: checks, lists, friends, counts and the log. Right answers come from the [`Model`].

use std::cmp::Reverse;
use std::sync::Mutex;

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::{Counts, Edge, ListEntry, ListKey, Side};
use kinfolk_core::{EdgeKind, Error, Id, Position, Result, Sequence, Timestamp};

use crate::faults::{Fault, Planted, locked_model};
use crate::model::Model;

/// Where a page begins, and how long it may be.
pub(in crate::faults) type Page = (Option<ListKey>, usize);

impl Planted {
    pub(crate) fn contains(&self, model: &Mutex<Model>, kind: EdgeKind, edges: &[Edge]) -> Result<Vec<bool>> {
        if self.fault == Fault::CheckFillsStale {
            return Ok(edges.iter().map(|&edge| self.contains_cached(model, kind, edge)).collect());
        }
        let model = locked_model(model);
        self.require_known(&model, edges.iter().flat_map(|edge| [edge.follower, edge.followee]))?;
        if self.fault == Fault::AnswersInOtherOrder {
            let mut sorted = edges.to_vec();
            sorted.sort();
            return Ok(sorted.into_iter().map(|edge| model.contains(kind, edge)).collect());
        }
        let known = edges.iter().filter(|edge| !self.leaves_out(&model, edge.follower));
        Ok(known.map(|&edge| self.contains_one(&model, kind, edge)).collect())
    }

    fn contains_cached(&self, model: &Mutex<Model>, kind: EdgeKind, edge: Edge) -> bool {
        if let Some(&cached) = self.state().cached.get(&(kind, edge)) {
            return cached;
        }
        let found = locked_model(model).contains(kind, edge);
        Self::gap();
        self.state().cached.insert((kind, edge), found);
        found
    }

    fn contains_one(&self, model: &Model, kind: EdgeKind, edge: Edge) -> bool {
        match self.fault {
            Fault::CheckLagsBehind => {
                let heard = model.changes.len().saturating_sub(1);
                Model::replay(model.changes[..heard].iter().cloned()).contains(kind, edge)
            }
            Fault::CheckKeepsRemoved => {
                model.changes.iter().any(|change| change.body == ChangeBody::Followed { kind, edge })
            }
            Fault::CheckTruncatesIds => model.edges.keys().any(|&(of_kind, other)| {
                of_kind == kind
                    && low_bits(other.follower) == low_bits(edge.follower)
                    && low_bits(other.followee) == low_bits(edge.followee)
            }),
            Fault::CheckTakesMaybeForYes => {
                model.counts(kind, edge.follower).following > 0
                    && model.counts(kind, edge.followee).followers > 0
            }
            Fault::CheckMissesUncachedUsers => {
                let mut cached: Vec<Id> = model.edges.keys().map(|(_, edge)| edge.follower).collect();
                cached.dedup();
                cached.truncate(16);
                cached.contains(&edge.follower) && model.contains(kind, edge)
            }
            Fault::RestartTrustsPartialSet => {
                let copy = &self.state().copy;
                let has_set = copy.counts(kind, edge.follower).following > 0;
                if has_set { copy.contains(kind, edge) } else { model.contains(kind, edge) }
            }
            Fault::KindsShareEdges => EdgeKind::ALL.iter().any(|&kind| model.contains(kind, edge)),
            Fault::CheckForgetsDismissals => kind != EdgeKind::Dismissal && model.contains(kind, edge),
            _ => model.contains(kind, edge),
        }
    }

    pub(crate) fn since(
        &self,
        model: &Model,
        kind: EdgeKind,
        edges: &[Edge],
    ) -> Result<Vec<Option<Timestamp>>> {
        self.require_known(model, edges.iter().flat_map(|edge| [edge.follower, edge.followee]))?;
        let mut edges = edges.to_vec();
        if self.fault == Fault::AnswersInOtherOrder {
            edges.sort();
        }
        edges.retain(|edge| !self.leaves_out(model, edge.follower));
        let kinds = if self.fault == Fault::KindsShareEdges { &EdgeKind::ALL[..] } else { &[kind] };
        let one = |edge: Edge| {
            let since = kinds.iter().find_map(|&kind| model.since(kind, edge))?;
            Some(self.row_time(model, kind, edge.follower).unwrap_or(since))
        };
        Ok(edges.into_iter().map(one).collect())
    }

    pub(crate) fn list(
        &self,
        model: &Model,
        kind: EdgeKind,
        side: Side,
        of: Id,
        page: Page,
    ) -> Result<Vec<ListEntry>> {
        self.require_known(model, [of])?;
        let mut entries = match side {
            Side::Followers => self.followers(model, kind, of),
            Side::Following => model.whole_list(kind, side, of),
        };
        if let (Side::Following, Some(since)) = (side, self.row_time(model, kind, of)) {
            entries.iter_mut().for_each(|entry| entry.since = since);
            entries.sort();
        }
        if self.fault == Fault::KindsShareEdges {
            entries = EdgeKind::ALL.iter().flat_map(|&kind| model.whole_list(kind, side, of)).collect();
            entries.sort();
        }
        if self.fault == Fault::RepeatAppendsRow {
            let state = self.state();
            let rows = |entry: ListEntry| {
                let edge = match side {
                    Side::Following => Edge { follower: of, followee: entry.id },
                    Side::Followers => Edge { follower: entry.id, followee: of },
                };
                std::iter::repeat_n(entry, 1 + usize::from(state.repeated.contains(&(kind, edge))))
            };
            entries = entries.into_iter().flat_map(rows).collect();
        }
        Ok(self.page(entries, page))
    }

    /// The time of a user's whole row, for a store that keeps no other.
    fn row_time(&self, model: &Model, kind: EdgeKind, of: Id) -> Option<Timestamp> {
        let newest = || model.whole_list(kind, Side::Following, of).first().map(|entry| entry.since);
        if self.fault == Fault::SinceOfWholeRow { newest() } else { None }
    }

    /// The follower side: a copy of its own for the faults that spoil it.
    fn followers(&self, model: &Model, kind: EdgeKind, of: Id) -> Vec<ListEntry> {
        match self.fault {
            Fault::FollowerSideForgetsUnfollow
            | Fault::FollowerSideByClock
            | Fault::FollowerSideOutOfOrder
            | Fault::FollowerSideOwnTime
            | Fault::RestartRebuildMissesTail => self.state().copy.whole_list(kind, Side::Followers, of),
            _ => model.whole_list(kind, Side::Followers, of),
        }
    }

    pub(crate) fn friends(
        &self,
        model: &Model,
        kind: EdgeKind,
        of: Id,
        (after, limit): Page,
    ) -> Result<Vec<ListEntry>> {
        self.require_known(model, [of])?;
        let mut followers = self.followers(model, kind, of);
        let follows_back = |entry: &ListEntry| model.since(kind, Edge { follower: of, followee: entry.id });
        match self.fault {
            Fault::FriendsFilteredAfterPaging => followers = self.page(followers, (after, limit)),
            Fault::FriendsScanIsBounded => followers.truncate(100),
            Fault::FriendsWalkGivesUp => followers.truncate(2_000),
            _ => {}
        }
        followers.retain(|entry| follows_back(entry).is_some());
        match self.fault {
            Fault::FriendsByOwnFollow => {
                for entry in &mut followers {
                    entry.since = follows_back(entry).unwrap_or(entry.since);
                }
                followers.sort();
            }
            Fault::FriendsById => {
                followers.sort_by_key(|entry| entry.id);
                let passed = |entry: &ListEntry| after.is_none_or(|after| entry.id > after.id);
                return Ok(followers.into_iter().filter(passed).take(limit).collect());
            }
            _ => {}
        }
        Ok(self.page(followers, (after, limit)))
    }

    /// The part of a sorted list that is asked for, as the fault sees it.
    fn page(&self, mut entries: Vec<ListEntry>, (after, limit): Page) -> Vec<ListEntry> {
        match self.fault {
            Fault::ListAscending => entries.reverse(),
            Fault::ListOrderedByTimeOnly => {
                entries.sort_by_key(|entry| (Reverse(entry.since), entry.id));
            }
            Fault::ListStopsAtThousand => entries.truncate(1_000),
            _ => {}
        }
        let Some(after) = after else {
            entries.truncate(limit);
            return entries;
        };
        let place = entries.iter().position(|entry| *entry == after);
        let passed = |entry: &ListEntry| match self.fault {
            Fault::ListAscending => *entry < after,
            Fault::ListOrderedByTimeOnly => {
                entry.since < after.since || (entry.since == after.since && entry.id > after.id)
            }
            Fault::CursorByTimeSkips => entry.since < after.since,
            Fault::CursorByTimeRepeats => entry.since <= after.since,
            Fault::CursorInclusive => *entry >= after,
            Fault::CursorNeedsItsEdge => place.is_some() && *entry > after,
            _ => *entry > after,
        };
        entries.into_iter().filter(passed).take(limit).collect()
    }

    pub(crate) fn counts(&self, model: &Model, kind: EdgeKind, of: &[Id]) -> Result<Vec<Counts>> {
        self.require_known(model, of.iter().copied())?;
        let mut of = of.to_vec();
        if self.fault == Fault::AnswersInOtherOrder {
            of.sort();
        }
        of.retain(|&id| !self.leaves_out(model, id));
        Ok(of.into_iter().map(|id| self.counts_of_one(model, kind, id)).collect())
    }

    fn counts_of_one(&self, model: &Model, kind: EdgeKind, id: Id) -> Counts {
        let state = self.state();
        let kinds = if self.fault == Fault::KindsShareEdges { &EdgeKind::ALL[..] } else { &[kind] };
        let mut counts = Counts::default();
        for &kind in kinds {
            let right = model.counts(kind, id);
            counts.following += right.following;
            counts.followers += right.followers;
        }
        let (following, followers) = state.drift.get(&(kind, id)).copied().unwrap_or_default();
        counts.following = counts.following.saturating_add_signed(following);
        counts.followers = counts.followers.saturating_add_signed(followers);
        for (of_kind, edge) in &state.repeated {
            counts.following += u64::from(*of_kind == kind && edge.follower == id);
            counts.followers += u64::from(*of_kind == kind && edge.followee == id);
        }
        counts
    }

    pub(crate) fn changes(&self, model: &Model, after: Position, limit: usize) -> Vec<Change> {
        let limit = if self.fault == Fault::LogIgnoresLimit { limit.saturating_add(1) } else { limit };
        let after = match self.fault {
            Fault::LogInclusive => Sequence(after.sequence.0.saturating_sub(1)).on(after.shard),
            _ => after,
        };
        let logged = model.changes(after, usize::MAX).into_iter().flat_map(|mut change| {
            let mut times = 1;
            self.tell(model, &mut change);
            match (self.fault, &mut change.body) {
                (
                    Fault::LogForgetsOtherKinds,
                    ChangeBody::Followed { kind, .. } | ChangeBody::Unfollowed { kind, .. },
                ) => times = usize::from(*kind == EdgeKind::Follow),
                (Fault::LogLosesEvent, _) if change.position.sequence.0 % 5 == 0 => times = 0,
                (Fault::LogRepeatsEvent, _) if change.position.sequence.0 % 5 == 0 => times = 2,
                (Fault::LogForgetsRemovedSince, ChangeBody::Unfollowed { since, .. }) => *since = change.at,
                (Fault::LogTimeGoesBackWithClock, _) => {
                    change.at =
                        self.state().times.get(&change.position.sequence).copied().unwrap_or(change.at);
                }
                _ => {}
            }
            std::iter::repeat_n(change, times)
        });
        logged.take(limit).collect()
    }

    fn require_known(&self, model: &Model, ids: impl IntoIterator<Item = Id>) -> Result<()> {
        if self.fault == Fault::UnknownUserFails && ids.into_iter().any(|id| !is_known(model, id)) {
            return Err(Error::Storage { detail: "no such user".to_owned() });
        }
        Ok(())
    }

    fn leaves_out(&self, model: &Model, id: Id) -> bool {
        self.fault == Fault::UnknownUserLeftOut && !is_known(model, id)
    }
}

fn is_known(model: &Model, id: Id) -> bool {
    model.edges.keys().any(|(_, edge)| edge.follower == id || edge.followee == id)
}

pub(in crate::faults) fn low_bits(id: Id) -> u32 {
    match id {
        Id::Integer(value) => value as u32,
        Id::Uuid(value) => value as u32,
    }
}
