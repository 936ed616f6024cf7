//! How events reach projections and layers: late, twice, with gaps, and in any order between sources.

use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::{Epoch, Sequence, Shard, Timestamp};

use super::fault::LagFault;
use super::state::{HOSTS, State};

/// The most messages that are on their way for long.
const LATE_MAX: usize = 12;

/// How far behind a read without a token may be.
const STALENESS_MS_MAX: u64 = 2_000;

/// Changes of one shard, without gaps among them.
#[derive(Clone, Debug)]
pub(super) struct Message {
    epoch: Epoch,
    source: Shard,
    changes: Vec<Change>,
}

/// A message that an owner of a projection has received and not applied yet.
#[derive(Clone, Debug)]
pub(super) struct Late {
    host: usize,
    /// The mark when it was received.
    mark: Sequence,
    /// It is applied when the source's log has got here, or after a restore.
    due: Sequence,
    message: Message,
}

impl State {
    /// Makes some progress, as the seed has it. Also moves a shard now and then.
    pub(super) fn progress(&mut self) {
        if self.paused {
            return;
        }
        for _ in 0..self.random.below(4) {
            let host = self.random.below(HOSTS as u64) as usize;
            let source = Shard(self.random.below(u64::from(self.sharding.shards.get())) as u16);
            match self.random.below(16) {
                0..5 => self.deliver_somewhere(host, source),
                5..7 => self.receive_late(host, source),
                7..9 => self.apply_late(),
                9..11 => self.advance_filter(source),
                11..13 => self.advance_cache(source),
                13..15 => {
                    let carelessly = self.has(LagFault::CacheFillsStale);
                    self.caches[usize::from(source.0)].end_fill(carelessly);
                }
                _ if self.random.below(4) == 0 => self.move_shard(source),
                _ => {}
            }
        }
    }

    /// Brings every projection and layer to what was acknowledged more than 2 seconds ago.
    pub(super) fn keep_within_staleness(&mut self, now: Timestamp) {
        if self.paused || self.has(LagFault::StalenessUnbounded) {
            return;
        }
        let time = Timestamp::from_millis(now.millis().saturating_sub(STALENESS_MS_MAX));
        for shard in self.shards() {
            let due = self.source(shard).acknowledged_before(time);
            for host in 0..HOSTS {
                let first = self.hosts[host].mark(shard).next();
                let message = self.message(shard, first, (due.0 + 1).saturating_sub(first.0));
                self.project(host, &message);
            }
            while self.filters[usize::from(shard.0)].mark < due {
                self.advance_filter(shard);
            }
            while self.caches[usize::from(shard.0)].watermark < due {
                self.advance_cache(shard);
            }
        }
    }

    /// A message from near the mark: some of it may have come before, some of what is before it may not have.
    fn deliver_somewhere(&mut self, host: usize, source: Shard) {
        let mark = self.hosts[host].mark(source).0;
        let first = (mark + 1 + self.random.below(5)).saturating_sub(2).max(1);
        let count = 1 + self.random.below(4);
        let message = self.message(source, Sequence(first), count);
        self.project(host, &message);
    }

    /// The next message, on the way of a read that waits for it.
    pub(super) fn deliver_next(&mut self, host: usize, source: Shard) {
        if self.random.below(8) == 0 {
            self.progress();
        }
        let behind = self.source(source).newest().sequence.0.saturating_sub(self.hosts[host].mark(source).0);
        // In larger steps where there is much to do.
        let count = 1 + self.random.below(3) + behind / 8;
        let first = self.hosts[host].mark(source).next();
        let message = self.message(source, first, count);
        self.project(host, &message);
    }

    fn message(&self, source: Shard, first: Sequence, count: u64) -> Message {
        let changes = self.source(source).log_between(first..Sequence(first.0 + count));
        Message { epoch: self.epoch, source, changes }
    }

    fn receive_late(&mut self, host: usize, source: Shard) {
        let mark = self.hosts[host].mark(source);
        let message = self.message(source, mark.next(), 3);
        let due = Sequence(self.source(source).newest().sequence.0 + self.random.below(6));
        if self.late.len() < LATE_MAX && !message.changes.is_empty() {
            self.late.push(Late { host, mark, due, message });
        }
    }

    fn apply_late(&mut self) {
        let is_due = |late: &Late| {
            let newest = self.source(late.message.source).newest().sequence;
            late.message.epoch != self.epoch || newest >= late.due
        };
        let due: Vec<usize> = (0..self.late.len()).filter(|&index| is_due(&self.late[index])).collect();
        if due.is_empty() {
            return;
        }
        let index = due[self.random.below(due.len() as u64) as usize];
        let Late { host, mark, message, .. } = self.late.swap_remove(index);
        let is_of_today = message.epoch == self.epoch;
        if self.has(LagFault::ZombieApplies) && is_of_today {
            // It has looked at the mark before it was stopped.
            message.changes.iter().for_each(|change| self.apply_rows(host, change));
            return;
        }
        if self.has(LagFault::MarkGoesBack) && is_of_today {
            self.hosts[host].set_mark(message.source, mark);
            let one = Message { changes: message.changes.into_iter().take(1).collect(), ..message };
            self.project(host, &one);
            return;
        }
        self.project(host, &message);
    }

    /// Applies a message to the follower side of a host. The mark is locked: what is up to it is dropped, and what is missing
    /// before the message is read from the source's own log.
    fn project(&mut self, host: usize, message: &Message) {
        if message.epoch != self.epoch && !self.has(LagFault::OldEpochApplied) {
            return;
        }
        let Some(first) = message.changes.first() else { return };
        let mark = self.hosts[host].mark(message.source);
        let missing = mark.next()..first.position.sequence;
        if !self.has(LagFault::GapJumped) && missing.start < missing.end {
            for change in self.source(message.source).log_between(missing) {
                self.apply(host, &change);
            }
        }
        for change in &message.changes {
            if change.position.sequence > self.hosts[host].mark(message.source) {
                self.apply(host, change);
            } else if self.has(LagFault::CountedTwice) {
                let target = self.target(change);
                self.hosts[host]
                    .open_mut(target)
                    .into_iter()
                    .for_each(|holding| holding.count_blindly(change));
            }
        }
    }

    /// Applies a change and moves the mark to it.
    fn apply(&mut self, host: usize, change: &Change) {
        let position = change.position;
        let is_lost = self.has(LagFault::EventLost) && position.sequence.0.is_multiple_of(5);
        if !is_lost {
            self.apply_rows(host, change);
        }
        self.hosts[host].set_mark(position.shard, position.sequence);
    }

    fn apply_rows(&mut self, host: usize, change: &Change) {
        let target = self.target(change);
        self.hosts[host].open_mut(target).into_iter().for_each(|holding| holding.project(change));
    }

    /// The shard of the followee.
    fn target(&self, change: &Change) -> Shard {
        match change.body {
            ChangeBody::Followed { edge, .. } | ChangeBody::Unfollowed { edge, .. } => {
                self.shard_of(edge.followee)
            }
            _ => unreachable!("this store has edges only"),
        }
    }

    fn advance_filter(&mut self, shard: Shard) {
        let after = self.filters[usize::from(shard.0)].mark;
        for change in self.next_changes(shard, after) {
            self.filters[usize::from(shard.0)].apply(&change);
        }
    }

    fn advance_cache(&mut self, shard: Shard) {
        let after = self.caches[usize::from(shard.0)].watermark;
        for change in self.next_changes(shard, after) {
            self.caches[usize::from(shard.0)].apply(&change);
        }
    }

    /// A few changes, or all of them.
    fn next_changes(&mut self, shard: Shard, after: Sequence) -> Vec<Change> {
        let few = [1, 2, usize::MAX, usize::MAX][self.random.below(4) as usize];
        self.source(shard).log_after(after).iter().take(few).cloned().collect()
    }
}
