//! A checker of concurrent histories, pair by pair: is there one order of the operations on an edge that explains every answer?
//!
//! - A write that was acknowledged took effect between its beginning and its end.
//! - A write of unknown outcome took effect at most once, at any time from its beginning on, also after its return.
//! - A read, whose frontier covers all that was acknowledged before it began, shows what the edge was at one moment, not before
//!   the writes that had ended when it began, and not after its end. Reads do not order each other: one that is answered by a
//!   layer that lags may show what was before another that has seen a write which is still under way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use kinfolk_core::EdgeKind;
use kinfolk_core::graph::{Edge, EdgeAction};

use crate::random::compare::Verdict;

/// What was done to an edge, and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A write that said whether it changed anything.
    Written { action: EdgeAction, changed: bool },
    /// A write that failed with an unknown outcome.
    Unknown { action: EdgeAction },
    /// A check and its answer.
    Read { exists: bool },
}

/// An operation on one edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub event: Event,
    pub began: u64,
    pub ended: u64,
}

/// The most operations on one edge that are checked.
const OPERATIONS_MAX: usize = 128;

impl Operation {
    /// Whether it must come before another in every order.
    fn precedes(&self, other: &Self) -> bool {
        let both_read = matches!((self.event, other.event), (Event::Read { .. }, Event::Read { .. }));
        !both_read && !self.is_optional() && self.ended < other.began
    }

    fn is_optional(&self) -> bool {
        matches!(self.event, Event::Unknown { .. })
    }

    /// What becomes of an edge by it, if it can happen then.
    fn applied_to(&self, exists: bool) -> Option<bool> {
        match self.event {
            Event::Written { action, changed } => {
                let wanted = action == EdgeAction::Follow;
                ((exists != wanted) == changed).then_some(wanted)
            }
            Event::Unknown { action } => Some(action == EdgeAction::Follow),
            Event::Read { exists: found } => (found == exists).then_some(exists),
        }
    }
}

/// Whether one order explains the operations on an edge that did not exist at first.
pub(crate) fn check_pair(operations: &[Operation]) -> Verdict {
    assert!(operations.len() <= OPERATIONS_MAX, "too many operations on one edge to check");
    let mut search = Search { operations, dead_ends: BTreeSet::new() };
    if search.finishes(0, false) {
        return Ok(());
    }
    Err(format!("no order explains {operations:#?}"))
}

struct Search<'a> {
    operations: &'a [Operation],
    /// Operations that were done, as a set of bits, and the edge then.
    dead_ends: BTreeSet<(u128, bool)>,
}

impl Search<'_> {
    /// Whether the operations that are not done yet can be put in order.
    fn finishes(&mut self, mut done: u128, exists: bool) -> bool {
        // What changes nothing is done as soon as it can be: that is never in the way of anything.
        while let Some(next) = self.possible(done).find(|&next| {
            !self.operations[next].is_optional() && self.operations[next].applied_to(exists) == Some(exists)
        }) {
            done |= 1 << next;
        }
        if (0..self.operations.len())
            .all(|index| done & 1 << index != 0 || self.operations[index].is_optional())
        {
            return true;
        }
        if self.dead_ends.contains(&(done, exists)) {
            return false;
        }
        let changing: Vec<usize> = self
            .possible(done)
            .filter(|&next| self.operations[next].applied_to(exists) == Some(!exists))
            .collect();
        let finishes = changing.into_iter().any(|next| self.finishes(done | 1 << next, !exists));
        if !finishes {
            self.dead_ends.insert((done, exists));
        }
        finishes
    }

    /// The operations that may come next: nothing that is not done must come before them.
    fn possible(&self, done: u128) -> impl Iterator<Item = usize> {
        let is_open = move |index: &usize| done & 1 << index == 0;
        let operations = self.operations;
        (0..operations.len()).filter(is_open).filter(move |&next| {
            (0..operations.len()).filter(is_open).all(|other| !operations[other].precedes(&operations[next]))
        })
    }
}

/// What several threads do to edges, as they do it.
#[derive(Default)]
pub(crate) struct Timeline {
    now: AtomicU64,
    by_pair: Mutex<BTreeMap<(EdgeKind, Edge), Pair>>,
}

/// What was done to one edge.
#[derive(Default)]
struct Pair {
    operations: Vec<Operation>,
    /// When a write of it last began or ended.
    touched: u64,
    /// The last read that was kept.
    read: Option<Operation>,
}

impl Pair {
    /// Whether a read says nothing new: it shows what one before it does, since which no write has begun or ended.
    fn is_known(&self, read: &Operation) -> bool {
        self.read.is_some_and(|known| known.event == read.event && known.began > self.touched)
    }
}

impl Timeline {
    /// A moment, later than all before it.
    pub(crate) fn now(&self) -> u64 {
        self.now.fetch_add(1, Ordering::SeqCst)
    }

    /// A write of some edges begins now. Returns when that is.
    pub(crate) fn begin_write(&self, pairs: impl Iterator<Item = (EdgeKind, Edge)>) -> u64 {
        let mut by_pair = self.by_pair.lock().expect("nothing panics in between");
        let now = self.now();
        pairs.for_each(|pair| by_pair.entry(pair).or_default().touched = now);
        now
    }

    /// Keeps an operation that ends now; a read only if it says something new, so that all of a history is checked.
    pub(crate) fn record(&self, pair: (EdgeKind, Edge), event: Event, began: u64) {
        let ended = self.now();
        let mut by_pair = self.by_pair.lock().expect("nothing panics in between");
        let pair = by_pair.entry(pair).or_default();
        let operation = Operation { event, began, ended };
        match event {
            Event::Read { .. } if pair.is_known(&operation) => return,
            Event::Read { .. } => pair.read = Some(operation),
            Event::Written { .. } | Event::Unknown { .. } => pair.touched = pair.touched.max(ended),
        }
        pair.operations.push(operation);
    }

    /// Whether the history of every pair can be explained.
    pub(crate) fn check(&self) -> Verdict {
        let by_pair = self.by_pair.lock().expect("nothing panics in between");
        by_pair.iter().try_for_each(|(pair, Pair { operations, .. })| {
            check_pair(operations).map_err(|wrong| format!("{pair:?}: {wrong}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLLOW: EdgeAction = EdgeAction::Follow;
    const UNFOLLOW: EdgeAction = EdgeAction::Unfollow;

    fn written(action: EdgeAction, changed: bool) -> Event {
        Event::Written { action, changed }
    }

    fn unknown(action: EdgeAction) -> Event {
        Event::Unknown { action }
    }

    fn read(exists: bool) -> Event {
        Event::Read { exists }
    }

    fn during(event: Event, began: u64, ended: u64) -> Operation {
        Operation { event, began, ended }
    }

    /// One after another.
    fn in_turn(events: &[Event]) -> Vec<Operation> {
        events.iter().zip(0..).map(|(&event, place)| during(event, 2 * place, 2 * place + 1)).collect()
    }

    #[test]
    fn histories_that_can_be_explained() {
        for events in [
            &[][..],
            &[
                written(FOLLOW, true),
                read(true),
                written(FOLLOW, false),
                written(UNFOLLOW, true),
                read(false),
            ],
            // It happened.
            &[unknown(FOLLOW), read(true), written(FOLLOW, false)],
            // It did not.
            &[unknown(FOLLOW), read(false), written(FOLLOW, true), read(true)],
            // It happened after its return.
            &[unknown(FOLLOW), read(false), read(true)],
            &[written(FOLLOW, true), unknown(UNFOLLOW), read(true), written(FOLLOW, false), read(false)],
            // Late, after another has done the same and it was undone.
            &[unknown(FOLLOW), written(FOLLOW, true), written(UNFOLLOW, true), read(false), read(true)],
            // Two of them, each once.
            &[unknown(FOLLOW), unknown(FOLLOW), written(UNFOLLOW, true), written(UNFOLLOW, true)],
        ] {
            check_pair(&in_turn(events)).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }

    #[test]
    fn histories_that_cannot_be_explained() {
        for events in [
            // An acknowledged write is lost.
            &[written(FOLLOW, true), read(false)][..],
            &[written(FOLLOW, true), written(FOLLOW, true)],
            &[written(FOLLOW, true), unknown(FOLLOW), read(false)],
            &[unknown(FOLLOW), written(UNFOLLOW, true), written(FOLLOW, true), read(false)],
            // What was not acknowledged happened twice.
            &[unknown(FOLLOW), written(UNFOLLOW, true), written(UNFOLLOW, true)],
            &[unknown(FOLLOW), read(true), written(UNFOLLOW, true), read(true)],
            // It happened before it began.
            &[read(true), unknown(FOLLOW)],
            &[written(UNFOLLOW, true), unknown(FOLLOW)],
            // What changed nothing did.
            &[written(UNFOLLOW, false), read(true)],
            &[read(true)],
        ] {
            check_pair(&in_turn(events)).expect_err(&format!("{events:?}"));
        }
    }

    /// A reader that is much faster than the writer does not keep the later part of a history from being checked.
    #[test]
    fn a_fast_reader_hides_nothing() {
        let pair = (EdgeKind::Follow, crate::users::edge(kinfolk_core::IdKind::Integer, 1, 2));
        let history = |last: bool| {
            let timeline = Timeline::default();
            for action in [FOLLOW, UNFOLLOW, FOLLOW, UNFOLLOW] {
                for exists in [action == UNFOLLOW; 1_000] {
                    timeline.record(pair, read(exists), timeline.now());
                }
                let began = timeline.begin_write([pair].into_iter());
                timeline.record(pair, written(action, true), began);
            }
            timeline.record(pair, read(last), timeline.now());
            timeline.check()
        };
        history(false).expect("the last unfollow is seen");
        history(true).expect_err("the last unfollow is lost");
    }

    /// What a read shows counts although nobody is known to write, as a write of unknown outcome may come at any time.
    #[test]
    fn reads_that_differ_are_kept() {
        let pair = (EdgeKind::Follow, crate::users::edge(kinfolk_core::IdKind::Integer, 1, 2));
        let timeline = Timeline::default();
        for exists in [false, false, true, true] {
            timeline.record(pair, read(exists), timeline.now());
        }
        timeline.check().expect_err("nobody made it");
    }

    #[test]
    fn what_happens_at_once_has_any_order() {
        let follow = during(written(FOLLOW, true), 0, 9);
        for exists in [false, true] {
            check_pair(&[follow, during(read(exists), 1, 2)]).expect("during the write");
        }
        check_pair(&[follow, during(read(true), 1, 2), during(read(false), 3, 4)])
            .expect("reads have no order");
        check_pair(&[follow, during(read(false), 10, 11)]).expect_err("after the write");
        let both = [follow, during(written(UNFOLLOW, true), 1, 8), during(read(false), 10, 11)];
        check_pair(&both).expect("the unfollow was last");
        check_pair(&[both[0], both[1], during(read(true), 10, 11)]).expect_err("the follow was first");
    }
}
