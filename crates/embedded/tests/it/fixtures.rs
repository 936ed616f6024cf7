//! Stores and backups that an earlier version wrote still open. The fixtures are never written anew: a format that
//! changes gets another version and another fixture.
//!
//! Each store has 60 follows from users 1 to 6 to users 100 to 109, one of them removed (1 to 100), a block from 3 to
//! 4, an import of 20 edges from users 200 to 202, and a last follow from 100 to 1. It was left without being closed.
//!
//! A store of format 2 has posts. User 1 has 101 to 110, of which 103 and 108 are deleted, followers 2 to 4, and posts
//! pulled from the third on; user 2 has two posts under the keys "first" and "second". Up to the deletion of 103 all is in
//! row files, the rest only in the log.
//!
//! A store of format 3 has comments. On post 50 of user 1: "first" by user 2 under the key "first"; a reply "second" by user 3, edited to
//! "second, edited" and "second, edited again"; "third", deleted; "fourth", removed as "spam"; "fifth", purged and erased; "sixth", a
//! reply to the second. On item 50: "review" by user 2, and a lock. Up to the first edit all is in row files, the rest only in the log.
//!
//! A store of format 4 was one of format 3: then user 9 removed "sixth" as "rude", and the service "feed-service" purged "third". The
//! removal is in row files, the purge only in the log.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use kinfolk_conformance::block_on;
use kinfolk_core::changes::{ChangeBody, ChangeLog};
use kinfolk_core::comments::{
    CommentChange, CommentId, CommentOrder, CommentStore, CommentThreadState, Moderator, NewComment, Parent,
    ParentKind,
};
use kinfolk_core::feeds::{Delivery, NewPost, PostState, PostStore};
use kinfolk_core::graph::{Edge, EdgeList, Side};
use kinfolk_core::{EdgeKind, Frontier, Id, IdKind, Sequence, Shard, Timestamp};
use kinfolk_embedded::{Embedded, Settings};

const FOLLOW: EdgeKind = EdgeKind::Follow;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub fn copy(from: &Path, to: &Path) {
    try_copy(from, to).unwrap();
}

/// Copies a folder from which files may go meanwhile.
pub fn try_copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            try_copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn id(ids: IdKind, number: u64) -> Id {
    match ids {
        IdKind::Integer => Id::Integer(number),
        IdKind::Uuid => Id::Uuid(u128::from(number) << 64 | 7),
    }
}

fn check(store: &Embedded, ids: IdKind) {
    let id = |number| id(ids, number);
    let edges: Vec<_> = store.edges(FOLLOW).unwrap().map(Result::unwrap).collect();
    assert_eq!(edges.len(), 60 - 1 + 20 + 1);
    assert_eq!(
        edges[0],
        (Edge { follower: id(1), followee: id(101) }, Timestamp::from_millis(1_790_000_000_060))
    );
    assert!(store.follows(EdgeKind::Block, Edge { follower: id(3), followee: id(4) }));
    assert!(!store.follows(FOLLOW, Edge { follower: id(1), followee: id(100) }));
    let page =
        store.list_page(EdgeList { kind: FOLLOW, side: Side::Followers, of: id(1) }, None, 10).unwrap();
    assert_eq!(page.iter().map(|entry| entry.id).collect::<Vec<_>>(), [id(100), id(200)]);
    assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
}

#[test]
fn a_store_of_format_1_opens() {
    for (name, ids) in [("integer", IdKind::Integer), ("uuid", IdKind::Uuid)] {
        let folder = tempfile::tempdir().unwrap();
        copy(&fixture(&format!("format-1/{name}")), folder.path());
        let store = Embedded::open(folder.path(), Settings::default()).unwrap();
        check(&store, ids);
        let changes = block_on(store.changes(Frontier::EMPTY, 1_000)).unwrap().changes;
        assert_eq!(changes.len(), 64);
        assert!(matches!(changes[62].body, ChangeBody::Imported { edges: 20, .. }));
    }
}

#[test]
fn a_store_of_format_1_opens_without_its_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    copy(&fixture("format-1/integer"), folder.path());
    fs::remove_file(folder.path().join("index.snapshot")).unwrap();
    check(&Embedded::open(folder.path(), Settings::default()).unwrap(), IdKind::Integer);
}

#[test]
fn a_backup_of_version_1_restores() {
    for (name, ids) in [("integer.backup", IdKind::Integer), ("uuid.backup", IdKind::Uuid)] {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("restored");
        Embedded::restore(
            &fixture(&format!("format-1/{name}")),
            &target,
            &Settings::default(),
            Timestamp::MAX,
            &|_| {},
        )
        .unwrap();
        check(&Embedded::open(&target, Settings::default()).unwrap(), ids);
    }
}

fn check_posts(store: &Embedded, ids: IdKind) {
    let id = |number| id(ids, number);
    let posts = block_on(store.posts_by(id(1), None, 100, Frontier::EMPTY)).unwrap();
    let expected: Vec<Id> = [110, 109, 107, 106, 105, 104, 102, 101].map(id).into();
    assert_eq!(posts.iter().map(|post| post.id).collect::<Vec<_>>(), expected);
    assert_eq!(posts[0].payload.as_deref(), Some("{\"n\":110}"));
    assert_eq!((posts[7].payload.as_deref(), posts[7].created_at.millis()), (None, 1_780_000_000_101));
    for (number, delivery) in [(105, Delivery::Push), (106, Delivery::Pull)] {
        let state = block_on(store.posts(&[id(number)], Frontier::EMPTY)).unwrap().remove(0);
        assert!(matches!(state, Some(PostState::Present(_, is)) if is == delivery), "{state:?}");
    }
    let gone = PostState::Deleted { author: id(1) };
    assert_eq!(
        block_on(store.posts(&[id(103), id(108)], Frontier::EMPTY)).unwrap(),
        [Some(gone.clone()), Some(gone)]
    );
    let made = block_on(store.posts_by(id(2), None, 100, Frontier::EMPTY)).unwrap();
    assert_eq!(made.len(), 2);
    for (key, post) in [("second", &made[0]), ("first", &made[1])] {
        let idempotency_key = Some(key.into());
        let wish = NewPost { id: None, author: id(2), created_at: None, payload: None, idempotency_key };
        assert_eq!(block_on(store.register(wish)).unwrap().post, *post);
    }
    assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
}

/// Keys of the fixtures must not be too old, whenever the test runs.
fn patient() -> Settings {
    Settings { post_key_keep: Duration::MAX, comment_key_keep: Duration::MAX, ..Settings::default() }
}

#[test]
fn a_store_of_format_2_opens() {
    for ids in [IdKind::Integer, IdKind::Uuid] {
        let folder = tempfile::tempdir().unwrap();
        copy(&fixture("format-2").join(ids.name()), folder.path());
        let store = Embedded::open(folder.path(), patient()).unwrap();
        check_posts(&store, ids);
        let changes = block_on(store.changes(&Sequence(16).on(Shard::ONLY).into(), 10)).unwrap().changes;
        assert!(matches!(changes[0].body, ChangeBody::PostDeleted { id: gone, .. } if gone == id(ids, 108)));
    }
}

#[test]
fn a_backup_of_version_2_restores() {
    for ids in [IdKind::Integer, IdKind::Uuid] {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("restored");
        let file = fixture("format-2").join(ids.name()).with_extension("backup");
        Embedded::restore(&file, &target, &Settings::default(), Timestamp::MAX, &|_| {}).unwrap();
        check_posts(&Embedded::open(&target, patient()).unwrap(), ids);
    }
}

fn check_comments(store: &Embedded, ids: IdKind) {
    let id = |number| id(ids, number);
    let post = Parent::post(id(50));
    let comments =
        block_on(store.comment_thread(post, CommentOrder::Oldest, None, 100, Frontier::EMPTY)).unwrap();
    let told: Vec<(Option<&str>, &str, u32)> = comments
        .iter()
        .map(|comment| (comment.body.as_deref(), comment.status.name(), comment.version))
        .collect();
    let expected = [
        (Some("first"), "active", 1),
        (Some("second, edited again"), "active", 3),
        (Some("third"), "deleted", 1),
        (Some("fourth"), "removed", 1),
        (None, "purged", 1),
        (Some("sixth"), "active", 1),
    ];
    assert_eq!(told, expected);
    assert_eq!((comments[1].reply_to, comments[5].reply_to), (Some(comments[0].id), Some(comments[1].id)));
    assert_eq!((comments[5].depth, comments[0].reply_count, comments[1].reply_count), (2, 1, 1));
    assert_eq!(comments[3].reason.as_deref(), Some("spam"));
    let texts = block_on(store.comment_versions(comments[1].id, 0, 9, Frontier::EMPTY)).unwrap();
    let texts: Vec<&str> = texts.iter().map(|version| &*version.body).collect();
    assert_eq!(texts, ["second", "second, edited", "second, edited again"]);
    let item = Parent { kind: ParentKind::Item, id: id(50) };
    let states = block_on(store.comment_threads(&[post, item], Frontier::EMPTY)).unwrap();
    assert_eq!(
        states,
        [CommentThreadState { count: 3, locked: false }, CommentThreadState { count: 1, locked: true }]
    );
    let by: Vec<CommentId> = block_on(store.comments_by(id(2), None, 9, Frontier::EMPTY))
        .unwrap()
        .iter()
        .map(|comment| comment.id)
        .collect();
    let review = block_on(store.comment_thread(item, CommentOrder::Newest, None, 9, Frontier::EMPTY))
        .unwrap()
        .remove(0)
        .id;
    assert_eq!(by, [review, comments[0].id]);
    let again = NewComment {
        parent: post,
        author: id(2),
        body: "first".into(),
        reply_to: None,
        idempotency_key: Some("first".into()),
        depth_max: 50,
    };
    assert_eq!(block_on(store.comment(again)).unwrap().comment.id, comments[0].id);
    assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
}

#[test]
fn a_store_of_format_3_opens() {
    for ids in [IdKind::Integer, IdKind::Uuid] {
        let folder = tempfile::tempdir().unwrap();
        copy(&fixture("format-3").join(ids.name()), folder.path());
        let store = Embedded::open(folder.path(), patient()).unwrap();
        check_comments(&store, ids);
        let changes = block_on(store.changes(Frontier::EMPTY, 100)).unwrap().changes;
        let texts =
            changes.iter().filter(|change| {
                let ChangeBody::Comment(
                    CommentChange::Written { body, .. } | CommentChange::Edited { body, .. },
                ) = &change.body
                else {
                    return false;
                };
                body.is_some()
            });
        assert_eq!((changes.len(), texts.count()), (14, 4));
    }
}

#[test]
fn a_backup_of_version_3_restores() {
    for ids in [IdKind::Integer, IdKind::Uuid] {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("restored");
        let file = fixture("format-3").join(ids.name()).with_extension("backup");
        Embedded::restore(&file, &target, &Settings::default(), Timestamp::MAX, &|_| {}).unwrap();
        check_comments(&Embedded::open(&target, patient()).unwrap(), ids);
    }
}

fn check_moderators(store: &Embedded, ids: IdKind) {
    let id = |number| id(ids, number);
    let comments = block_on(store.comment_thread(
        Parent::post(id(50)),
        CommentOrder::Oldest,
        None,
        100,
        Frontier::EMPTY,
    ))
    .unwrap();
    let told: Vec<_> = comments
        .iter()
        .map(|comment| (comment.status.name(), comment.body.as_deref(), comment.removed_by.clone()))
        .collect();
    let (user, key) = (Moderator::User(id(9)), Moderator::Service("feed-service".into()));
    let expected = [
        ("active", Some("first"), None),
        ("active", Some("second, edited again"), None),
        ("purged", None, Some(key)),
        // Removed and purged before it was recorded by whom.
        ("removed", Some("fourth"), None),
        ("purged", None, None),
        ("removed", Some("sixth"), Some(user)),
    ];
    assert_eq!(told, expected);
    assert_eq!(comments[5].reason.as_deref(), Some("rude"));
    assert_eq!(
        block_on(store.comment_threads(&[Parent::post(id(50))], Frontier::EMPTY)).unwrap()[0].count,
        2
    );
    assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
}

#[test]
fn a_store_of_format_4_opens() {
    for ids in [IdKind::Integer, IdKind::Uuid] {
        let folder = tempfile::tempdir().unwrap();
        copy(&fixture("format-4").join(ids.name()), folder.path());
        let store = Embedded::open(folder.path(), patient()).unwrap();
        check_moderators(&store, ids);
        let changes = block_on(store.changes(Frontier::EMPTY, 100)).unwrap().changes;
        let told: Vec<_> = changes
            .into_iter()
            .filter_map(|change| match change.body {
                ChangeBody::Comment(CommentChange::Withdrawn { status, by, .. }) => Some((status.name(), by)),
                _ => None,
            })
            .collect();
        let (user, key) = (Moderator::User(id(ids, 9)), Moderator::Service("feed-service".into()));
        let expected = [
            ("purged", None),
            ("deleted", None),
            ("removed", None),
            ("removed", Some(user)),
            ("purged", Some(key)),
        ];
        assert_eq!(told, expected);
    }
}

#[test]
fn a_backup_of_version_4_restores() {
    for ids in [IdKind::Integer, IdKind::Uuid] {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("restored");
        let file = fixture("format-4").join(ids.name()).with_extension("backup");
        Embedded::restore(&file, &target, &Settings::default(), Timestamp::MAX, &|_| {}).unwrap();
        check_moderators(&Embedded::open(&target, patient()).unwrap(), ids);
    }
}
