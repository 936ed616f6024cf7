//! `verify` while writes go on, and what it finds in files that were damaged.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kinfolk_conformance::{block_on, write_commands};
use kinfolk_core::comments::{CommentStore, NewComment, Parent, ParentKind};
use kinfolk_core::feeds::{NewPost, PostStore};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand};
use kinfolk_core::{EdgeKind, Id, IdKind, Result};
use kinfolk_embedded::{Embedded, Settings};

use crate::fixtures::try_copy;

/// Writes many edges of different users, in as few requests as possible.
fn write_edges(store: &Embedded, action: EdgeAction, edges: impl Iterator<Item = (u64, u64)>) {
    const COMMANDS: usize = 50_000;
    let command = |(follower, followee)| EdgeCommand {
        action,
        edge: Edge { follower: Id::Integer(follower), followee: Id::Integer(followee) },
    };
    let commands: Vec<EdgeCommand> = edges.map(command).collect();
    for some in commands.chunks(COMMANDS) {
        write_commands(store, EdgeKind::Follow, some, 10_000).unwrap();
    }
}

/// More users change while a pass is under way than differences could ever be held: none of them differs.
#[test]
fn writes_during_a_pass_are_not_differences() {
    const USERS: u64 = 120_000;
    let edges = || (0..USERS).map(|user| (user, user + 1_000_000));
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::create(folder.path(), IdKind::Integer, Settings::default()).unwrap();
    write_edges(&store, EdgeAction::Follow, edges());
    let written = Cell::new(false);
    let report = store
        .verify(false, &|_| {
            if !written.replace(true) {
                write_edges(&store, EdgeAction::Unfollow, edges());
            }
        })
        .unwrap();
    assert!(written.get(), "the pass was long enough to be interrupted");
    assert_eq!((report.difference_count, report.edges), (0, USERS), "{:?}", report.differences);
}

/// A store whose posts and comments all have idempotency keys, merged into one file each.
fn keyed_store(folder: &Path) {
    const EACH: usize = 1_500;
    let store = Embedded::create(folder, IdKind::Integer, Settings::default()).unwrap();
    let author = Id::Integer(1);
    let parent = Parent { kind: ParentKind::Item, id: Id::Integer(7) };
    let key = |number: usize| Some(Arc::from(format!("key {number}")));
    for number in 0..EACH {
        let idempotency_key = key(number);
        let post = NewPost { id: None, author, created_at: None, payload: None, idempotency_key };
        block_on(store.register(post)).unwrap();
        let (body, idempotency_key) = ("text".into(), key(number));
        let comment = NewComment { parent, author, body, reply_to: None, idempotency_key, depth_max: 9 };
        block_on(store.comment(comment)).unwrap();
    }
    store.compact().unwrap();
    store.close().unwrap();
}

fn row_file(tree: &Path) -> PathBuf {
    let files = fs::read_dir(tree.join("tables")).unwrap().map(|entry| entry.unwrap().path());
    let length = |path: &PathBuf| fs::metadata(path).unwrap().len();
    files.max_by_key(length).expect("a tree with rows has a file")
}

/// Rows of idempotency keys are blocks of their own here: a pass that does not read them would not notice.
#[test]
fn a_flipped_bit_in_any_block_of_posts_and_comments_is_found() {
    const APART: usize = 3_000;
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    keyed_store(&whole);
    let check = |path: &Path| -> Result<u64> {
        let store = Embedded::open(path, Settings::default())?;
        Ok(store.verify(false, &|_| {})?.difference_count)
    };
    for tree in ["posts", "comments"] {
        let file = row_file(&whole.join(tree));
        let file = file.strip_prefix(&whole).unwrap();
        let bytes = fs::read(whole.join(file)).unwrap();
        // Behind the rows there are an index and a filter.
        let rows = bytes.len() / 10 * 8;
        assert!(rows > 8 * APART, "{tree} has several blocks");
        for at in (APART / 2..rows).step_by(APART) {
            let copy = folder.path().join("copy");
            try_copy(&whole, &copy).unwrap();
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            fs::write(copy.join(file), damaged).unwrap();
            let found = check(&copy);
            assert!(found.is_err(), "byte {at} of {rows} of {tree}: {found:?}");
            fs::remove_dir_all(&copy).unwrap();
        }
    }
}
