//! A real graph, where there is one: every edge, both lists and all counts agree with the file. What is found in it,
//! overlaps and suggestions, is compared in `suggestions`.

mod brute;
mod suggestions;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kinfolk_core::graph::{Edge, EdgeList, ListKey, Side};
use kinfolk_core::{EdgeKind, Id, Timestamp};
use kinfolk_embedded::{Embedded, Settings};

use crate::support::Sandbox;

const KIND: EdgeKind = EdgeKind::Follow;

/// The real file, or a small generated one of the same form.
fn graph_file(sandbox: &Sandbox) -> PathBuf {
    let real =
        std::env::var_os("KINFOLK_TEST_DATA").map(|folder| Path::new(&folder).join("ego-twitter.tsv.zst"));
    if let Some(real) = real.filter(|path| path.exists()) {
        return real;
    }
    println!("no data in KINFOLK_TEST_DATA: a small generated graph takes its place");
    sandbox.ok("generate small.csv.zst --edges 50000 --users 4000 --seed 3");
    sandbox.path("small.csv.zst")
}

fn read_edges(path: &Path) -> Vec<(u64, u64)> {
    let bytes = zstd::decode_all(fs::File::open(path).unwrap()).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let pair = |line: &str| {
        let (follower, followee) = line.split_once(['\t', ','])?;
        Some((follower.parse().ok()?, followee.parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

#[test]
fn every_edge_list_and_count_agrees_with_the_file() {
    let sandbox = Sandbox::new();
    let file = graph_file(&sandbox);
    let edges = read_edges(&file);
    let report = sandbox.json(&format!("import {} --no-limit", file.display()));
    assert_eq!(report["added"], edges.len());
    assert_eq!((&report["duplicates"], &report["self_follows"]), (&0.into(), &0.into()));
    let verified = sandbox.json("verify");
    assert_eq!((&verified["edges"], &verified["difference_count"]), (&edges.len().into(), &0.into()));

    let mut lists: [BTreeMap<u64, Vec<u64>>; 2] = Default::default();
    for &(follower, followee) in &edges {
        lists[0].entry(follower).or_default().push(followee);
        lists[1].entry(followee).or_default().push(follower);
    }
    // Before the store is opened here: a process that another test starts meanwhile would share its lock for a moment.
    check_counts(&sandbox, &lists);
    let store = Embedded::open(&sandbox.path("kinfolk-data"), Settings::default()).unwrap();
    for &(follower, followee) in &edges {
        assert!(
            store.follows(KIND, Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) })
        );
    }
    for (side, lists) in [Side::Following, Side::Followers].into_iter().zip(&mut lists) {
        for (&user, list) in lists {
            // All have the time of the import, so the order is that of ids from high to low.
            list.sort_unstable_by(|a, b| b.cmp(a));
            assert_eq!(&walk(&store, side, user), list, "{side:?} of {user}");
        }
    }
    let exported: Vec<(Edge, Timestamp)> = store.edges(KIND).unwrap().map(Result::unwrap).collect();
    let mut sorted = edges.clone();
    sorted.sort_unstable();
    assert!(exported.iter().map(|(edge, _)| pair(*edge)).eq(sorted), "the export is the file, sorted");
    store.close().unwrap();
}

fn pair(edge: Edge) -> (u64, u64) {
    match (edge.follower, edge.followee) {
        (Id::Integer(follower), Id::Integer(followee)) => (follower, followee),
        _ => panic!("{edge:?} is not of integers"),
    }
}

fn walk(store: &Embedded, side: Side, user: u64) -> Vec<u64> {
    let mut ids = Vec::new();
    let mut after: Option<ListKey> = None;
    loop {
        let page =
            store.list_page(EdgeList { kind: KIND, side, of: Id::Integer(user) }, after, 1_000).unwrap();
        for entry in &page {
            match entry.id {
                Id::Integer(id) => ids.push(id),
                Id::Uuid(_) => panic!("{} is not an integer", entry.id),
            }
        }
        after = page.last().copied();
        if page.len() < 1_000 {
            return ids;
        }
    }
}

/// Asks for all counts through the command line, some thousand users a run.
fn check_counts(sandbox: &Sandbox, [following, followers]: &[BTreeMap<u64, Vec<u64>>; 2]) {
    let users: Vec<u64> = following.keys().chain(followers.keys()).copied().collect();
    let length = |lists: &BTreeMap<u64, Vec<u64>>, user: &u64| lists.get(user).map_or(0, Vec::len);
    for users in users.chunks(10_000) {
        let line: String = users.iter().map(|user| format!(" {user}")).collect();
        let counts = sandbox.json(&format!("counts 0{line}"));
        for (user, item) in users.iter().zip(&counts["items"].as_array().unwrap()[1..]) {
            let expected = serde_json::json!({
                "id": user.to_string(),
                "following": length(following, user),
                "followers": length(followers, user),
            });
            assert_eq!(item, &expected);
        }
    }
}
