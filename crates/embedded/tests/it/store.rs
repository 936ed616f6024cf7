//! Opening, closing, writing and reading: what holds across restarts.

use kinfolk_conformance::write_commands;
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand, EdgeList, Side};
use kinfolk_core::{EdgeKind, Error, Id, IdKind, Timestamp};
use kinfolk_embedded::{Embedded, ImportOptions, Settings};

const FOLLOW: EdgeKind = EdgeKind::Follow;

fn small() -> Settings {
    Settings { segment_bytes: 4 << 10, flush_rows: 300, snapshot_events: 500, ..Settings::default() }
}

fn edge(follower: u64, followee: u64) -> Edge {
    Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) }
}

fn change(store: &Embedded, action: EdgeAction, edge: Edge) -> bool {
    write_commands(store, FOLLOW, &[EdgeCommand { action, edge }], 10_000).unwrap().changed[0]
}

fn follow(store: &Embedded, follower: u64, followee: u64) -> bool {
    change(store, EdgeAction::Follow, edge(follower, followee))
}

fn unfollow(store: &Embedded, follower: u64, followee: u64) -> bool {
    change(store, EdgeAction::Unfollow, edge(follower, followee))
}

#[test]
fn everything_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Embedded::create(&path, IdKind::Integer, small()).unwrap();
    for round in 0..3_000u64 {
        assert!(follow(&store, round % 50, 100 + round));
        if round % 3 == 0 {
            assert!(unfollow(&store, round % 50, 100 + round));
        }
    }
    let before: Vec<_> = store.edges(FOLLOW).unwrap().map(Result::unwrap).collect();
    store.close().unwrap();
    for _ in 0..2 {
        let store = Embedded::open(&path, small()).unwrap();
        let after: Vec<_> = store.edges(FOLLOW).unwrap().map(Result::unwrap).collect();
        assert_eq!(before, after);
        assert_eq!(store.edge_count(FOLLOW), 2_000);
        let report = store.verify(false, &|_| {}).unwrap();
        assert_eq!(report.differences, Vec::<String>::new());
        assert_eq!(report.edges, 2_000);
        assert!(store.follows(FOLLOW, edge(1, 101)));
        assert!(!store.follows(FOLLOW, edge(0, 100)));
        store.close().unwrap();
    }
}

#[test]
fn an_import_merges_with_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Embedded::create(&path, IdKind::Integer, small()).unwrap();
    follow(&store, 1, 2);
    let options = || ImportOptions {
        kind: FOLLOW,
        following_limit: Some(3),
        fingerprint: "test".into(),
        sort_memory: 0,
    };
    let mut import = store.import(&options()).unwrap();
    for (a, b) in [(1, 2), (1, 3), (1, 3), (1, 4), (1, 5), (7, 7), (9, 1)] {
        import.push(edge(a, b), None).unwrap();
    }
    let report = import.finish(&|_| {}).unwrap();
    assert_eq!((report.added, report.duplicates, report.over_limit, report.self_follows), (3, 2, 1, 1));
    assert!(follow(&store, 9, 2));
    let list = store
        .list_page(EdgeList { kind: FOLLOW, side: Side::Followers, of: Id::Integer(1) }, None, 10)
        .unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
    store.close().unwrap();
    let store = Embedded::open(&path, small()).unwrap();
    assert_eq!(store.edge_count(FOLLOW), 5);
    assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
}

/// A start that has applied an import and could not write the index leaves a snapshot that no log can bring up to date.
#[test]
fn a_snapshot_from_before_an_import_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let (path, snapshot) = (folder.path().join("store"), folder.path().join("store/index.snapshot"));
    let store = Embedded::create(&path, IdKind::Integer, small()).unwrap();
    let import = |store: &Embedded, name: &str, edges: std::ops::Range<u64>| {
        let (fingerprint, sort_memory) = (name.into(), 0);
        let options = ImportOptions { kind: FOLLOW, following_limit: None, fingerprint, sort_memory };
        let mut import = store.import(&options).unwrap();
        edges.for_each(|n| import.push(edge(n, n + 1), None).unwrap());
        import.finish(&|_| {}).unwrap();
    };
    import(&store, "first", 1..10);
    let before = std::fs::read(&snapshot).unwrap();
    follow(&store, 1, 100);
    import(&store, "second", 20..40);
    follow(&store, 1, 101);
    store.close().unwrap();
    std::fs::write(&snapshot, before).unwrap();
    for _ in 0..2 {
        let store = Embedded::open(&path, small()).unwrap();
        assert_eq!(store.edge_count(FOLLOW), 31);
        assert!(store.follows(FOLLOW, edge(39, 40)) && store.follows(FOLLOW, edge(1, 101)));
        assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
        store.close().unwrap();
    }
}

#[test]
fn a_backup_restores_to_the_same_edges() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::create(&folder.path().join("store"), IdKind::Integer, small()).unwrap();
    for n in 0..500 {
        follow(&store, n % 20, 1_000 + n);
    }
    let file = folder.path().join("backup");
    let report = store.backup(&mut std::fs::File::create(&file).unwrap(), &|_| {}).unwrap();
    assert_eq!(Embedded::inspect_backup(&file).unwrap(), report);
    let whole = std::fs::read(&file).unwrap();
    let cut = folder.path().join("cut");
    for length in [0, 43, 44, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&cut, &whole[..length]).unwrap();
        assert!(Embedded::inspect_backup(&cut).is_err(), "cut at {length}");
    }
    assert_eq!(report.edges, 500);
    let path = folder.path().join("restored");
    Embedded::restore(&file, &path, &small(), Timestamp::MAX, &|_| {}).unwrap();
    let restored = Embedded::open(&path, small()).unwrap();
    let edges = |store: &Embedded| store.edges(FOLLOW).unwrap().map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(edges(&store), edges(&restored));
    assert_eq!(restored.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
    assert!(follow(&restored, 1, 2));
    drop(restored);

    let whole = std::fs::read(&file).unwrap();
    for cut in (0..whole.len()).step_by(211) {
        std::fs::write(&file, &whole[..cut]).unwrap();
        let target = folder.path().join("damaged");
        let error = Embedded::restore(&file, &target, &small(), Timestamp::MAX, &|_| {}).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. } | Error::InvalidInput { .. }), "{error}");
        assert!(!Embedded::exists(&target));
    }
}

#[test]
fn two_processes_cannot_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Embedded::create(&path, IdKind::Integer, small()).unwrap();
    assert!(matches!(Embedded::open(&path, small()).err(), Some(Error::InUse { .. })));
    drop(store);
    Embedded::open(&path, small()).unwrap();
}
