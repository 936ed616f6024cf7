//! Differences that were found, until they are looked at again.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::compare::{Difference, Subject};

/// Differences that are remembered. What is found beyond them is found again by a later pass.
const REMEMBERED_MAX: usize = 10_000;

/// Remembers differences, each since it was first found as it is.
pub(super) struct Waiting {
    delay: Duration,
    found: HashMap<Subject, Difference>,
    /// When each is due, the earliest first. Each that is remembered is in here once, and nothing else is.
    due: VecDeque<(Instant, Subject)>,
}

impl Waiting {
    pub(super) fn new(delay: Duration) -> Self {
        Self { delay, found: HashMap::new(), due: VecDeque::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// Remembers a difference. Returns whether it is a new one.
    pub(super) fn note(&mut self, difference: Difference) -> bool {
        let subject = difference.subject();
        match self.found.get(&subject) {
            Some(known) if difference.is_still(known) => return false,
            Some(_) => self.due.retain(|(_, waiting)| *waiting != subject),
            None if self.found.len() >= REMEMBERED_MAX => return false,
            None => {}
        }
        self.found.insert(subject, difference);
        self.due.push_back((Instant::now() + self.delay, subject));
        true
    }

    /// Takes differences that are due. Those that are not to be forgotten must be put back.
    pub(super) fn take_due(&mut self, most: usize) -> Vec<Difference> {
        let now = Instant::now();
        let mut due = Vec::new();
        while due.len() < most && self.due.front().is_some_and(|(moment, _)| *moment <= now) {
            let Some((_, subject)) = self.due.pop_front() else { break };
            due.extend(self.found.remove(&subject));
        }
        due
    }

    /// Whether anything is due.
    pub(super) fn is_due(&self) -> bool {
        self.due.front().is_some_and(|(moment, _)| *moment <= Instant::now())
    }

    /// Looks at a difference again later, although it was due: it could not be looked at.
    pub(super) fn put_back(&mut self, difference: Difference) {
        self.note(difference);
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::graph::Side;
    use kinfolk_core::{EdgeKind, Id, Shard};

    use super::*;
    use crate::compare::CountDifference;

    const DELAY: Duration = Duration::from_secs(30);

    fn count(user: u64, rows: i64, recorded: i64) -> Difference {
        let owner = (EdgeKind::Follow, Id::Integer(user));
        Difference::Count(CountDifference { side: Side::Followers, shard: Shard(0), owner, rows, recorded })
    }

    #[tokio::test(start_paused = true)]
    async fn a_difference_is_due_once_it_has_been_the_same_for_the_delay() {
        let mut waiting = Waiting::new(DELAY);
        assert!(waiting.note(count(1, 5, 4)));
        tokio::time::sleep(DELAY / 2).await;
        assert!(!waiting.note(count(1, 6, 5)), "writes have changed both: the same difference");
        assert!(waiting.note(count(2, 5, 4)));
        tokio::time::sleep(DELAY / 2).await;
        assert_eq!(waiting.take_due(10), [count(1, 5, 4)]);
        assert!(waiting.note(count(2, 5, 3)), "another difference: it waits from now on");
        tokio::time::sleep(DELAY / 2).await;
        assert!(!waiting.is_due());
        tokio::time::sleep(DELAY / 2).await;
        assert_eq!(waiting.take_due(10), [count(2, 5, 3)]);
        assert_eq!(waiting.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_bounded() {
        let mut waiting = Waiting::new(DELAY);
        let new = (0..2 * REMEMBERED_MAX as u64).filter(|&user| waiting.note(count(user, 1, 0))).count();
        assert_eq!((new, waiting.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
        tokio::time::sleep(DELAY).await;
        assert_eq!(waiting.take_due(100).len(), 100);
        assert_eq!(waiting.len(), REMEMBERED_MAX - 100);
        assert!(waiting.note(count(99_999, 1, 0)), "there is room again");
    }
}
