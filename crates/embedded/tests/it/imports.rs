//! Imports: what the change log says of them, and the times of edges that came without one.

use std::fs;
use std::sync::Arc;

use kinfolk_conformance::{SimulatedClock, block_on, write_commands};
use kinfolk_core::changes::{ChangeBody, ChangeLog};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand, EdgeStore};
use kinfolk_core::{Clock, EdgeKind, Frontier, Id, IdKind, Sequence, Shard, Timestamp};
use kinfolk_embedded::{Embedded, Import, ImportOptions, Settings};

const FOLLOW: EdgeKind = EdgeKind::Follow;

fn edge(follower: u64, followee: u64) -> Edge {
    Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) }
}

fn write(store: &Embedded, action: EdgeAction, edge: Edge) {
    let commands = vec![EdgeCommand { action, edge }];
    assert!(write_commands(store, FOLLOW, &commands, 100).unwrap().changed[0]);
}

fn since(store: &Embedded, edge: Edge) -> Timestamp {
    block_on(store.since(FOLLOW, &[edge], Frontier::EMPTY)).unwrap()[0].unwrap()
}

fn begin(store: &Embedded, name: &str) -> Import {
    let options = ImportOptions {
        kind: FOLLOW,
        following_limit: Some(4),
        fingerprint: name.to_owned(),
        sort_memory: 0,
    };
    store.import(&options).unwrap()
}

#[test]
fn the_change_log_says_how_many_edges_were_added() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Embedded::create(&path, IdKind::Integer, Settings::default()).unwrap();
    write(&store, EdgeAction::Follow, edge(1, 2));
    let edges = [(1, 2), (1, 3), (1, 3), (1, 4), (1, 5), (1, 6), (1, 7), (7, 7), (9, 1)];
    let added = [4, 0].map(|expected| {
        let mut import = begin(&store, "a file");
        edges.iter().for_each(|&(follower, followee)| import.push(edge(follower, followee), None).unwrap());
        let report = import.finish(&|_| {}).unwrap();
        assert_eq!((report.added, report.self_follows), (expected, 1));
        report.added
    });
    store.close().unwrap();
    let store = Embedded::open(&path, Settings::default()).unwrap();
    let changes = block_on(store.changes(&Sequence(1).on(Shard::ONLY).into(), 10)).unwrap().changes;
    let imported: Vec<u64> = changes
        .iter()
        .map(|change| match change.body {
            ChangeBody::Imported { edges, .. } => edges,
            _ => panic!("{change:?}"),
        })
        .collect();
    assert_eq!(imported, added);
}

/// A clean-up that was interrupted has removed the runs and left the rest. Its edges are stored; only the index lacks them.
#[test]
fn an_import_whose_clean_up_was_interrupted_is_not_applied_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Embedded::create(&path, IdKind::Integer, Settings::default()).unwrap();
    write(&store, EdgeAction::Follow, edge(1, 2));
    let mut import = begin(&store, "first");
    import.push(edge(1, 3), None).unwrap();
    import.finish(&|_| {}).unwrap();
    let index = path.join("index.snapshot");
    let before = fs::read(&index).unwrap();
    let mut import = begin(&store, "second");
    // More than a run takes.
    (10..10_000).for_each(|follower| import.push(edge(follower, 3), None).unwrap());
    let imports = fs::read_dir(path.join("imports")).unwrap();
    let imports: Vec<_> = imports.map(|entry| entry.unwrap().path()).collect();
    let [left] = imports.as_slice() else { panic!("one import: {imports:?}") };
    let manifest = fs::read(left.join("import")).unwrap();
    import.finish(&|_| {}).unwrap();
    store.close().unwrap();
    fs::create_dir(left).unwrap();
    fs::write(left.join("import"), manifest).unwrap();
    fs::write(index, before).unwrap();

    let store = Embedded::open(&path, Settings::default()).unwrap();
    let edges = [edge(1, 2), edge(1, 3), edge(10, 3), edge(9_999, 3)];
    assert_eq!(
        block_on(store.since(FOLLOW, &edges, Frontier::EMPTY)).unwrap().iter().flatten().count(),
        edges.len()
    );
    assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
}

#[test]
fn an_edge_without_since_is_never_older_than_what_was_given_out() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(SimulatedClock::default());
    let path = folder.path().join("store");
    let store =
        Embedded::create_with_clock(&path, IdKind::Integer, Settings::default(), clock.clone()).unwrap();
    write(&store, EdgeAction::Follow, edge(1, 2));
    let newest = since(&store, edge(1, 2));
    // The clock goes back, and an import begins.
    clock.turn_back(60_000);
    let mut import = begin(&store, "a file");
    import.push(edge(1, 3), None).unwrap();
    import.push(edge(1, 4), Some(Timestamp::from_millis(7))).unwrap();
    // While it takes edges in, the clock goes on, and a pair of the import is followed and unfollowed.
    clock.advance(120_000);
    write(&store, EdgeAction::Follow, edge(1, 3));
    let followed = since(&store, edge(1, 3));
    assert!(followed > newest);
    write(&store, EdgeAction::Unfollow, edge(1, 3));
    clock.turn_back(90_000);
    import.push(edge(5, 6), None).unwrap();
    // Of several lines of one pair the earliest counts.
    import.push(edge(5, 7), Some(clock.now().plus_millis(1_000_000))).unwrap();
    import.push(edge(5, 7), None).unwrap();
    import.finish(&|_| {}).unwrap();
    let imported = since(&store, edge(1, 3));
    assert!(imported > followed, "a re-follow is later: {imported} after {followed}");
    assert_eq!(since(&store, edge(5, 6)), imported);
    assert_eq!(since(&store, edge(5, 7)), imported);
    assert_eq!(since(&store, edge(1, 4)), Timestamp::from_millis(7));
    let at = block_on(store.changes(&Sequence(3).on(Shard::ONLY).into(), 1)).unwrap().changes[0].at;
    assert_eq!(at, imported, "the time of the import");
    assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
}

/// A bar can show how far each phase is.
#[test]
fn every_phase_that_goes_over_the_edges_says_of_how_many() {
    const EDGES: u64 = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::create(&folder.path().join("store"), IdKind::Integer, Settings::default()).unwrap();
    let options = ImportOptions {
        kind: FOLLOW,
        following_limit: None,
        fingerprint: String::new(),
        sort_memory: 32 << 20,
    };
    let mut import = store.import(&options).unwrap();
    // Every other one comes twice.
    for number in 0..EDGES {
        let follower = 1_000 + number / 100;
        import.push(edge(follower, number % 100 / 2), None).unwrap();
    }
    let seen = std::sync::Mutex::new(Vec::new());
    import.finish(&|step| seen.lock().unwrap().push(step)).unwrap();
    let seen = seen.into_inner().unwrap();
    for stage in ["counting", "loading"] {
        let steps: Vec<_> = seen.iter().filter(|step| step.stage == stage).collect();
        assert!(!steps.is_empty(), "{stage}: {seen:?}");
        assert!(steps.iter().all(|step| step.total == Some(EDGES) && step.done <= EDGES), "{steps:?}");
        assert!(steps.iter().any(|step| step.done > EDGES / 2), "duplicates count, too: {steps:?}");
    }
}
