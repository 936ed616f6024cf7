//! What is still to be delivered: events whose effect on inboxes is not done yet.
//!
//! Posts go to followers in turns, so that a post to many does not hold up one to few. Until an event is done, readers
//! find it here: what they show never depends on how far deliveries have come.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use foldhash::fast::RandomState;
use kinfolk_core::feed::PostKey;
use kinfolk_core::graph::ListKey;
use kinfolk_core::{Id, Position, Timestamp};
use parking_lot::{Condvar, Mutex};

/// What to do with inboxes for one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Put a post into the inboxes of those who follow its author, from a place in the list of followers on.
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
pub struct Delivery {
    pub position: Position,
    /// When the event was accepted.
    pub at: Timestamp,
    pub job: Job,
}

/// What is still to be delivered.
#[derive(Default)]
pub struct Deliveries {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Jobs in the order of their turns.
    turns: VecDeque<Delivery>,
    /// All jobs that are not done, also the one whose turn it is.
    undone: BTreeMap<Position, Timestamp>,
    /// Posts among them, by author.
    posts: HashMap<Id, Vec<(Position, PostKey)>, RandomState>,
    /// Follows among them, by follower.
    follows: HashMap<Id, Vec<(Position, Id)>, RandomState>,
    /// The newest event that was looked at.
    newest: Position,
    stopping: bool,
}

/// What a reader must know beside what is in an inbox.
#[derive(Debug, Default)]
pub struct Undelivered {
    /// Posts by authors whom the reader follows.
    pub posts: Vec<PostKey>,
    /// Authors whom the reader has followed, whose posts are not brought in yet.
    pub authors: Vec<Id>,
}

impl Deliveries {
    /// Adds the jobs of events, which reach up to a position.
    pub fn add(&self, jobs: &[Delivery], newest: Position) {
        let mut state = self.state.lock();
        for &delivery in jobs {
            state.add(delivery);
        }
        state.newest = state.newest.max(newest);
        if !jobs.is_empty() {
            self.changed.notify_one();
        }
    }

    /// The job whose turn it is. Waits for one, but not longer than given; `None` then, or where it is time to end.
    pub fn next(&self, longest: Duration) -> Option<Delivery> {
        let mut state = self.state.lock();
        if state.turns.is_empty() && !state.stopping {
            self.changed.wait_for(&mut state, longest);
        }
        if state.stopping { None } else { state.turns.pop_front() }
    }

    /// Lets a job wait for another turn.
    pub fn put_back(&self, delivery: Delivery) {
        self.state.lock().turns.push_back(delivery);
    }

    /// A job is done.
    pub fn finish(&self, delivery: &Delivery) {
        self.state.lock().remove(delivery);
    }

    /// Ends the waiting for jobs.
    pub fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_all();
    }

    /// Whether it is time to end.
    pub fn is_stopping(&self) -> bool {
        self.state.lock().stopping
    }

    /// Everything up to here is delivered.
    pub fn delivered(&self) -> Position {
        let state = self.state.lock();
        state.undone.keys().next().map_or(state.newest, |first| Position(first.0 - 1))
    }

    /// How many events are not delivered, and when the oldest of them was accepted.
    pub fn lag(&self) -> (u64, Option<Timestamp>) {
        let state = self.state.lock();
        (state.undone.len() as u64, state.undone.values().next().copied())
    }

    /// What is not delivered to a reader yet, who follows these, by id.
    pub fn undelivered(&self, reader: Id, followees: &[Id]) -> Undelivered {
        let state = self.state.lock();
        let follows = state.follows.get(&reader).map_or(&[][..], Vec::as_slice);
        let authors = follows.iter().map(|&(_, author)| author).collect();
        let keys = |posts: &[(Position, PostKey)]| posts.iter().map(|&(_, key)| key).collect::<Vec<_>>();
        // Through the shorter side: writers wait meanwhile.
        let posts = if state.posts.len() < followees.len() {
            let followed = state.posts.iter().filter(|(author, _)| followees.binary_search(author).is_ok());
            followed.flat_map(|(_, posts)| keys(posts)).collect()
        } else {
            followees
                .iter()
                .filter_map(|author| state.posts.get(author))
                .flat_map(|posts| keys(posts))
                .collect()
        };
        Undelivered { posts, authors }
    }

    /// Waits, unless it is time to end.
    pub fn pause(&self, longest: Duration) {
        let mut state = self.state.lock();
        if !state.stopping {
            self.changed.wait_for(&mut state, longest);
        }
    }
}

impl State {
    fn add(&mut self, delivery: Delivery) {
        let Delivery { position, at, job } = delivery;
        self.turns.push_back(delivery);
        self.undone.insert(position, at);
        match job {
            Job::Push { author, key, .. } => self.posts.entry(author).or_default().push((position, key)),
            Job::BringIn { follower, followee } => {
                self.follows.entry(follower).or_default().push((position, followee));
            }
            Job::TakeBack { .. } | Job::TakeOut { .. } => {}
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

fn forget<T>(map: &mut HashMap<Id, Vec<(Position, T)>, RandomState>, of: Id, position: Position) {
    if let Some(list) = map.get_mut(&of) {
        list.retain(|&(other, _)| other != position);
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
        Delivery { position: Position(position), at: Timestamp::from_millis(position), job }
    }

    fn key(time: u64) -> PostKey {
        PostKey { since: Timestamp::from_millis(time), id: Id::Integer(time) }
    }

    #[test]
    fn what_is_not_done_is_seen_until_it_is() {
        let deliveries = Deliveries::default();
        let push = delivery(5, Job::Push { author: AUTHOR, key: key(1), after: None });
        let bring_in = delivery(6, Job::BringIn { follower: READER, followee: AUTHOR });
        deliveries.add(&[push, bring_in], Position(9));
        assert_eq!(deliveries.delivered(), Position(4));
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
        assert_eq!(deliveries.delivered(), Position(4));
        let first = deliveries.next(Duration::ZERO).unwrap();
        assert_eq!(deliveries.undelivered(READER, &[AUTHOR]).posts, [key(1)], "its turn is not its end");
        deliveries.finish(&first);
        assert_eq!((deliveries.delivered(), deliveries.lag().0), (Position(9), 0));
        assert!(deliveries.undelivered(READER, &[AUTHOR]).posts.is_empty());
        deliveries.stop();
        assert!(deliveries.next(Duration::MAX).is_none());
    }
}
