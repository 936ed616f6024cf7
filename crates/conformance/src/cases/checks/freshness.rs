//! Cases of what a reader has seen: tokens of several followers, and edges that come and go under the eyes of a reader. A store
//! whose projections lag, come twice or are answered by the wrong host fails here first.

use kinfolk_core::graph::{Edge, Side};
use kinfolk_core::{Frontier, GraphStore, PageRequest, Token};

use crate::cases::subject::{Subject, ids_of, keys};
use crate::random::Random;
use crate::seen::Seen;
use crate::threads::block_on;

crate::cases::list_cases![cases: GraphStore;
    tokens_of_several_followers_are_joined,
    a_position_says_nothing_about_other_followers,
    checks_between_writes_leave_nothing_behind,
];

/// The token of a write also shows the writes before it, whichever shards they were on.
fn tokens_of_several_followers_are_joined<S: GraphStore>(subject: &Subject<S>) {
    let (graph, kind) = (&subject.graph, subject.kind());
    let mut seen = Frontier::default();
    for number in 1..=12 {
        let written = block_on(graph.follow(kind, subject.id(number), subject.id(0))).unwrap();
        let frontier = Token::decode(&written.token, &keys()).unwrap().frontier;
        assert!(frontier.covers_all(&seen), "{frontier} forgets some of {seen}");
        let fresh = Some(written.token.as_str());
        let page = PageRequest { limit: 20, cursor: None };
        let followers = block_on(graph.followers(kind, subject.id(0), page, fresh)).unwrap();
        assert_eq!(ids_of(&followers.items), subject.ids((1..=number).rev()));
        assert_eq!(block_on(graph.counts(kind, &subject.ids([0]), fresh)).unwrap()[0].followers, number);
        let edges: Vec<Edge> = (1..=number).rev().take(10).map(|from| subject.edge(from, 0)).collect();
        assert_eq!(block_on(graph.check(kind, &edges, fresh)).unwrap(), vec![true; edges.len()]);
        seen = frontier;
    }
}

/// A reader who has seen one follower's write is shown that one, on every side of the graph.
fn a_position_says_nothing_about_other_followers<S: GraphStore>(subject: &Subject<S>) {
    for number in 1..=12 {
        let receipt = subject.follow(number, 0);
        let store = Seen::new(subject.graph.store(), receipt.position);
        let (kind, of) = (subject.kind(), subject.id(0));
        let followers = block_on(store.list(kind, Side::Followers, of, None, 20)).unwrap();
        assert!(ids_of(&followers).contains(&subject.id(number)), "{number} is not in {followers:?}");
        assert_eq!(block_on(store.contains(kind, &[subject.edge(number, 0)])).unwrap(), [true]);
        assert!(block_on(store.counts(kind, &[of])).unwrap()[0].followers <= number);
    }
}

/// User 1 follows and unfollows; every check in between is right, also at once, for the pair and for others.
fn checks_between_writes_leave_nothing_behind<S: GraphStore>(subject: &Subject<S>) {
    let mut random = Random::new(12);
    let mut following = [false; 6];
    for round in 0..150 {
        let number = random.below(4);
        let follows = &mut following[number as usize];
        *follows = !*follows;
        if *follows {
            subject.follow(10, number)
        } else {
            subject.unfollow(10, number)
        };
        for _ in 0..random.below(8) {
            let asked = random.below(6);
            let expected = following[asked as usize];
            let edge = subject.edge(10, asked);
            let at_once = subject.store().contains_now(subject.kind(), edge);
            assert_eq!(at_once.unwrap_or(expected), expected, "at once, in round {round}");
            assert_eq!(subject.contains(10, asked), expected, "in round {round}");
        }
    }
}
