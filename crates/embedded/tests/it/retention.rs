//! How long changes stay in the log: by their age, whether or not anything is written, and across restarts.

use std::time::{Duration, Instant};

use kinfolk_conformance::block_on;
use kinfolk_core::changes::ChangeLog;
use kinfolk_core::comments::{CommentStore, NewComment, Parent, ParentKind, Withdrawal};
use kinfolk_core::{Clock, Error, Frontier, Id, IdKind, Sequence, Shard};
use kinfolk_embedded::Settings;

use crate::stores::Store;

const DAY_MS: u64 = 24 * 3_600_000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Nothing but age makes the log shorter, and that at once.
fn by_age() -> Settings {
    Settings {
        log_keep: Duration::from_secs(7 * 24 * 3_600),
        log_keep_at_start: Duration::ZERO,
        ..Settings::default()
    }
}

fn trimmed(store: &Store) -> Sequence {
    store.open.stats().trimmed
}

fn await_trimmed(store: &Store, expected: u64) {
    let deadline = Instant::now() + PATIENCE;
    while trimmed(store).0 < expected {
        assert!(Instant::now() < deadline, "changes up to {} are trimmed, not to {expected}", trimmed(store));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(trimmed(store).0, expected);
}

fn follow_some(store: &Store, day: u64, count: u64) {
    (0..count).for_each(|n| store.follow(Id::Integer(day + 1), Id::Integer(1_000 + n)));
}

#[test]
fn an_idle_store_forgets_what_is_old() {
    let store = Store::new(IdKind::Integer, by_age());
    follow_some(&store, 0, 10);
    let middle = block_on(store.open.changes(&Sequence(5).on(Shard::ONLY).into(), 100)).unwrap().changes;
    assert_eq!(middle.len(), 5);
    store.clock.advance(7 * DAY_MS + 1);
    await_trimmed(&store, 10);
    assert!(matches!(
        block_on(store.open.changes(&Sequence(5).on(Shard::ONLY).into(), 100)),
        Err(Error::PositionExpired { oldest, .. }) if oldest.sequence == Sequence(11)
    ));
    assert!(
        block_on(store.open.changes(&Sequence(10).on(Shard::ONLY).into(), 100)).unwrap().changes.is_empty()
    );
    let store = store.reopened();
    assert_eq!(trimmed(&store), Sequence(10));
    follow_some(&store, 1, 1);
    assert_eq!(
        block_on(store.open.changes(&Sequence(10).on(Shard::ONLY).into(), 100)).unwrap().changes.len(),
        1
    );
    let killed = store.killed();
    assert_eq!(killed.open.edge_count(kinfolk_core::EdgeKind::Follow), 11);
    killed.require_sound();
}

/// A slow store never fills a segment: its log goes away in steps all the same.
#[test]
fn a_slow_store_forgets_step_by_step() {
    let store = Store::new(IdKind::Integer, by_age());
    for day in 0..12 {
        follow_some(&store, day, 5);
        store.clock.advance(DAY_MS);
    }
    // Eleven days and a bit have gone since the first day, and seven days are kept.
    await_trimmed(&store, 5 * 5);
    let kept = block_on(store.open.changes(Frontier::EMPTY, 1_000)).unwrap().changes;
    assert_eq!(kept.len(), 5 * 7);
    let now = store.clock.now().millis();
    assert!(kept.iter().all(|change| now - change.at.millis() <= 7 * DAY_MS));
}

#[test]
fn what_an_earlier_process_has_left_ages_too() {
    for flush in [false, true] {
        let settings = Settings { flush_rows: if flush { 1 } else { 1_000_000 }, ..by_age() };
        let mut store = Store::new(IdKind::Integer, settings);
        for day in 0..4 {
            follow_some(&store, day, 5);
            store.clock.advance(DAY_MS);
        }
        store = store.reopened();
        assert_eq!(trimmed(&store), Sequence(0));
        store.clock.advance(4 * DAY_MS);
        // The first day's changes are eight days old, the second day's seven.
        await_trimmed(&store, 5);
        store = store.reopened();
        store.clock.advance(3 * DAY_MS);
        await_trimmed(&store, 20);
        store.require_sound();
        let store = store.reopened();
        assert_eq!(store.open.edge_count(kinfolk_core::EdgeKind::Follow), 20);
    }
}

/// Purges that carry a time which the clock has not reached are erased all the same.
#[test]
fn a_clock_that_was_ahead_does_not_put_off_erasing() {
    let settings = Settings { erase_after: Duration::from_secs(1), ..Settings::default() };
    let store = Store::new(IdKind::Integer, settings);
    store.clock.advance(365 * DAY_MS);
    let request = NewComment {
        parent: Parent { kind: ParentKind::Item, id: Id::Integer(1) },
        author: Id::Integer(7),
        body: "something that must go".into(),
        reply_to: None,
        idempotency_key: None,
        depth_max: 50,
    };
    let id = block_on(store.open.comment(request)).unwrap().comment.id;
    store.clock.turn_back(365 * DAY_MS);
    assert!(block_on(store.open.withdraw_comment(id, Withdrawal::Purge, None)).unwrap().changed);
    let deadline = Instant::now() + PATIENCE;
    while store.open.stats().purged_waiting > 0 {
        assert!(Instant::now() < deadline, "the text is still there");
        std::thread::sleep(Duration::from_millis(1));
    }
}
