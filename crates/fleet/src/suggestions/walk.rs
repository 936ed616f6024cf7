//! The walk: the followees of a user's followees, counted, ranked, and without those that the user follows or has dismissed.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use futures_util::future::try_join_all;
use kinfolk_core::graph::{Side, UserSet};
use kinfolk_core::suggestions::{RankKey, Ranking, Score, Suggestion, WalkBounds, jaccard, weight};
use kinfolk_core::{EdgeKind, Id};

use crate::postgres::{Failure, IdValue, Query, limit_value, unavailable};
use crate::read::{GUARD_COLUMNS, Guard, HostPart, Reader};

/// Users whose lists or counts are read at once, so that no answer is too large.
const USERS_AT_ONCE: usize = 200;

/// Ranked candidates of which it is asked at once whether the user knows them.
const CANDIDATES_AT_ONCE: usize = 1_000;

/// A followee of the user that leads to a candidate.
#[derive(Clone, Copy, Debug)]
struct Between {
    id: Id,
    weight: Score,
}

/// What the walk has found of a candidate.
struct Candidate {
    id: Id,
    between: Vec<Between>,
    score: Score,
    /// Known beforehand only where it decides the rank.
    jaccard: f64,
}

impl Candidate {
    fn key(&self) -> RankKey<Id> {
        let mutual_count = self.between.len() as u32;
        RankKey { mutual_count, score: self.score, jaccard: self.jaccard, id: self.id }
    }
}

impl Reader {
    /// The best candidates of a user.
    pub(super) async fn candidates(&self, of: Id, bounds: WalkBounds) -> Result<Vec<Suggestion>, Failure> {
        let turn = self.shared.walks.acquire().await;
        let _turn = turn.map_err(|_| Failure::Transient(unavailable("the store", "it is being closed")))?;
        let mut candidates = self.walk_two_steps(of, bounds.per_node).await?;
        if bounds.ranking == Ranking::Jaccard {
            self.add_shares(of, &mut candidates).await?;
        }
        candidates.sort_unstable_by(|one, other| bounds.ranking.compare_keys(one.key(), other.key()));
        let mut best = self.best_unknown(of, candidates, bounds.results).await?;
        if bounds.ranking != Ranking::Jaccard {
            self.add_shares(of, &mut best).await?;
        }
        Ok(best.into_iter().map(suggestion).collect())
    }

    async fn walk_two_steps(&self, of: Id, per_node: Option<usize>) -> Result<Vec<Candidate>, Failure> {
        let first = self.recent_followees(&[of], per_node).await?.into_iter().flatten().collect::<Vec<Id>>();
        let mut found: HashMap<Id, Vec<Between>, RandomState> = HashMap::default();
        for followees in first.chunks(USERS_AT_ONCE) {
            let counts = self.counts(EdgeKind::Follow, followees).await?;
            let onward = self.recent_followees(followees, per_node).await?;
            for ((&id, counts), onward) in followees.iter().zip(counts).zip(onward) {
                let between = Between { id, weight: weight(counts.following + counts.followers) };
                onward.into_iter().for_each(|candidate| found.entry(candidate).or_default().push(between));
            }
        }
        found.remove(&of);
        let candidate = |(id, between): (Id, Vec<Between>)| {
            let score = between.iter().map(|between| between.weight).sum();
            Candidate { id, between, score, jaccard: 0.0 }
        };
        Ok(found.into_iter().map(candidate).collect())
    }

    /// The most recent followees of some users, or all of them, in the order of the users.
    async fn recent_followees(&self, of: &[Id], per_node: Option<usize>) -> Result<Vec<Vec<Id>>, Failure> {
        let limit = per_node.map_or(i64::MAX, limit_value);
        let parts = self.by_host(of, |id| id);
        let found = try_join_all(parts.into_iter().map(|part| self.recent_followees_on(part, limit))).await?;
        let mut followees = vec![Vec::new(); of.len()];
        found.into_iter().flatten().for_each(|(index, id)| followees[index].push(id));
        Ok(followees)
    }

    async fn recent_followees_on(&self, part: HostPart<Id>, limit: i64) -> Result<Vec<(usize, Id)>, Failure> {
        let guard = Guard::of_truth(&self.topology, part.shards.iter().copied(), &self.at_least);
        let kind = i16::from(EdgeKind::Follow.number());
        let shards = part.shard_numbers();
        let ids: Vec<IdValue> = part.asked.iter().copied().map(IdValue).collect();
        let rows =
            self.ask(part.host, Query::RecentFollowees, &guard, &[&kind, &shards, &ids, &limit]).await?;
        let followee = |row: &tokio_postgres::Row| row.get::<_, IdValue>(GUARD_COLUMNS + 1).0;
        Ok(rows.iter().filter_map(|row| Some((part.index_of(row)?, followee(row)))).collect())
    }

    /// The first of some ranked candidates that the user neither follows nor has dismissed.
    async fn best_unknown(
        &self,
        of: Id,
        ranked: Vec<Candidate>,
        results: usize,
    ) -> Result<Vec<Candidate>, Failure> {
        let set = UserSet { side: Side::Following, of };
        let (mut best, mut ranked) = (Vec::new(), ranked.into_iter().peekable());
        while best.len() < results && ranked.peek().is_some() {
            let next: Vec<Candidate> = ranked.by_ref().take(CANDIDATES_AT_ONCE).collect();
            let ids: Vec<Id> = next.iter().map(|candidate| candidate.id).collect();
            let mut known: HashSet<Id> = HashSet::new();
            for kind in [EdgeKind::Follow, EdgeKind::Dismissal] {
                known.extend(self.members(kind, set, &ids).await?);
            }
            best.extend(next.into_iter().filter(|candidate| !known.contains(&candidate.id)));
        }
        best.truncate(results);
        Ok(best)
    }

    /// Computes what share of the neighbours is common to the user and each candidate.
    async fn add_shares(&self, of: Id, candidates: &mut [Candidate]) -> Result<(), Failure> {
        let own = self.counts(EdgeKind::Follow, &[of]).await?;
        let following = own.first().map_or(0, |counts| counts.following);
        for some in candidates.chunks_mut(USERS_AT_ONCE) {
            let ids: Vec<Id> = some.iter().map(|candidate| candidate.id).collect();
            let counts = self.counts(EdgeKind::Follow, &ids).await?;
            for (candidate, counts) in some.iter_mut().zip(counts) {
                candidate.jaccard = jaccard(candidate.between.len() as u64, following, counts.followers);
            }
        }
        Ok(())
    }
}

fn suggestion(Candidate { id, mut between, score, jaccard }: Candidate) -> Suggestion {
    let mutual_count = between.len() as u32;
    between.sort_unstable_by_key(|between| (Reverse(between.weight), between.id));
    let via = between.into_iter().map(|between| between.id).take(Suggestion::VIA_MAX).collect();
    Suggestion { id, mutual_count, score, jaccard, via }
}
