//! What is still to be delivered: events whose effect on inboxes is not done yet.
//!
//! Posts go to followers in turns, so that a post to many does not hold up one to few. Until an event is done, readers
//! find it here: what they show never depends on how far deliveries have come.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use kinfolk_core::feeds::PostKey;
use kinfolk_core::graph::ListKey;
use kinfolk_core::{Id, Sequence, Timestamp};
use parking_lot::{Condvar, Mutex};

/// What to do with inboxes for one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Put a post into the inboxes of those who follow its author, from a key in the list of followers on.
    Push { author: Id, key: PostKey, after: Option<ListKey> },
    /// Take a deleted post out of them.
    TakeBack { author: Id, key: PostKey, after: Option<ListKey> },
    /// Bring the posts of somebody in who was followed.
    BringIn { follower: Id, followee: Id },
    /// Take the posts of somebody out who is not followed any more.
    TakeOut { follower: Id, followee: Id },
}

/// A job of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub position: Sequence,
    /// When the event was accepted.
    pub at: Timestamp,
    pub job: Job,
}

/// More than this is not waited for: it is cheaper to fill inboxes again.
const UNDONE_MAX: usize = 1_000_000;

/// What is still to be delivered.
#[derive(Default)]
pub(crate) struct Deliveries {
    state: Mutex<State>,
    changed: Condvar,
    /// How many jobs are not done: most of the time none, and nobody has to wait for the lock to know it.
    undone: AtomicUsize,
    /// The newest event that was looked at.
    newest: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Whose turn it is: authors, and those who have followed or unfollowed somebody.
    turns: VecDeque<Id>,
    /// The jobs of each of them, in order.
    jobs: HashMap<Id, VecDeque<Delivery>, RandomState>,
    /// All jobs that are not done, also the one whose turn it is.
    undone: BTreeMap<Sequence, Timestamp>,
    /// Posts among them, by author.
    posts: HashMap<Id, VecDeque<(Sequence, PostKey)>, RandomState>,
    /// Follows among them, by follower.
    follows: HashMap<Id, VecDeque<(Sequence, Id)>, RandomState>,
    stopping: bool,
}

impl Job {
    /// On whose behalf it is done: turns are taken by these.
    fn whose(self) -> Id {
        match self {
            Self::Push { author, .. } | Self::TakeBack { author, .. } => author,
            Self::BringIn { follower, .. } | Self::TakeOut { follower, .. } => follower,
        }
    }
}

/// What a reader must know beside what is in an inbox.
#[derive(Debug, Default)]
pub(crate) struct Undelivered {
    /// Posts by the reader's followees.
    pub posts: Vec<PostKey>,
    /// Authors that the reader has followed, whose posts are not brought in yet.
    pub authors: Vec<Id>,
}

impl Deliveries {
    /// Adds the jobs of events, which reach up to a position.
    pub(crate) fn add(&self, jobs: &[Delivery], newest: Sequence) {
        if !jobs.is_empty() {
            let mut state = self.state.lock();
            jobs.iter().for_each(|&delivery| state.add(delivery));
            self.undone.store(state.undone.len(), Ordering::SeqCst);
            self.changed.notify_one();
        }
        self.newest.fetch_max(newest.0, Ordering::SeqCst);
    }

    /// Whether so much is not done that it is better to forget it.
    pub(crate) fn are_too_many(&self) -> bool {
        self.undone.load(Ordering::Relaxed) > UNDONE_MAX
    }

    /// Forgets all jobs. Inboxes must be gone before.
    pub(crate) fn clear(&self) {
        let mut state = self.state.lock();
        *state = State { stopping: state.stopping, ..State::default() };
        self.undone.store(0, Ordering::SeqCst);
    }

    /// The job whose turn it is. Waits for one, but not longer than given; `None` then, or where it is time to end.
    pub(crate) fn next(&self, longest: Duration) -> Option<Delivery> {
        let mut state = self.state.lock();
        if state.turns.is_empty() && !state.stopping {
            self.changed.wait_for(&mut state, longest);
        }
        if state.stopping { None } else { state.next() }
    }

    /// Lets a job wait for another turn, before the later jobs on the same behalf.
    pub(crate) fn put_back(&self, delivery: Delivery) {
        self.state.lock().put_back(delivery);
    }

    /// A job is done.
    pub(crate) fn finish(&self, delivery: &Delivery) {
        let mut state = self.state.lock();
        state.remove(delivery);
        self.undone.store(state.undone.len(), Ordering::SeqCst);
    }

    /// Ends the waiting for jobs.
    pub(crate) fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_all();
    }

    /// Whether it is time to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }

    /// Everything up to here is delivered.
    pub(crate) fn delivered(&self) -> Sequence {
        let state = self.state.lock();
        let newest = self.newest.load(Ordering::SeqCst);
        state.undone.keys().next().map_or(Sequence(newest), |first| Sequence(first.0 - 1))
    }

    /// How many events are not delivered, and when the oldest of them was accepted.
    pub(crate) fn lag(&self) -> (u64, Option<Timestamp>) {
        let state = self.state.lock();
        (state.undone.len() as u64, state.undone.values().next().copied())
    }

    /// What is not delivered to a reader yet, who follows these, by id.
    pub(crate) fn undelivered(&self, reader: Id, followees: &[Id]) -> Undelivered {
        if self.undone.load(Ordering::SeqCst) == 0 {
            return Undelivered::default();
        }
        let state = self.state.lock();
        let follows = state.follows.get(&reader);
        let authors = follows.into_iter().flatten().map(|&(_, author)| author).collect();
        let mut posts = Vec::new();
        let mut add =
            |of_author: &VecDeque<(Sequence, PostKey)>| posts.extend(of_author.iter().map(|&(_, key)| key));
        // Through the shorter side: writers wait meanwhile.
        if state.posts.len() < followees.len() {
            let followed = state.posts.iter().filter(|(author, _)| followees.binary_search(author).is_ok());
            followed.for_each(|(_, of_author)| add(of_author));
        } else {
            followees.iter().filter_map(|author| state.posts.get(author)).for_each(add);
        }
        Undelivered { posts, authors }
    }

    /// Waits, unless it is time to end.
    pub(crate) fn pause(&self, longest: Duration) {
        let mut state = self.state.lock();
        if !state.stopping {
            self.changed.wait_for(&mut state, longest);
        }
    }
}

impl State {
    fn add(&mut self, delivery: Delivery) {
        let Delivery { position, at, job } = delivery;
        self.undone.insert(position, at);
        match job {
            Job::Push { author, key, .. } => self.posts.entry(author).or_default().push_back((position, key)),
            Job::BringIn { follower, followee } => {
                self.follows.entry(follower).or_default().push_back((position, followee));
            }
            Job::TakeBack { .. } | Job::TakeOut { .. } => {}
        }
        self.queue(job.whose()).push_back(delivery);
    }

    /// The jobs on somebody's behalf, who gets a turn.
    fn queue(&mut self, whose: Id) -> &mut VecDeque<Delivery> {
        if !self.jobs.contains_key(&whose) {
            self.turns.push_back(whose);
        }
        self.jobs.entry(whose).or_default()
    }

    /// The first job of whose turn it is, who then waits behind all others.
    fn next(&mut self) -> Option<Delivery> {
        let whose = self.turns.pop_front()?;
        let jobs = self.jobs.get_mut(&whose)?;
        let job = jobs.pop_front();
        if jobs.is_empty() {
            self.jobs.remove(&whose);
        } else {
            self.turns.push_back(whose);
        }
        job
    }

    fn put_back(&mut self, delivery: Delivery) {
        // What was forgotten meanwhile stays forgotten.
        if self.undone.contains_key(&delivery.position) {
            self.queue(delivery.job.whose()).push_front(delivery);
        }
    }

    fn remove(&mut self, delivery: &Delivery) {
        let position = delivery.position;
        self.undone.remove(&position);
        match delivery.job {
            Job::Push { author, .. } => forget(&mut self.posts, author, position),
            Job::BringIn { follower, .. } => forget(&mut self.follows, follower, position),
            Job::TakeBack { .. } | Job::TakeOut { .. } => {}
        }
    }
}

fn forget<T>(map: &mut HashMap<Id, VecDeque<(Sequence, T)>, RandomState>, of: Id, position: Sequence) {
    if let Some(list) = map.get_mut(&of) {
        // Jobs on one behalf are done in order: it is the first, unless all were forgotten meanwhile.
        list.pop_front_if(|&mut (other, _)| other == position);
        if list.is_empty() {
            map.remove(&of);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTHOR: Id = Id::Integer(1);
    const READER: Id = Id::Integer(2);

    fn delivery(position: u64, job: Job) -> Delivery {
        Delivery { position: Sequence(position), at: Timestamp::from_millis(position), job }
    }

    fn key(time: u64) -> PostKey {
        PostKey { since: Timestamp::from_millis(time), id: Id::Integer(time) }
    }

    #[test]
    fn one_author_takes_one_turn_at_a_time() {
        let deliveries = Deliveries::default();
        let other = Id::Integer(9);
        let push =
            |position, author| delivery(position, Job::Push { author, key: key(position), after: None });
        deliveries.add(&[push(1, AUTHOR), push(2, AUTHOR), push(3, AUTHOR), push(4, other)], Sequence(4));
        let mut order = Vec::new();
        while let Some(job) = deliveries.next(Duration::ZERO) {
            // The first needs two turns.
            if job.position == Sequence(1) && !order.contains(&1) {
                deliveries.put_back(job);
            } else {
                deliveries.finish(&job);
            }
            order.push(job.position.0);
        }
        assert_eq!(order, [1, 4, 1, 2, 3]);
        deliveries.add(&[push(5, AUTHOR)], Sequence(5));
        let forgotten = deliveries.next(Duration::ZERO).unwrap();
        deliveries.clear();
        deliveries.put_back(forgotten);
        assert_eq!((deliveries.next(Duration::ZERO).is_none(), deliveries.delivered()), (true, Sequence(5)));
    }

    #[test]
    fn what_is_not_done_is_seen_until_it_is() {
        let deliveries = Deliveries::default();
        let push = delivery(5, Job::Push { author: AUTHOR, key: key(1), after: None });
        let bring_in = delivery(6, Job::BringIn { follower: READER, followee: AUTHOR });
        deliveries.add(&[push, bring_in], Sequence(9));
        assert_eq!(deliveries.delivered(), Sequence(4));
        assert_eq!(deliveries.lag(), (2, Some(Timestamp::from_millis(5))));
        let seen = deliveries.undelivered(READER, &[AUTHOR]);
        assert_eq!((seen.posts, seen.authors), (vec![key(1)], vec![AUTHOR]));
        assert_eq!(deliveries.undelivered(READER, &[AUTHOR, READER]).posts, [key(1)]);
        assert!(deliveries.undelivered(AUTHOR, &[]).posts.is_empty());

        let first = deliveries.next(Duration::ZERO).unwrap();
        deliveries.put_back(first);
        let second = deliveries.next(Duration::ZERO).unwrap();
        assert_eq!(second.job, bring_in.job);
        deliveries.finish(&second);
        assert_eq!(deliveries.delivered(), Sequence(4));
        let first = deliveries.next(Duration::ZERO).unwrap();
        assert_eq!(deliveries.undelivered(READER, &[AUTHOR]).posts, [key(1)], "its turn is not its end");
        deliveries.finish(&first);
        assert_eq!((deliveries.delivered(), deliveries.lag().0), (Sequence(9), 0));
        assert!(deliveries.undelivered(READER, &[AUTHOR]).posts.is_empty());
        deliveries.stop();
        assert!(deliveries.next(Duration::MAX).is_none());
    }
}
