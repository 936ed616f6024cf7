//! What a process has read of the topic and its hosts may still need: a window of the newest changes of each source.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use kinfolk_core::{Epoch, Frontier, Sequence, Shard};
use parking_lot::{Condvar, Mutex};

use crate::log::LoggedChange;
use crate::project::SourceBatch;

/// Changes that all windows of a process hold together, about.
const CHANGES_MAX: usize = 100_000;

/// A window holds so many at least.
const WINDOW_MIN: usize = 1_000;

/// A source that begins too late is looked for further back so often; after that, what is missing is read from the log.
const LOOKS_MAX: u8 = 3;

/// What becomes of a change that is offered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// It was taken, or is not needed.
    Settled,
    /// The source should be read again from so many messages before this one: its marks are further back.
    Earlier(u64),
    /// There is no room until a host has applied more, or has said where it is.
    Full,
}

/// The windows of the sources that a process reads.
#[derive(Default)]
pub(super) struct Windows {
    state: Mutex<State>,
    /// A host has asked for what follows on its marks.
    asked: Condvar,
}

#[derive(Default)]
struct State {
    windows: BTreeMap<Shard, Window>,
    /// The marks of each host when it last asked.
    marks: BTreeMap<usize, Frontier>,
    /// Rises with every question.
    turn: usize,
}

#[derive(Default)]
struct Window {
    epoch: Option<Epoch>,
    /// In order, each sequence at most once; there may be gaps.
    changes: VecDeque<LoggedChange>,
    /// How often the source was looked for further back.
    looks: u8,
    /// Whether it has begun.
    has_begun: bool,
}

fn sequence(logged: &LoggedChange) -> Sequence {
    logged.change.position.sequence
}

impl Windows {
    /// These sources are read from now on.
    pub(super) fn open(&self, sources: impl Iterator<Item = Shard>) {
        self.state.lock().windows.extend(sources.map(|source| (source, Window::default())));
    }

    /// These sources are read by somebody else from now on.
    pub(super) fn close(&self, sources: impl Iterator<Item = Shard>) {
        let mut state = self.state.lock();
        for source in sources {
            state.windows.remove(&source);
        }
    }

    /// Forgets the changes of a source: they are read from the log.
    pub(super) fn empty(&self, source: Shard) {
        if let Some(window) = self.state.lock().windows.get_mut(&source) {
            window.changes.clear();
        }
    }

    /// How many sources are read.
    pub(super) fn len(&self) -> usize {
        self.state.lock().windows.len()
    }

    /// Offers the next message of a source.
    pub(super) fn offer(&self, epoch: Epoch, logged: &LoggedChange) -> Offer {
        self.state.lock().offer(epoch, logged)
    }

    /// Waits for a host to ask, for a moment.
    pub(super) fn wait_for_room(&self, moment: Duration) {
        self.asked.wait_for(&mut self.state.lock(), moment);
    }

    /// What the windows have after the marks of a host.
    pub(super) fn after(&self, host: usize, marks: &Frontier, limit: usize) -> Vec<SourceBatch> {
        let mut state = self.state.lock();
        state.marks.insert(host, marks.clone());
        let batches = state.after(marks, limit);
        drop(state);
        self.asked.notify_all();
        batches
    }
}

impl State {
    fn offer(&mut self, epoch: Epoch, logged: &LoggedChange) -> Offer {
        let Self { windows, marks, .. } = self;
        let source = logged.change.position.shard;
        let size_max = (CHANGES_MAX / windows.len().max(1)).max(WINDOW_MIN);
        let Some(window) = windows.get_mut(&source) else { return Offer::Settled };
        let of_hosts = || marks.values().filter_map(|marks| marks.get(source));
        let (Some(slowest), Some(fastest)) = (of_hosts().min(), of_hosts().max()) else {
            // Nobody has asked yet, or nobody needs this source.
            return if marks.is_empty() { Offer::Full } else { Offer::Settled };
        };
        if window.epoch.is_some_and(|known| known.0 > epoch.0) {
            return Offer::Settled;
        }
        if window.epoch != Some(epoch) {
            *window = Window { epoch: Some(epoch), ..Window::default() };
        }
        if !window.has_begun {
            // A host that lags far behind the others has what it needs read from the log.
            let first = Sequence(slowest.0.max(fastest.0.saturating_sub(size_max as u64))).next();
            if sequence(logged) > first && window.looks < LOOKS_MAX {
                window.looks += 1;
                return Offer::Earlier(sequence(logged).0 - first.0);
            }
            window.has_begun = true;
        }
        if window.changes.back().is_some_and(|last| sequence(last) >= sequence(logged)) {
            return Offer::Settled;
        }
        // What every host has is dropped first; at the limit, what any has.
        let bound = if window.changes.len() < size_max { slowest } else { fastest };
        while window.changes.front().is_some_and(|first| sequence(first) <= bound) {
            window.changes.pop_front();
        }
        if window.changes.len() >= size_max {
            return Offer::Full;
        }
        if sequence(logged) > slowest {
            window.changes.push_back(logged.clone());
        }
        Offer::Settled
    }

    /// Begins with another source each time: one with a long backlog does not keep the others waiting.
    fn after(&mut self, marks: &Frontier, mut limit: usize) -> Vec<SourceBatch> {
        let mut batches = Vec::new();
        self.turn = self.turn.wrapping_add(1);
        let first = self.turn % self.windows.len().max(1);
        for (&source, window) in self.windows.iter().skip(first).chain(self.windows.iter().take(first)) {
            let (Some(mark), Some(epoch)) = (marks.get(source), window.epoch) else { continue };
            let start = window.changes.partition_point(|logged| sequence(logged) <= mark);
            let changes: Vec<_> = window.changes.range(start..).take(limit).cloned().collect();
            limit -= changes.len();
            if !changes.is_empty() {
                batches.push(SourceBatch { source, epoch, changes });
            }
        }
        batches
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kinfolk_core::changes::{Change, ChangeBody};
    use kinfolk_core::{EdgeKind, Timestamp};

    use super::*;

    const SOURCE: Shard = Shard(2);
    const EPOCH: Epoch = Epoch(1);

    fn change(number: u64) -> LoggedChange {
        let body = ChangeBody::Imported { kind: EdgeKind::Follow, edges: 0 };
        let change = Change { position: Sequence(number).on(SOURCE), at: Timestamp::MIN, body };
        LoggedChange { change, imported_since: None }
    }

    fn after(windows: &Windows, host: usize, mark: u64) -> Vec<u64> {
        let batches = windows.after(host, &Sequence(mark).on(SOURCE).into(), 10_000);
        batches.iter().flat_map(|batch| &batch.changes).map(|logged| sequence(logged).0).collect()
    }

    fn windows(mark: u64) -> Windows {
        let windows = Windows::default();
        windows.open([SOURCE].into_iter());
        assert_eq!(after(&windows, 0, mark), [0; 0]);
        windows
    }

    #[test]
    fn every_host_gets_what_follows_on_its_own_marks() {
        let windows = windows(2);
        assert_eq!(after(&windows, 1, 4), [0; 0]);
        for number in [3, 4, 3, 4, 5, 6, 5] {
            assert_eq!(windows.offer(EPOCH, &change(number)), Offer::Settled);
        }
        assert_eq!(after(&windows, 0, 2), [3, 4, 5, 6]);
        assert_eq!(after(&windows, 1, 5), [6]);
        windows.close([SOURCE].into_iter());
        assert_eq!(windows.offer(EPOCH, &change(7)), Offer::Settled);
        assert_eq!(after(&windows, 0, 2), [0; 0]);
    }

    #[test]
    fn a_source_is_read_from_its_marks_and_a_gap_is_kept() {
        let windows = windows(10);
        assert_eq!(windows.offer(EPOCH, &change(50)), Offer::Earlier(39));
        assert_eq!(windows.offer(EPOCH, &change(8)), Offer::Settled);
        assert_eq!(windows.offer(EPOCH, &change(13)), Offer::Settled);
        assert_eq!(after(&windows, 0, 10), [13]);
    }

    #[test]
    fn a_source_with_a_backlog_does_not_keep_others_waiting() {
        let windows = windows(0);
        let other = Shard(3);
        windows.open([other].into_iter());
        let marks: Frontier = [SOURCE, other].map(|shard| Sequence(0).on(shard)).into_iter().collect();
        windows.after(0, &marks, 1);
        for shard in [SOURCE, other] {
            let mut logged = change(1);
            logged.change.position.shard = shard;
            assert_eq!(windows.offer(EPOCH, &logged), Offer::Settled);
        }
        let sources: BTreeSet<Shard> =
            (0..2).flat_map(|_| windows.after(0, &marks, 1)).map(|batch| batch.source).collect();
        assert_eq!(sources, BTreeSet::from([SOURCE, other]));
    }

    #[test]
    fn nothing_is_taken_before_a_host_has_asked() {
        let windows = Windows::default();
        windows.open([SOURCE].into_iter());
        assert_eq!(windows.offer(EPOCH, &change(1)), Offer::Full);
    }

    #[test]
    fn a_source_that_nobody_asks_for_holds_nothing_up() {
        let windows = windows(0);
        let other = Shard(3);
        windows.open([other].into_iter());
        let mut logged = change(1);
        logged.change.position.shard = other;
        assert_eq!(windows.offer(EPOCH, &logged), Offer::Settled);
    }

    #[test]
    fn a_new_epoch_begins_afresh_and_an_old_one_is_over() {
        let windows = windows(0);
        assert_eq!(windows.offer(EPOCH, &change(1)), Offer::Settled);
        assert_eq!(windows.offer(Epoch(2), &change(1)), Offer::Settled);
        assert_eq!(windows.offer(EPOCH, &change(2)), Offer::Settled);
        let batches = windows.after(0, &Sequence(0).on(SOURCE).into(), 10);
        assert_eq!((batches.len(), batches[0].epoch, batches[0].changes.len()), (1, Epoch(2), 1));
    }

    #[test]
    fn a_full_window_waits_for_the_fastest_host_alone() {
        let windows = windows(0);
        assert_eq!(after(&windows, 1, 0), [0; 0]);
        let full = (1..).find(|&number| windows.offer(EPOCH, &change(number)) == Offer::Full).unwrap();
        assert_eq!(full as usize, CHANGES_MAX + 1);
        assert_eq!(after(&windows, 1, 10).len(), 10_000);
        assert_eq!(windows.offer(EPOCH, &change(full)), Offer::Settled);
        assert_eq!(after(&windows, 0, 0)[0], 11, "the slow host has what is missing read from the log");
    }
}
