//! What is found in the background, when it is repaired, and what is passed over.

use kinfolk_conformance::{block_on, write_commands};
use kinfolk_core::comments::{CommentStore, NewComment, Parent, ParentKind};
use kinfolk_core::feeds::{NewPost, PostStore};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand};
use kinfolk_core::{EdgeKind, Id, IdKind, Timestamp};

use super::*;
use crate::edges::faults::EdgeFault;
use crate::edges::{Row, Tree};
use crate::projection::difference;
use crate::{Embedded, Settings};

const FOLLOW: EdgeKind = EdgeKind::Follow;

fn edge(follower: u64, followee: u64) -> Edge {
    Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) }
}

fn row(edge: Edge, since: Timestamp) -> Row {
    Row { kind: FOLLOW, edge, since }
}

/// A store whose own reconciler sleeps, with 200 edges on disk.
fn store() -> (tempfile::TempDir, Embedded) {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { reconcile_rows: 0, ..Settings::default() };
    let store = Embedded::create(folder.path(), IdKind::Integer, settings).unwrap();
    let follow = |n: u64| EdgeCommand { action: EdgeAction::Follow, edge: edge(n % 10 + 1, n + 100) };
    let commands: Vec<_> = (0..200).map(follow).collect();
    write_commands(&store, FOLLOW, &commands, 1_000).unwrap();
    store.compact().unwrap();
    (folder, store)
}

/// Takes one step; returns how much was repaired.
fn step(reconciler: &mut Reconciler, now: Instant) -> usize {
    let Work { overdue, counted } = reconciler.work(now);
    let store = Arc::clone(&reconciler.store);
    let corrected = verify::correct(&store, &counted).unwrap();
    let Settled { real, recounts } = verify::settle(&store, &overdue, true).unwrap();
    if !recounts.is_empty() {
        reconciler.recounting = Recounting::Counting(recounts, 0);
    }
    real.len() + corrected
}

/// Goes round at each of the times; returns how much was repaired.
fn reconcile(store: &Embedded, seconds: &[u64]) -> usize {
    const STEPS_OF_A_ROUND: usize = 100;
    let mut reconciler = Reconciler::new(Arc::clone(&store.store), 37);
    let start = Instant::now();
    let at = |second: &u64| start + Duration::from_secs(*second);
    let round = |now| (0..STEPS_OF_A_ROUND).map(|_| step(&mut reconciler, now)).sum::<usize>();
    seconds.iter().map(at).map(round).sum()
}

fn differences(store: &Embedded) -> Vec<String> {
    store.verify(false, &|_| {}).unwrap().differences
}

#[test]
fn what_agrees_is_left_alone() {
    let (_folder, store) = store();
    assert_eq!(reconcile(&store, &[0, 31, 62]), 0);
}

#[test]
fn a_difference_is_repaired_only_after_its_time() {
    let (_folder, store) = store();
    let (rows, index) = (&store.store.edges.rows, &store.store.edges.index);
    let truth: Vec<_> = store.edges(FOLLOW).unwrap().map(Result::unwrap).collect();
    let since = truth[0].1;
    rows.repair(Tree::Followers, row(truth[7].0, since), false);
    rows.repair(Tree::Following, row(truth[8].0, since), false);
    rows.repair(Tree::Followers, row(edge(2, 150), since), true);
    index.of(FOLLOW).remove(truth[20].0);
    index.of(FOLLOW).insert(edge(77, 100));
    index.of(FOLLOW).insert(edge(1, 9_000));
    index.of(FOLLOW).set_follower_count(Id::Integer(140), 9);
    store.compact().unwrap();

    assert_eq!(reconcile(&store, &[0, 29]), 0);
    assert!(store.verify(false, &|_| {}).unwrap().difference_count > 0);
    assert!(reconcile(&store, &[0, 31, 62, 93, 124]) >= 6);
    assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
}

#[test]
fn a_difference_that_goes_away_is_forgotten() {
    let (_folder, store) = store();
    let truth: Vec<_> = store.edges(FOLLOW).unwrap().map(Result::unwrap).collect();
    let mut reconciler = Reconciler::new(Arc::clone(&store.store), 37);
    let start = Instant::now();
    let (edge, since) = truth[3];
    let row = EdgeFault::Row { tree: Tree::Followers, kind: FOLLOW, edge, since, missing: true };
    reconciler.suspect(difference(&store.store.edges, row), start);
    assert!(reconciler.overdue(start + PATIENCE).is_empty() && reconciler.suspects.is_empty());
}

#[test]
fn posts_and_comments_are_compared_too() {
    let (_folder, store) = store();
    let (author, parent) = (Id::Integer(1), Parent { kind: ParentKind::Item, id: Id::Integer(5) });
    for number in 0..300 {
        let key = Some(Arc::from(format!("key {number}")));
        let post =
            NewPost { id: None, author, created_at: None, payload: None, idempotency_key: key.clone() };
        block_on(store.register(post)).unwrap();
        let body = "text".into();
        let comment = NewComment { parent, author, body, reply_to: None, idempotency_key: key, depth_max: 9 };
        block_on(store.comment(comment)).unwrap();
    }
    assert_eq!(reconcile(&store, &[0, 31, 62]), 0);
    let (posts, comments) = (&store.store.posts.tree, &store.store.comments.tree);
    // Of each kind of row the middle one goes: lists, keys and pulled authors of posts; places, replies, lists, keys and
    // counts of comments.
    for (tree, tags) in [(posts, &[2_u8, 3][..]), (comments, &[2, 3, 4, 7])] {
        for &tag in tags {
            let keys: Vec<_> = tree.rows(&[tag], (None, None), u64::MAX).map(|row| row.unwrap().0).collect();
            tree.remove(keys[keys.len() / 2].clone());
        }
    }
    let (key, _) = comments.rows(&[6], (None, None), u64::MAX).next().unwrap().unwrap();
    comments.insert(key, *b"?");
    // A key that is missing is found by the log, which only a whole pass reads; one that is wrong by itself.
    let found = differences(&store).len();
    assert_eq!(found, 9, "{:#?}", differences(&store));
    assert_eq!(reconcile(&store, &[0, 29]), 0);
    assert_eq!(reconcile(&store, &[0, 31, 62, 93]), 6);
    assert_eq!(differences(&store).len(), 2, "{:#?}", differences(&store));
}

/// A list is counted again in many steps, while others follow and unfollow, and without the writer.
#[test]
fn a_long_list_is_counted_while_it_changes() {
    const FOLLOWERS: u64 = 7_000;
    let (_folder, store) = store();
    let (celebrity, shared) = (Id::Integer(1_000_000), Arc::clone(&store.store));
    let write = |action, followers: std::ops::Range<u64>| {
        let command = |follower| EdgeCommand { action, edge: edge(follower, 1_000_000) };
        let commands: Vec<_> = followers.map(command).collect();
        write_commands(&store, FOLLOW, &commands, 1_000).unwrap();
    };
    write(EdgeAction::Follow, 0..FOLLOWERS);
    store.compact().unwrap();
    let count = || shared.edges.index.of(FOLLOW).counts(celebrity).followers;
    shared.edges.index.of(FOLLOW).set_follower_count(celebrity, 17);
    let mut reconciler = Reconciler::new(Arc::clone(&shared), 40);
    let start = Instant::now();
    while !reconciler.suspects.keys().any(|key| key.is_count) {
        assert_eq!(step(&mut reconciler, start), 0);
    }
    let late = start + PATIENCE;
    assert_eq!(step(&mut reconciler, late), 0, "it is only begun");
    write(EdgeAction::Unfollow, 0..5);
    write(EdgeAction::Follow, FOLLOWERS..FOLLOWERS + 8);
    let mut steps = 1;
    while step(&mut reconciler, late) == 0 {
        assert_ne!(count(), FOLLOWERS + 3);
        steps += 1;
    }
    assert!(steps > 5, "a few rows at a time: {steps}");
    assert_eq!(count(), FOLLOWERS + 3);
    assert_eq!(differences(&store), Vec::<String>::new());
}

/// Flips a bit in the middle of the largest file of a tree.
fn damage(tree: &std::path::Path) {
    let files = std::fs::read_dir(tree.join("tables")).unwrap().map(|entry| entry.unwrap().path());
    let file = files.max_by_key(|path| std::fs::metadata(path).unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

/// Behind a block that can't be read everything is compared and repaired, in all trees, and the round goes on.
#[test]
fn a_damaged_block_is_passed_over() {
    const EDGES: u64 = 6_000;
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { reconcile_rows: 0, fan_out_threshold: 0, ..Settings::default() };
    let store = Embedded::create(folder.path(), IdKind::Integer, settings.clone()).unwrap();
    let follow = |n: u64| EdgeCommand { action: EdgeAction::Follow, edge: edge(n % 100, n + 1_000) };
    let commands: Vec<_> = (0..EDGES).map(follow).collect();
    write_commands(&store, FOLLOW, &commands, 1_000).unwrap();
    for author in 0..2_000 {
        let author = Id::Integer(author);
        let post = NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None };
        block_on(store.register(post)).unwrap();
    }
    store.compact().unwrap();
    let (last, since) = store.edges(FOLLOW).unwrap().map(Result::unwrap).last().unwrap();
    store.close().unwrap();
    damage(&folder.path().join("rows/followers"));
    damage(&folder.path().join("posts"));

    let store = Embedded::open(folder.path(), settings).unwrap();
    let shared = Arc::clone(&store.store);
    assert!(store.verify(false, &|_| {}).is_err(), "a whole pass says that there is damage");
    // Behind the damage: a stray follower, and an author who is not known to be pulled.
    let stray = row(edge(5, EDGES + 900), since);
    shared.edges.rows.repair(Tree::Followers, stray, true);
    shared.edges.rows.repair(Tree::Following, row(last, since), false);
    store.flush().unwrap();
    shared.posts.tree.remove([&[4][..], &1_999_u64.to_be_bytes()].concat());

    let mut reconciler = Reconciler::new(Arc::clone(&shared), 100);
    let start = Instant::now();
    let mut round = |now: Instant| {
        let (before, mut repaired) = (reconciler.rounds, step(&mut reconciler, now));
        while reconciler.rounds == before {
            repaired += step(&mut reconciler, now);
        }
        repaired
    };
    assert_eq!(round(start), 0);
    let stats = store.stats();
    assert!(stats.unreadable >= 2, "{stats:?}");
    // Two rows of each edge for sure, three but for those of a block; and most rows of posts.
    let rows = 3 * EDGES + 3 * 2_000;
    assert!((rows - 2_000..rows + 10).contains(&stats.reconciled_rows), "{stats:?} of {rows}");
    assert_eq!(round(start + PATIENCE), 3);
    assert!(!shared.edges.rows.has(Tree::Followers, stray).unwrap());
    assert!(shared.edges.rows.has(Tree::Following, row(last, since)).unwrap());
    assert!(store.stats().unreadable > stats.unreadable, "it is counted in every round");
    assert_eq!(round(start + 2 * PATIENCE), 0);
}
