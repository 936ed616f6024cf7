//! What the sharded store answers: from the truth of a shard, from a follower side that has got far enough, or from a layer.

use kinfolk_core::changes::{Change, LogPage};
use kinfolk_core::graph::{Counts, Edge, EdgeList, ListEntry, ListKey, Overlap, Side, UserSet};
use kinfolk_core::{EdgeKind, Error, Frontier, Id, Position, Result, Sequence, Shard, Timestamp};

use super::fault::LagFault;
use super::lists::Lists;
use super::state::State;

/// A read that takes so many deliveries is stuck.
const DELIVERIES_MAX: usize = 100_000;

impl State {
    /// What a reader asks to see, as its client carries it.
    fn asked(&self, at_least: &Frontier) -> Frontier {
        let replaced = self.last_written.filter(|_| self.has(LagFault::TokenReplaced));
        match replaced {
            Some(last) if at_least.covers(last) => last.into(),
            _ => at_least.clone(),
        }
    }

    /// The newest that the host of a shard has, if that is less than was asked for.
    fn require_truth(&mut self, shard: Shard, at_least: &Frontier) -> Result<()> {
        let Some(sequence) = at_least.get(shard) else { return Ok(()) };
        let (asked, current) = (sequence.on(shard), self.read_holding(shard).source.newest());
        if current >= asked { Ok(()) } else { Err(Error::NotYetVisible { asked, current }) }
    }

    /// Every shard that is named must exist and have got so far.
    fn require_all(&mut self, at_least: &Frontier) -> Result<()> {
        for asked in at_least.iter() {
            if asked.shard.0 >= self.sharding.shards.get() {
                let current = Sequence::START.on(asked.shard);
                return Err(Error::NotYetVisible { asked, current });
            }
            let current = self.source(asked.shard).newest();
            if current < asked {
                return Err(Error::NotYetVisible { asked, current });
            }
        }
        Ok(())
    }

    /// Makes the follower side on the host of a shard advance until it shows a frontier.
    fn require_followers(&mut self, shard: Shard, at_least: &Frontier) -> Result<()> {
        self.require_all(at_least)?;
        let host = self.route(shard);
        for _ in 0..DELIVERIES_MAX {
            let Some(asked) = at_least.iter().find(|&asked| !self.mark_covers(host, asked)) else {
                return Ok(());
            };
            if self.paused {
                let current = self.hosts[host].mark(asked.shard).on(asked.shard);
                return Err(Error::NotYetVisible { asked, current });
            }
            self.deliver_next(host, asked.shard);
            if self.route(shard) != host {
                // The shard has moved meanwhile.
                return self.require_followers(shard, at_least);
            }
        }
        panic!("the follower side of shard {} never shows {at_least}", shard.0);
    }

    pub(super) fn contains(&mut self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Result<bool> {
        let at_least = self.asked(at_least);
        if self.has(LagFault::CheckWaitsForProjection) {
            self.require_followers(self.shard_of(edge.followee), &at_least)?;
        }
        if let Some(answer) = self.contains_now(kind, edge, &at_least) {
            return Ok(answer);
        }
        let shard = self.shard_of(edge.follower);
        let sequence = at_least.get(shard).unwrap_or_default();
        if let Some(answer) = self.caches[usize::from(shard.0)].contains(kind, edge, sequence) {
            return Ok(answer);
        }
        self.require_truth(shard, &at_least)?;
        let snapshot = self.read_holding(shard).source.snapshot((kind, edge.follower));
        let exists = snapshot.members.contains(&edge.followee);
        let members = snapshot.members.into_iter();
        self.caches[usize::from(shard.0)].begin_fill((kind, edge.follower), members, snapshot.sequence);
        Ok(exists)
    }

    /// Whether an edge exists, if the filter can say no.
    pub(super) fn contains_now(&self, kind: EdgeKind, edge: Edge, at_least: &Frontier) -> Option<bool> {
        let shard = self.shard_of(edge.follower);
        let filter = &self.filters[usize::from(shard.0)];
        let ahead = self.has(LagFault::FilterAheadOfMark);
        let mark = if ahead { self.source(shard).newest().sequence } else { filter.mark };
        filter.denies(kind, edge, mark, at_least.get(shard).unwrap_or_default()).then_some(false)
    }

    pub(super) fn since(
        &mut self,
        kind: EdgeKind,
        edge: Edge,
        at_least: &Frontier,
    ) -> Result<Option<Timestamp>> {
        let shard = self.shard_of(edge.follower);
        self.require_truth(shard, &self.asked(at_least))?;
        Ok(self.read_holding(shard).source.since(kind, edge))
    }

    /// The lists of one side on the host of a user, once they show a frontier.
    fn side(&mut self, side: Side, of: Id, at_least: &Frontier) -> Result<&Lists> {
        let (shard, at_least) = (self.shard_of(of), self.asked(at_least));
        match side {
            Side::Following => {
                self.require_truth(shard, &at_least)?;
                Ok(&self.read_holding(shard).source.following)
            }
            Side::Followers => {
                self.require_followers(shard, &at_least)?;
                Ok(&self.read_holding(shard).followers)
            }
        }
    }

    pub(super) fn list(
        &mut self,
        EdgeList { kind, side, of }: EdgeList,
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        let at_least = if self.has(LagFault::ListIgnoresFrontier) { Frontier::EMPTY } else { at_least };
        Ok(self.side(side, of, at_least)?.after((kind, of), after).take(limit).collect())
    }

    /// Both sides of a user are on one host.
    pub(super) fn friends(
        &mut self,
        (kind, of): (EdgeKind, Id),
        after: Option<ListKey>,
        limit: usize,
        at_least: &Frontier,
    ) -> Result<Vec<ListEntry>> {
        let (shard, at_least) = (self.shard_of(of), self.asked(at_least));
        self.require_truth(shard, &at_least)?;
        self.require_followers(shard, &at_least)?;
        let holding = self.read_holding(shard);
        let is_followed = |entry: &ListEntry| holding.source.following.since((kind, of), entry.id).is_some();
        Ok(holding.followers.after((kind, of), after).filter(is_followed).take(limit).collect())
    }

    pub(super) fn overlap(
        &mut self,
        kind: EdgeKind,
        sets: &[UserSet],
        (after, limit): (Option<Id>, usize),
        at_least: &Frontier,
    ) -> Result<Overlap> {
        let mut shared: Option<Vec<Id>> = None;
        for set in sets {
            let lists = self.side(set.side, set.of, at_least)?;
            let of = (kind, set.of);
            shared = Some(match shared {
                None => lists.ids(of).collect(),
                Some(ids) => ids.into_iter().filter(|&id| lists.since(of, id).is_some()).collect(),
            });
        }
        let all = shared.unwrap_or_default();
        let count = all.len() as u64;
        let ids = all.into_iter().filter(|&id| after.is_none_or(|after| id > after)).take(limit).collect();
        Ok(Overlap { count, ids })
    }

    pub(super) fn counts(&mut self, kind: EdgeKind, of: Id, at_least: &Frontier) -> Result<Counts> {
        let at_least = if self.has(LagFault::CountsIgnoreFrontier) { Frontier::EMPTY } else { at_least };
        let (shard, at_least) = (self.shard_of(of), self.asked(at_least));
        self.require_truth(shard, &at_least)?;
        self.require_followers(shard, &at_least)?;
        let holding = self.read_holding(shard);
        let following = holding.source.following.len((kind, of));
        let followers = holding.follower_counts.get(&(kind, of)).copied().unwrap_or_default();
        Ok(Counts { following, followers })
    }

    /// A page of the logs: some of each shard in turn, as the seed has it, so that readers do not rely on any order.
    pub(super) fn changes(&mut self, after: &Frontier, limit: usize) -> Result<LogPage> {
        self.require_all(after)?;
        let begin = self.shards().map(|shard| self.begin_log(shard, after));
        let mut next = begin.collect::<Result<Frontier>>()?;
        let mut changes: Vec<Change> = Vec::new();
        while changes.len() < limit {
            let open: Vec<Shard> = self.shards().filter(|&shard| self.is_behind(shard, &next)).collect();
            if open.is_empty() {
                break;
            }
            let shard = open[self.random.below(open.len() as u64) as usize];
            let count = (1 + self.random.below(8) as usize).min(limit - changes.len());
            let from = next.get(shard).unwrap_or_default();
            let part = self.source(shard).log_after(from).iter().take(count).cloned();
            changes.extend(part);
            let last: Option<Position> = changes.last().map(|change| change.position);
            last.into_iter().for_each(|position| next.advance(position));
        }
        Ok(LogPage { changes, next })
    }

    /// After which position a reader goes on: the one that it names, or the oldest kept.
    fn begin_log(&self, shard: Shard, after: &Frontier) -> Result<Position> {
        let trimmed = self.source(shard).trimmed();
        let unnamed = if self.has(LagFault::StartsAtZero) { Sequence::START } else { trimmed.sequence };
        let asked = after.get(shard).unwrap_or(unnamed).on(shard);
        if asked >= trimmed {
            return Ok(asked);
        }
        if self.has(LagFault::ExpiryIgnored) {
            return Ok(trimmed);
        }
        Err(Error::PositionExpired { asked, oldest: trimmed.next() })
    }

    /// Whether a shard's log goes on after a frontier.
    pub(super) fn is_behind(&self, shard: Shard, after: &Frontier) -> bool {
        !after.covers(self.source(shard).newest())
    }
}
