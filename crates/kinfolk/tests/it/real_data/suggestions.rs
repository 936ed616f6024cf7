//! What is found in a real graph: overlaps, walks and suggestions for everyone equal a computation by brute force, for
//! some users of every sort.

use std::sync::Arc;
use std::time::Duration;

use kinfolk_conformance::{SimulatedClock, block_on, write_commands};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand, EdgeStore, Overlap, Side, UserSet};
use kinfolk_core::suggestions::{
    Ranking, StoredSuggestions, SuggestionRunRequest, SuggestionStore, WalkBounds,
};
use kinfolk_core::{Clock, EdgeKind, Frontier, Id, SystemClock};
use kinfolk_embedded::{Embedded, Settings};

use super::brute::{Brute, best, integer};
use super::{KIND, graph_file, read_edges, walk};
use crate::faults::random::Random;
use crate::support::Sandbox;

const SEED: u64 = 20_261_115;
/// Users of each sort in the sample.
const OF_EACH: usize = 10;
const PER_NODE: usize = 500;

/// An imported graph, and the same in memory.
struct Subject {
    store: Embedded,
    clock: Arc<SimulatedClock>,
    brute: Brute,
    sample: Vec<u64>,
}

#[test]
fn overlaps_and_suggestions_agree_with_the_file() {
    let sandbox = Sandbox::new();
    let mut subject = Subject::import(&sandbox);
    subject.check_walks();
    subject.change_some();
    subject.check_walks();
    subject.check_overlaps();
    subject.check_everyone();
    subject.store.close().unwrap();
}

impl Subject {
    fn import(sandbox: &Sandbox) -> Self {
        let file = graph_file(sandbox);
        sandbox.ok(&format!("import {} --no-limit", file.display()));
        let brute = Brute::of_one_moment(&read_edges(&file));
        let sample = sample(&brute);
        // Later than the import, and only as the test goes on: what is written now is the most recent.
        let clock = Arc::new(SimulatedClock::new(SystemClock.now().plus_millis(3_600_000)));
        let folder = sandbox.path("kinfolk-data");
        let store =
            Embedded::open_with_clock(&folder, Settings::default(), Arc::<SimulatedClock>::clone(&clock));
        Self { store: store.unwrap(), clock, brute, sample }
    }

    fn write(&self, kind: EdgeKind, action: EdgeAction, (from, to): (u64, u64)) {
        let edge = Edge { follower: Id::Integer(from), followee: Id::Integer(to) };
        let commands = vec![EdgeCommand { action, edge }];
        self.clock.advance(1);
        assert_eq!(write_commands(&self.store, kind, &commands, u32::MAX).unwrap().changed[..], [true]);
    }

    /// Some users follow others, drop some and follow some again, so that time and ids have different orders; and
    /// they dismiss the best that they would get.
    fn change_some(&mut self) {
        let mut random = Random::new(SEED);
        for index in 0..self.sample.len() {
            let of = self.sample[index];
            // Somebody from the middle of its list becomes the most recent, and the oldest of a followee's likewise.
            let list = self.brute.following(of);
            let (again, through) = (list[list.len() / 2], list[0]);
            self.unfollow(of, again);
            self.follow(of, again);
            if let Some(&oldest) = self.brute.following(through).last() {
                self.unfollow(through, oldest);
                self.follow(through, oldest);
            }
            let suggested = best(self.brute.candidates(of, Some(PER_NODE)), Ranking::Count, 20);
            for one in suggested.iter().take(1 + random.below(3)) {
                let target = integer(one.id);
                self.write(EdgeKind::Dismissal, EdgeAction::Follow, (of, target));
                self.brute.dismissed.insert((of, target));
            }
            if let Some(last) = suggested.last().filter(|_| suggested.len() > 5) {
                self.follow(of, integer(last.id));
            }
        }
        for &of in &self.sample {
            let list = walk(&self.store, Side::Following, of);
            assert_eq!(list, self.brute.following(of), "the list of {of}");
            assert!(list.len() < 3 || !list.is_sorted_by(|a, b| a > b), "{of}: time and ids agree");
        }
    }

    fn follow(&mut self, from: u64, to: u64) {
        self.write(KIND, EdgeAction::Follow, (from, to));
        self.brute.follow(from, to);
    }

    fn unfollow(&mut self, from: u64, to: u64) {
        self.write(KIND, EdgeAction::Unfollow, (from, to));
        self.brute.unfollow(from, to);
    }

    /// The walk in a request, and one so narrow that it leaves most out.
    fn check_walks(&self) {
        let whole = Ranking::ALL.map(|ranking| (ranking, 1_000));
        let wanted = whole.into_iter().chain([(Ranking::Count, 7)]);
        let mut found_by_brute = 0;
        for per_node in [Some(PER_NODE), Some(20)] {
            for &of in &self.sample {
                let candidates = self.brute.candidates(of, per_node);
                found_by_brute += candidates.len();
                for (ranking, results) in wanted.clone() {
                    let bounds = WalkBounds { per_node, results, ranking };
                    let found =
                        block_on(self.store.candidates(Id::Integer(of), bounds, Frontier::EMPTY)).unwrap();
                    assert!(found == best(candidates.clone(), ranking, results), "of {of} with {bounds:?}");
                }
            }
        }
        assert!(found_by_brute > self.sample.len(), "there is somebody to suggest");
    }

    /// Every pair of the sample: whom both follow, whom one follows who follow the other, who follows both.
    fn check_overlaps(&self) {
        let mut members = 0;
        for (index, &one) in self.sample.iter().enumerate() {
            for &other in &self.sample[index..] {
                let third = self.sample[(index + 7) % self.sample.len()];
                let set = |side, of| UserSet { side, of: Id::Integer(of) };
                for sets in [
                    &[set(Side::Following, one), set(Side::Following, other)][..],
                    &[set(Side::Following, one), set(Side::Followers, other)],
                    &[set(Side::Following, other), set(Side::Followers, one)],
                    &[set(Side::Followers, one), set(Side::Followers, other)],
                    &[set(Side::Following, one), set(Side::Following, other), set(Side::Following, third)],
                ] {
                    members += self.check_overlap(sets);
                }
            }
        }
        assert!(members > self.sample.len(), "there is something in common");
    }

    fn check_overlap(&self, sets: &[UserSet]) -> usize {
        let expected: Vec<Id> = self.brute.overlap(sets).into_iter().map(Id::Integer).collect();
        let count = expected.len() as u64;
        let read =
            |after, limit| block_on(self.store.overlap(KIND, sets, after, limit, Frontier::EMPTY)).unwrap();
        assert_eq!(read(None, usize::MAX), Overlap { count, ids: expected.clone() }, "{sets:?}");
        if let Some(place) = expected.len().checked_sub(2) {
            let rest = Overlap { count, ids: expected[place + 1..].to_vec() };
            assert_eq!(read(Some(expected[place]), 5), rest, "the end of {sets:?}");
        }
        expected.len()
    }

    /// Everyone's best hundred, without a bound, in every ranking.
    fn check_everyone(&self) {
        let candidates: Vec<_> =
            self.sample.iter().map(|&of| (of, self.brute.candidates(of, None))).collect();
        for ranking in Ranking::ALL {
            let bounds = WalkBounds { per_node: None, results: 100, ranking };
            self.clock.advance(1_000);
            let request = SuggestionRunRequest { bounds, threads: 2, afresh: false };
            let report = self.store.compute_suggestions(request, &|_, _| true).unwrap();
            assert!(report.complete && report.users >= self.sample.len() as u64, "{report:?}");
            for (of, candidates) in &candidates {
                let items = best(candidates.clone(), ranking, bounds.results);
                let computed_at = self.clock.now();
                let expected = (!items.is_empty()).then_some(StoredSuggestions { computed_at, items });
                let stored =
                    self.store.stored_suggestions(Id::Integer(*of), Duration::from_secs(1), Frontier::EMPTY);
                assert!(block_on(stored).unwrap() == expected, "stored for {of} by {ranking:?}");
            }
        }
    }
}

/// Users who follow over 500 where there are such, otherwise those who follow most; users who follow few; the most
/// followed of those who follow anybody; and any.
fn sample(brute: &Brute) -> Vec<u64> {
    let mut random = Random::new(SEED);
    let mut users: Vec<u64> = brute.following.keys().copied().collect();
    users.sort_unstable_by_key(|&user| (brute.following(user).len(), user));
    let over = users.partition_point(|&user| brute.following(user).len() <= PER_NODE);
    let many = over.min(users.len() - users.len() / 100);
    println!("{} users follow over {PER_NODE}", users.len() - over);
    let few = users.partition_point(|&user| brute.following(user).len() < 10);
    let mut sample: Vec<u64> = Vec::new();
    for sort in [&users[many..], &users[..few], &users[..]] {
        sample.extend((0..OF_EACH).map(|_| sort[random.below(sort.len())]));
    }
    users.sort_unstable_by_key(|&user| (brute.followers(user).len(), user));
    sample.extend(users.iter().rev().take(OF_EACH / 3));
    sample.sort_unstable();
    sample.dedup();
    sample
}
