//! Cases of several threads at once. What they did must tell one story afterwards; see `audit.rs`.

use std::thread;
use std::time::Duration;

use kinfolk_core::GraphStore;

use crate::cases::subject::{Command, NO_LIMIT, Subject, follow, unfollow};
use crate::random::audit::{Record, audit};
use crate::threads::{at_once, meanwhile};

crate::cases::list_cases![cases: GraphStore;
    one_pair_from_several_threads,
    a_follow_and_an_unfollow_at_once,
    opposite_edges_at_once,
    requests_of_several_commands_stay_whole,
    reads_meanwhile_leave_nothing_behind,
    a_writer_sees_its_write_while_others_read,
    every_thread_sees_its_own_writes,
];

fn assert_one_story<S: GraphStore>(subject: &Subject<S>, threads: &[Vec<Record>]) {
    audit(&*subject.store(), threads, u64::from(NO_LIMIT), &subject.ids(0..8))
        .unwrap_or_else(|wrong| panic!("{wrong}"));
}

/// A follow in even steps, an unfollow in odd ones.
fn alternating(step: u64, from: u64, to: u64) -> Command {
    if step.is_multiple_of(2) { follow(from, to) } else { unfollow(from, to) }
}

fn one_pair_from_several_threads<S: GraphStore>(subject: &Subject<S>) {
    let threads = at_once(4, |thread| {
        let step = |step| {
            subject.clock.turn_back(step % 3);
            subject.recorded(&[alternating(step + thread as u64, 1, 2)])
        };
        (0..15).map(step).collect::<Vec<_>>()
    });
    assert_one_story(subject, &threads);
}

fn a_follow_and_an_unfollow_at_once<S: GraphStore>(subject: &Subject<S>) {
    let mut threads = vec![Vec::new(); 2];
    // Many short races: only the last two writes of each decide, and each one's end is looked at.
    for _ in 0..20 {
        let records = at_once(2, |thread| {
            let commands = [follow(1, 2), unfollow(1, 2)];
            [subject.recorded(&[commands[thread]]), subject.recorded(&[commands[1 - thread]])]
        });
        for (thread, records) in threads.iter_mut().zip(records) {
            thread.extend(records);
        }
        assert_eq!(subject.followers(2).len(), usize::from(subject.contains(1, 2)), "the sides agree");
        assert_eq!(subject.followers(2).len(), subject.following(1).len(), "the sides agree");
        assert_eq!(subject.counts(2).followers, subject.counts(1).following);
    }
    assert_one_story(subject, &threads);
}

fn opposite_edges_at_once<S: GraphStore>(subject: &Subject<S>) {
    let threads = at_once(4, |thread| {
        let (from, to) = if thread % 2 == 0 { (1, 2) } else { (2, 1) };
        (0..12).map(|step| subject.recorded(&[alternating(step, from, to)])).collect::<Vec<_>>()
    });
    assert_one_story(subject, &threads);
}

fn requests_of_several_commands_stay_whole<S: GraphStore>(subject: &Subject<S>) {
    let threads = at_once(3, |thread| {
        let step = |step| {
            let (one, two) = (1 + (step + thread as u64) % 3, 1 + step % 4);
            subject.recorded(&[
                follow(0, one),
                unfollow(0, one + 1),
                follow(0, 5),
                unfollow(0, two),
                unfollow(0, 5),
            ])
        };
        (0..10).map(step).collect::<Vec<_>>()
    });
    assert_one_story(subject, &threads);
}

fn reads_meanwhile_leave_nothing_behind<S: GraphStore>(subject: &Subject<S>) {
    // A read that began before a write and ends after it must not bring the state before it back.
    for round in 0..30 {
        let follows = round % 2 == 0;
        at_once(3, |thread| match thread {
            0 => {
                // Later in some rounds: which thread comes first is otherwise up to the scheduler, which may choose alike every time.
                thread::sleep(Duration::from_micros(200 * (round / 2 % 4)));
                _ = if follows { subject.follow(1, 2) } else { subject.unfollow(1, 2) };
            }
            _ => {
                subject.contains(1, 2);
                subject.following(1);
                subject.followers(2);
                subject.counts(2);
            }
        });
        let expected = usize::from(follows);
        assert_eq!(subject.contains(1, 2), follows, "in round {round}");
        assert_eq!((subject.following(1).len(), subject.followers(2).len()), (expected, expected));
        assert_eq!(subject.counts(2).followers, expected as u64);
    }
}

fn a_writer_sees_its_write_while_others_read<S: GraphStore>(subject: &Subject<S>) {
    let read = || {
        subject.contains(1, 2);
        subject.followers(2);
        subject.counts(2);
    };
    meanwhile(read, || {
        for _ in 0..30 {
            subject.follow(1, 2);
            assert!(subject.contains(1, 2), "after the follow");
            assert_eq!((subject.followers(2).len(), subject.counts(2).followers), (1, 1));
            subject.unfollow(1, 2);
            assert!(!subject.contains(1, 2), "after the unfollow");
            assert_eq!((subject.followers(2).len(), subject.counts(2).followers), (0, 0));
        }
    });
}

fn every_thread_sees_its_own_writes<S: GraphStore>(subject: &Subject<S>) {
    at_once(4, |thread| {
        let own = 1 + thread as u64;
        for to in 10..16 {
            subject.follow(own, to);
            assert!(subject.contains(own, to) && subject.since(own, to).is_some());
            assert_eq!(subject.following(own).len() as u64, to - 9);
            assert!(subject.followers(to).iter().any(|entry| entry.id == subject.id(own)));
        }
        for to in 10..16 {
            subject.unfollow(own, to);
            assert!(!subject.contains(own, to));
            assert_eq!(subject.counts(own).following, 15 - to);
            assert!(!subject.followers(to).iter().any(|entry| entry.id == subject.id(own)));
        }
    });
    assert_eq!(subject.log_length(), 48);
}
