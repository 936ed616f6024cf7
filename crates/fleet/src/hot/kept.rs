//! An answer that is kept for a moment, with what it is known to show.

use std::time::Duration;

use kinfolk_core::{Epoch, Frontier, Shard};
use tokio::time::Instant;

use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::log::marks;
use crate::postgres::Failure;
use crate::read::{Reader, STALENESS_MAX};

use super::Question;

/// A kept answer that is used after so long is read again.
const RENEWED_AFTER: Duration = Duration::from_millis(50);

/// It is used for so long at most: meanwhile nobody waits for the read that renews it.
const KEPT_FOR: Duration = Duration::from_millis(100);

/// Where an account is: an answer from elsewhere is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    epoch: Epoch,
    shard: Shard,
    term: i64,
}

impl Place {
    pub(super) fn of(topology: &Topology, question: impl Question) -> Self {
        let shard = topology.shard_of(question.of());
        let term = topology.assignment(shard).map_or(0, |assignment| assignment.term);
        Self { epoch: topology.epoch, shard, term }
    }
}

/// What an answer must show.
#[derive(Clone, Copy)]
pub(super) struct Needed<'a> {
    /// Where the account is, unless a host says that this is out of date.
    pub(super) place: Option<Place>,
    /// What the caller has seen.
    pub(super) at_least: &'a Frontier,
}

impl<'a> Needed<'a> {
    /// What a read must show that begins now.
    pub(super) fn now(shared: &Shared, question: impl Question, at_least: &'a Frontier) -> Self {
        let place = Place::of(&shared.topology(), question);
        Self { place: Some(place).filter(|place| !shared.staleness.is_moved(place.epoch)), at_least }
    }
}

/// An answer and what it shows.
#[derive(Debug)]
pub(super) struct Kept<A> {
    pub(super) answer: A,
    place: Place,
    /// Every change up to here.
    frontier: Frontier,
    /// Everything that was committed before this. Unknown if the host was beyond the bound of staleness when the read began.
    shows_until: Option<Instant>,
    /// When the read began.
    began: Instant,
}

impl<A> Kept<A> {
    /// Reads an answer. The statement itself is asked to show the marks that were read before it, and what the caller has seen: the two
    /// may be answered by different connections, of which one may belong to an old primary.
    pub(super) async fn read<Q: Question<Answer = A>>(question: Q, reader: Reader) -> Result<Self, Failure> {
        let (topology, began) = (&reader.topology, Instant::now());
        let place = Place::of(topology, question);
        let host = &topology.hosts[topology.host_of(place.shard)];
        let shows_until = reader.shared.staleness.shows_until(place.epoch, &host.name);
        let sources: Vec<Shard> = topology.shards().collect();
        let mut frontier = marks(&reader.shared, host, place.epoch, &sources).await?;
        frontier.join(&reader.at_least);
        let answer = question.read(reader.clone().showing(frontier.clone())).await?;
        Ok(Self { answer, place, frontier, shows_until, began })
    }

    /// Whether it shows what is needed, within the bound of staleness.
    pub(super) fn shows(&self, needed: Needed<'_>) -> bool {
        let is_recent = self.shows_until.is_some_and(|moment| moment.elapsed() <= STALENESS_MAX);
        is_recent && needed.place == Some(self.place) && self.frontier.covers_all(needed.at_least)
    }

    /// Whether it is recent enough for callers who have not seen anything newer.
    pub(super) fn is_usable(&self) -> bool {
        self.began.elapsed() <= KEPT_FOR
    }

    /// Whether it should be read again.
    pub(super) fn is_due(&self) -> bool {
        self.began.elapsed() >= RENEWED_AFTER
    }

    /// Whether its read has begun before that of another one.
    pub(super) fn is_older_than(&self, other: &Self) -> bool {
        self.began < other.began
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::Sequence;

    use super::*;

    const PLACE: Place = Place { epoch: Epoch(1), shard: Shard(0), term: 1 };

    fn frontier(first: u64, second: u64) -> Frontier {
        [Sequence(first).on(Shard(0)), Sequence(second).on(Shard(1))].into_iter().collect()
    }

    fn kept() -> Kept<()> {
        let now = Instant::now();
        Kept { answer: (), place: PLACE, frontier: frontier(5, 7), shows_until: Some(now), began: now }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_shows_what_its_frontier_covers_within_the_bound() {
        let kept = kept();
        let shows = |at_least: &Frontier| kept.shows(Needed { place: Some(PLACE), at_least });
        assert!(shows(Frontier::EMPTY) && shows(&frontier(5, 7)) && kept.is_usable() && !kept.is_due());
        assert!(!shows(&frontier(6, 0)) && !shows(&Sequence(1).on(Shard(9)).into()));
        tokio::time::advance(STALENESS_MAX).await;
        assert!(shows(Frontier::EMPTY) && !kept.is_usable() && kept.is_due());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!shows(Frontier::EMPTY) && !shows(&frontier(5, 7)));
        assert!(
            !Kept { shows_until: None, ..kept }
                .shows(Needed { place: Some(PLACE), at_least: Frontier::EMPTY })
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_from_elsewhere_shows_nothing() {
        let kept = kept();
        let others = [
            Some(Place { epoch: Epoch(2), ..PLACE }),
            Some(Place { shard: Shard(1), ..PLACE }),
            Some(Place { term: 2, ..PLACE }),
            None,
        ];
        for place in others {
            assert!(!kept.shows(Needed { place, at_least: Frontier::EMPTY }), "{place:?}");
        }
    }
}
