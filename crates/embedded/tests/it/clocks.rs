//! Clocks that jump: a store does not follow one that can't be right, and there is a way back from times that were wrong.

use std::sync::Arc;
use std::time::Duration;

use kinfolk_conformance::{SimulatedClock, block_on, write_commands};
use kinfolk_core::comments::{CommentEdit, CommentOrder, CommentStore, NewComment, Parent};
use kinfolk_core::feeds::{NewPost, PostStore};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand, EdgeStore};
use kinfolk_core::{Clock, EdgeKind, Frontier, Id, IdKind, Timestamp};
use kinfolk_embedded::{ClockLimits, Embedded, GuardedClock, Settings};

const FOLLOW: EdgeKind = EdgeKind::Follow;
const HOUR_MS: u64 = 3_600_000;
const YEAR_MS: u64 = 365 * 24 * HOUR_MS;
/// More than anything here takes.
const MOMENT_MS: u64 = 10 * 60 * 1_000;

fn edge(followee: u64) -> Edge {
    Edge { follower: Id::Integer(1), followee: Id::Integer(followee) }
}

/// Follows somebody; since when, by the store.
fn follow(store: &Embedded, followee: u64) -> Timestamp {
    let commands = vec![EdgeCommand { action: EdgeAction::Follow, edge: edge(followee) }];
    assert!(write_commands(store, FOLLOW, &commands, 1_000).unwrap().changed[0]);
    since(store, followee)
}

fn since(store: &Embedded, followee: u64) -> Timestamp {
    block_on(store.since(FOLLOW, &[edge(followee)], Frontier::EMPTY)).unwrap()[0].unwrap()
}

fn is_within(time: Timestamp, from: Timestamp, millis: u64) -> bool {
    from <= time && time <= from.plus_millis(millis)
}

fn guarded(wall: &Arc<SimulatedClock>) -> Arc<dyn Clock> {
    Arc::new(GuardedClock::new(wall.clone(), ClockLimits::default()))
}

#[test]
fn a_jump_ahead_is_not_followed() {
    let (folder, wall) = (tempfile::tempdir().unwrap(), Arc::new(SimulatedClock::default()));
    let start = wall.now();
    let open = |wall| Embedded::open_with_clock(folder.path(), Settings::default(), guarded(wall)).unwrap();
    Embedded::create_with_clock(folder.path(), IdKind::Integer, Settings::default(), guarded(&wall))
        .unwrap()
        .close()
        .unwrap();

    let store = open(&wall);
    assert_eq!(follow(&store, 2), start);
    wall.advance(10 * YEAR_MS);
    let refused = follow(&store, 3);
    assert!(is_within(refused, start, MOMENT_MS), "{refused}");
    let stats = store.stats();
    assert!(stats.clock_ahead > Duration::from_millis(10 * YEAR_MS - MOMENT_MS), "{stats:?}");
    wall.set(start.plus_millis(HOUR_MS / 2));
    assert_eq!(follow(&store, 4), start.plus_millis(HOUR_MS / 2));
    assert_eq!(store.stats().clock_ahead, Duration::ZERO);
    wall.turn_back(HOUR_MS);
    assert_eq!(follow(&store, 5), start.plus_millis(HOUR_MS / 2), "times never go back");
    assert!(store.stats().clock_behind > Duration::from_millis(HOUR_MS / 2));
    store.close().unwrap();

    // A start after a year is fine; one in another century is not, and neither is what it would write.
    wall.set(start.plus_millis(80 * YEAR_MS));
    let store = open(&wall);
    assert!(is_within(follow(&store, 6), start, HOUR_MS));
    assert!(store.stats().clock_ahead > Duration::from_millis(79 * YEAR_MS));
    store.close().unwrap();
    wall.set(start.plus_millis(YEAR_MS));
    let store = open(&wall);
    assert_eq!(follow(&store, 7), start.plus_millis(YEAR_MS));
    store.close().unwrap();
}

/// What a store has that was written while its clock was years ahead, and the way back.
#[test]
fn a_backup_can_be_restored_without_times_that_are_ahead() {
    for ids in [IdKind::Integer, IdKind::Uuid] {
        let id = |number: u64| crate::stores::id(ids, number);
        let folder = tempfile::tempdir().unwrap();
        let wall = Arc::new(SimulatedClock::default());
        let now = wall.now();
        let clock: Arc<dyn Clock> = wall.clone();
        let path = folder.path().join("store");
        let store = Embedded::create_with_clock(&path, ids, Settings::default(), clock).unwrap();
        let follow = |store: &Embedded, followee: u64| {
            let edge = Edge { follower: id(1), followee: id(followee) };
            let commands = vec![EdgeCommand { action: EdgeAction::Follow, edge }];
            write_commands(store, FOLLOW, &commands, 9).unwrap();
            block_on(store.since(FOLLOW, &[edge], Frontier::EMPTY)).unwrap()[0].unwrap()
        };
        let post = |store: &Embedded| {
            let request =
                NewPost { id: None, author: id(2), created_at: None, payload: None, idempotency_key: None };
            block_on(store.register(request)).unwrap().post
        };
        let comment = |store: &Embedded, on: Id, key: &str| {
            let request = NewComment {
                parent: Parent::post(on),
                author: id(3),
                body: "hello".into(),
                reply_to: None,
                idempotency_key: Some(key.into()),
                depth_max: 9,
            };
            block_on(store.comment(request)).unwrap().comment
        };
        assert_eq!(follow(&store, 2), now);
        let before = post(&store);
        wall.advance(70 * YEAR_MS);
        let ahead = wall.now();
        assert_eq!(follow(&store, 3), ahead);
        let (posted, said) = (post(&store), comment(&store, before.id, "a"));
        let edit = |version| CommentEdit { id: said.id, version, body: "again".into() };
        (1..=2).for_each(|version| drop(block_on(store.edit_comment(edit(version))).unwrap()));
        assert_eq!((posted.created_at, said.created_at), (ahead, ahead));
        wall.set(now.plus_millis(5));
        assert_eq!(follow(&store, 4), ahead, "that is what there has to be a way back from");
        let file = folder.path().join("backup");
        store.backup(&mut std::fs::File::create(&file).unwrap(), &|_| {}).unwrap();
        store.close().unwrap();

        let (restored, latest) = (folder.path().join("restored"), wall.now());
        let settings = Settings::default();
        Embedded::restore(&file, &restored, &settings, latest, &|_| {}).unwrap();
        let store = Embedded::open_with_clock(&restored, settings, wall.clone()).unwrap();
        let found: Vec<_> = store.edges(FOLLOW).unwrap().map(|row| row.unwrap().1).collect();
        assert_eq!(found, [now, latest, latest]);
        assert_eq!(store.stats().clock_behind, Duration::ZERO);
        wall.advance(1);
        assert_eq!(follow(&store, 5), wall.now());
        let posts = block_on(store.posts_by(id(2), None, 9, Frontier::EMPTY)).unwrap();
        assert_eq!(posts.iter().map(|post| post.created_at).collect::<Vec<_>>(), [latest, now]);
        let (newer, later) = (post(&store), comment(&store, before.id, "b"));
        assert!(newer.id > posted.id && later.id > said.id, "made ids go on rising");
        assert_eq!((newer.created_at, later.created_at), (wall.now(), wall.now()));
        let thread = block_on(store.comment_thread(
            Parent::post(before.id),
            CommentOrder::Oldest,
            None,
            9,
            Frontier::EMPTY,
        ))
        .unwrap();
        assert_eq!(thread.iter().map(|comment| comment.id).collect::<Vec<_>>(), [said.id, later.id]);
        assert_eq!((thread[0].created_at, thread[0].edited_at), (latest, Some(latest)));
        let versions = block_on(store.comment_versions(said.id, 0, 9, Frontier::EMPTY)).unwrap();
        assert!(versions.len() == 3 && versions.iter().all(|version| version.at == latest), "{versions:?}");
        assert_eq!(comment(&store, before.id, "a").id, said.id, "idempotency keys are kept");
        assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
        store.close().unwrap();
    }
}
