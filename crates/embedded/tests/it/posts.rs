//! Posts through the ports: what holds across restarts, kills, torn ends and backups.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kinfolk_conformance::{Model, block_on, write_commands};
use kinfolk_core::changes::{ChangeBody, ChangeLog};
use kinfolk_core::feeds::{Delivery, NewPost, Post, PostKey, PostState, PostStore, PostWritten};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand, EdgeStore};
use kinfolk_core::{Clock, EdgeKind, Error, Frontier, Id, IdKind, Result, Sequence, Shard, Timestamp};
use kinfolk_embedded::{Embedded, ImportOptions, Settings};

use crate::fixtures::copy;
use crate::stores::{Store, busy, in_both_kinds};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

impl Store {
    fn register(&self, new_post: NewPost) -> Result<PostWritten> {
        block_on(self.open.register(new_post))
    }

    fn delete(&self, id: Id) -> Result<bool> {
        block_on(self.open.delete_post(id)).map(|removed| removed.changed)
    }

    fn state(&self, id: Id) -> Option<PostState> {
        block_on(self.open.posts(&[id], Frontier::EMPTY)).unwrap().remove(0)
    }

    /// All posts of an author, walked in pages of two.
    fn walk(&self, author: Id) -> Vec<Post> {
        let (mut posts, mut after): (Vec<Post>, Option<PostKey>) = (Vec::new(), None);
        loop {
            let page = block_on(self.open.posts_by(author, after, 2, Frontier::EMPTY)).unwrap();
            after = page.last().map(Post::key);
            posts.extend_from_slice(&page);
            if page.len() < 2 {
                return posts;
            }
        }
    }
}

fn new_post(author: Id) -> NewPost {
    NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None }
}

fn by_id(author: Id, id: Id) -> NewPost {
    NewPost { id: Some(id), ..new_post(author) }
}

fn by_key(author: Id, key: &str) -> NewPost {
    NewPost { idempotency_key: Some(key.into()), ..new_post(author) }
}

#[test]
fn a_post_is_registered_once_whatever_happens_to_the_process() {
    in_both_kinds(|ids, id| {
        let store = Store::new(ids, Settings::default());
        let payload = Some(Arc::from("{\"text\":\"hello\"}"));
        let given = NewPost { payload: payload.clone(), ..by_id(id(1), id(70)) };
        let keyed = NewPost { payload, ..by_key(id(1), "first") };
        let first = store.register(given.clone()).unwrap();
        let second = store.register(keyed.clone()).unwrap();
        assert!(first.is_new && second.is_new);
        let gone = store.register(by_key(id(1), "gone")).unwrap().post.id;
        assert!(store.delete(gone).unwrap());
        let check = |store: &Store| {
            for (new_post, posted) in [(&given, &first), (&keyed, &second)] {
                let again = store.register(new_post.clone()).unwrap();
                assert_eq!((again.is_new, &again.post), (false, &posted.post));
                assert_eq!(again.position.sequence, Sequence(4));
            }
            let other = NewPost { payload: None, ..given.clone() };
            assert!(matches!(store.register(other), Err(Error::PostConflict { .. })));
            let other = NewPost { author: id(2), ..given.clone() };
            assert!(matches!(store.register(other), Err(Error::PostConflict { .. })));
            let other = NewPost { created_at: Some(Timestamp::MIN), ..given.clone() };
            assert!(matches!(store.register(other), Err(Error::PostConflict { .. })));
            let other = NewPost { id: Some(id(70)), ..keyed.clone() };
            assert!(matches!(store.register(other), Err(Error::PostConflict { .. })));
            let other = NewPost { id: Some(id(71)), ..keyed.clone() };
            assert!(matches!(store.register(other), Err(Error::PostConflict { .. })));
            for deleted in [by_id(id(1), gone), by_key(id(1), "gone")] {
                assert!(matches!(store.register(deleted), Err(Error::PostDeleted { .. })));
            }
            assert!(!store.delete(gone).unwrap());
            assert!(matches!(store.delete(id(404)), Err(Error::NotFound { .. })));
            assert_eq!(store.state(gone), Some(PostState::Deleted { author: id(1) }));
            assert_eq!(
                store.state(first.post.id),
                Some(PostState::Present(first.post.clone(), Delivery::Push))
            );
            assert_eq!(store.state(id(404)), None);
            assert_eq!(store.walk(id(1)).len(), 2);
            assert_eq!(store.open.stats().newest, Sequence(4));
            store.require_sound();
        };
        check(&store);
        check(&store.killed());
        let store = store.reopened();
        check(&store);
        store.open.compact().unwrap();
        check(&store);
        check(&store.killed());
        check(&store.reopened());
    });
}

#[test]
fn a_key_belongs_to_its_author_and_is_forgotten_in_the_end() {
    let keep = Duration::from_millis(7 * DAY_MS);
    let store = Store::new(IdKind::Integer, Settings { post_key_keep: keep, ..Settings::default() });
    let first = store.register(by_key(Id::Integer(1), "same")).unwrap();
    let second = store.register(by_key(Id::Integer(2), "same")).unwrap();
    assert!(second.is_new && second.post.id > first.post.id);
    store.clock.advance(7 * DAY_MS);
    let store = store.reopened();
    assert!(!store.register(by_key(Id::Integer(1), "same")).unwrap().is_new);
    store.clock.advance(1);
    let third = store.register(by_key(Id::Integer(1), "same")).unwrap();
    assert!(third.is_new);
    // What is merged away now is what counts for nothing: the other author's key, and the first's older one.
    store.open.compact().unwrap();
    assert_eq!(store.register(by_key(Id::Integer(1), "same")).unwrap().post, third.post);
    let store = store.reopened();
    assert_eq!(store.register(by_key(Id::Integer(1), "same")).unwrap().post, third.post);
    assert!(store.register(by_key(Id::Integer(2), "same")).unwrap().is_new);
    assert_eq!(store.walk(Id::Integer(1)).len(), 2);
}

#[test]
fn made_ids_rise_across_restarts_and_clocks_that_go_back() {
    in_both_kinds(|ids, id| {
        let mut store = Store::new(ids, Settings::default());
        let mut newest = None;
        for round in 0..6 {
            for _ in 0..20 {
                let made = store.register(new_post(id(1))).unwrap().post.id;
                assert!(Some(made) > newest, "{made} after {newest:?}");
                newest = Some(made);
            }
            match round % 3 {
                0 => store.clock.turn_back(DAY_MS),
                1 => store.clock.advance(1),
                _ => store.clock.turn_back(1),
            }
            if round == 2 {
                store.open.compact().unwrap();
            }
            store = if round % 2 == 0 { store.killed() } else { store.reopened() };
        }
    });
}

#[test]
fn ids_that_clients_gave_are_not_made_again() {
    let store = Store::new(IdKind::Integer, Settings::default());
    let Id::Integer(made) = store.register(new_post(Id::Integer(1))).unwrap().post.id else {
        panic!("the store has integer ids");
    };
    store.register(by_id(Id::Integer(1), Id::Integer(made + 1))).unwrap();
    store.register(by_id(Id::Integer(1), Id::Integer(made + 2))).unwrap();
    store.delete(Id::Integer(made + 2)).unwrap();
    assert_eq!(store.register(new_post(Id::Integer(1))).unwrap().post.id, Id::Integer(made + 3));
}

#[test]
fn backdated_posts_and_posts_of_one_millisecond_are_in_order() {
    in_both_kinds(|ids, id| {
        let store = Store::new(ids, busy());
        let now = store.clock.now();
        let mut expected = Vec::new();
        for (number, age) in (100..).zip([0, 0, 5, 0, 9, 9, 5, 3, 9, 0, 1]) {
            let created_at = Some(Timestamp::from_millis(now.millis() - age));
            let post = store.register(NewPost { created_at, ..by_id(id(1), id(number)) }).unwrap().post;
            expected.push(post);
            store.register(new_post(id(2))).unwrap();
        }
        let epoch = NewPost { created_at: Some(Timestamp::MIN), ..new_post(id(1)) };
        expected.push(store.register(epoch).unwrap().post);
        expected.sort_by_key(Post::key);
        assert_eq!(store.walk(id(1)), expected);
        let removed = expected.remove(4);
        store.delete(removed.id).unwrap();
        assert_eq!(store.walk(id(1)), expected);
        let store = store.reopened();
        assert_eq!(store.walk(id(1)), expected);
        store.require_sound();

        let ahead = |millis| Some(store.clock.now().plus_millis(millis));
        let late = NewPost { created_at: ahead(5 * 60 * 1_000), ..new_post(id(1)) };
        assert_eq!(store.register(late).unwrap().post, store.walk(id(1))[0]);
        let later = NewPost { created_at: ahead(5 * 60 * 1_000 + 1), ..new_post(id(1)) };
        assert!(matches!(store.register(later), Err(Error::PostInFuture { .. })));
    });
}

#[test]
fn delivery_is_decided_by_the_followers_at_that_moment() {
    let store = Store::new(IdKind::Integer, busy());
    let author = Id::Integer(1);
    let delivery = |store: &Store| match store.state(store.register(new_post(author)).unwrap().post.id) {
        Some(PostState::Present(_, delivery)) => delivery,
        other => panic!("the post is {other:?}"),
    };
    store.follow(Id::Integer(2), author);
    store.follow(Id::Integer(3), author);
    let pushed = store.register(new_post(author)).unwrap().post;
    store.follow(Id::Integer(4), author);
    assert_eq!(delivery(&store), Delivery::Pull);
    let edge = Edge { follower: Id::Integer(4), followee: author };
    let commands = vec![EdgeCommand { action: EdgeAction::Unfollow, edge }];
    write_commands(&store.open, EdgeKind::Follow, &commands, 9).unwrap();
    assert_eq!(delivery(&store), Delivery::Push);
    let store = store.reopened();
    assert_eq!(store.state(pushed.id), Some(PostState::Present(pushed, Delivery::Push)));
    assert_eq!(delivery(&store), Delivery::Push);
}

/// Follows and posts that wait together are decided one after the other, visible or not.
#[test]
fn of_concurrent_wishes_one_is_first() {
    let store = Store::new(IdKind::Integer, busy());
    let author = Id::Integer(1);
    for round in 0..20u64 {
        let posted: Vec<PostWritten> = std::thread::scope(|scope| {
            let new_post = || store.register(by_key(author, &format!("key {round}"))).unwrap();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(new_post)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(posted.iter().filter(|posted| posted.is_new).count(), 1);
        assert!(posted.iter().all(|other| other.post == posted[0].post));
        let removed: usize = std::thread::scope(|scope| {
            let delete = || usize::from(store.delete(posted[0].post.id).unwrap());
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(delete)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(removed, 1);
    }
    assert_eq!(store.open.stats().newest, Sequence(40));
    store.require_sound();
}

#[test]
fn posts_are_changes_among_others() {
    let store = Store::new(IdKind::Integer, busy());
    store.follow(Id::Integer(2), Id::Integer(1));
    let created_at = Some(Timestamp::from_millis(77));
    let post = store.register(NewPost { created_at, ..new_post(Id::Integer(1)) }).unwrap().post;
    store.delete(post.id).unwrap();
    let Post { id, author, created_at, .. } = post;
    let expected = [
        ChangeBody::Posted { post, delivery: Delivery::Push },
        ChangeBody::PostDeleted { id, author, created_at },
    ];
    for store in [store.killed(), store.reopened()] {
        let changes = block_on(store.open.changes(&Sequence(1).on(Shard::ONLY).into(), 10)).unwrap().changes;
        assert_eq!(changes.iter().map(|change| change.body.clone()).collect::<Vec<_>>(), expected);
        assert!(changes.iter().all(|change| change.at == store.clock.now()));
    }
}

/// Hundreds of long payloads, with flushes, merges and segments of the log in between.
#[test]
fn many_posts_survive_restarts_flushes_and_imports() {
    in_both_kinds(|ids, id| {
        let mut store = Store::new(ids, busy());
        let mut expected = Vec::new();
        for number in 0..300 {
            let payload = Some(Arc::from("p".repeat(number as usize * 4_096 / 299)));
            expected
                .push(store.register(NewPost { payload, ..by_id(id(1), id(1_000 + number)) }).unwrap().post);
            if number % 3 == 0 {
                store.delete(expected.remove(0).id).unwrap();
            }
            if number % 7 == 0 {
                store.follow(id(number + 2), id(1));
            }
            if number % 100 == 50 {
                let options = ImportOptions {
                    kind: EdgeKind::Follow,
                    following_limit: None,
                    fingerprint: number.to_string(),
                    sort_memory: 0,
                };
                let mut import = store.open.import(&options).unwrap();
                import.push(Edge { follower: id(5_000 + number), followee: id(1) }, None).unwrap();
                import.finish(&|_| {}).unwrap();
            }
            if number % 60 == 59 {
                store = store.reopened();
            }
        }
        expected.sort_by_key(Post::key);
        assert_eq!(store.walk(id(1)), expected);
        store.require_sound();
        store.open.compact().unwrap();
        let store = store.reopened();
        assert_eq!(store.walk(id(1)), expected);
        store.require_sound();
    });
}

/// What was never acknowledged may be torn: then it did not happen.
#[test]
fn a_torn_end_of_the_log_takes_only_what_was_not_acknowledged() {
    let store = Store::new(IdKind::Integer, Settings::default());
    let kept = store.register(new_post(Id::Integer(1))).unwrap().post;
    let (before, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    copy(store.folder.path(), before.path());
    let torn = NewPost { payload: Some(Arc::from("x".repeat(4_096))), ..by_key(Id::Integer(1), "torn") };
    let lost = store.register(torn.clone()).unwrap().post;
    copy(store.folder.path(), after.path());
    let segment = Path::new("log/00000000000000000001.segment");
    let (old, new) =
        (fs::read(before.path().join(segment)).unwrap(), fs::read(after.path().join(segment)).unwrap());
    let start = (0..new.len()).find(|&at| new[at] != old[at]).unwrap();
    let end = (0..new.len()).rfind(|&at| new[at] != old[at]).unwrap();
    for written in [1, 7, 60, 1_000, end - start] {
        let folder = tempfile::tempdir().unwrap();
        copy(before.path(), folder.path());
        let mut bytes = old.clone();
        bytes[start..start + written].copy_from_slice(&new[start..start + written]);
        fs::write(folder.path().join(segment), &bytes).unwrap();
        let clock: Arc<dyn Clock> = store.clock.clone();
        let open = Embedded::open_with_clock(folder.path(), Settings::default(), clock).unwrap();
        assert_eq!(
            block_on(open.posts_by(Id::Integer(1), None, 9, Frontier::EMPTY)).unwrap(),
            std::slice::from_ref(&kept)
        );
        assert_eq!(block_on(open.posts(&[lost.id], Frontier::EMPTY)).unwrap(), [None]);
        let again = block_on(open.register(torn.clone())).unwrap();
        assert!(again.is_new && again.post.id > kept.id);
    }
    fs::copy(before.path().join(segment), after.path().join(segment)).unwrap();
    let refused = Embedded::open(after.path(), Settings::default()).err();
    assert!(matches!(refused, Some(Error::Corrupt { .. })), "an acknowledged post is missed");
}

#[test]
fn lost_posts_are_noticed() {
    let store = Store::new(IdKind::Integer, busy());
    store.register(new_post(Id::Integer(1))).unwrap();
    store.open.compact().unwrap();
    let folder = tempfile::tempdir().unwrap();
    copy(store.folder.path(), folder.path());
    fs::remove_dir_all(folder.path().join("posts")).unwrap();
    let refused = Embedded::open(folder.path(), busy()).err();
    let detail = refused.map(|error| error.to_string()).unwrap_or_default();
    assert!(detail.contains("had been stored up to 1: restore from a backup"), "{detail}");
}

/// An older Kinfolk would take posts in the log for damage, so it must not open a store that has some.
#[test]
fn the_first_post_makes_the_format_newer() {
    let store = Store::new(IdKind::Integer, busy());
    let format = |store: &Store| fs::read_to_string(store.folder.path().join("FORMAT")).unwrap();
    store.follow(Id::Integer(1), Id::Integer(2));
    let store = store.reopened();
    assert!(format(&store).contains("format 1\n"));
    let before = tempfile::tempdir().unwrap();
    copy(store.folder.path(), before.path());
    let future = NewPost { created_at: Some(Timestamp::MAX), ..new_post(Id::Integer(1)) };
    store.register(future).unwrap_err();
    assert!(format(&store).contains("format 1\n"));
    let post = store.register(new_post(Id::Integer(1))).unwrap().post;
    assert!(format(&store).contains("format 2\n"));
    assert_eq!(store.killed().walk(Id::Integer(1)), std::slice::from_ref(&post));

    // Killed between making room for posts and saying so: nothing was posted yet, and it can be done again.
    copy(&store.folder.path().join("posts"), &before.path().join("posts"));
    let clock: Arc<dyn Clock> = store.clock.clone();
    let open = Embedded::open_with_clock(before.path(), busy(), clock).unwrap();
    assert_eq!(block_on(open.posts_by(Id::Integer(1), None, 9, Frontier::EMPTY)).unwrap(), []);
    assert!(block_on(open.register(new_post(Id::Integer(1)))).unwrap().is_new);
    drop(open);
    let open = Embedded::open(before.path(), busy()).unwrap();
    assert_eq!(block_on(open.posts_by(Id::Integer(1), None, 9, Frontier::EMPTY)).unwrap().len(), 1);

    assert_eq!(store.reopened().walk(Id::Integer(1)), [post]);
}

#[test]
fn a_backup_carries_posts_deletions_and_keys() {
    in_both_kinds(|ids, id| {
        let store = Store::new(ids, busy());
        (2..6).for_each(|follower| store.follow(id(follower), id(1)));
        for number in 0..200 {
            let author = id(number % 3 + 1);
            let payload = (number % 2 == 0).then(|| Arc::from(format!("{{\"number\":{number}}}").repeat(40)));
            store.register(NewPost { payload, ..by_key(author, &format!("key {number}")) }).unwrap();
        }
        let gone = store.walk(id(1))[3].id;
        store.delete(gone).unwrap();
        let file = store.folder.path().join("posts.backup");
        let report = store.open.backup(&mut File::create(&file).unwrap(), &|_| {}).unwrap();
        assert_eq!(Embedded::inspect_backup(&file).unwrap(), report);
        assert_eq!((report.edges, report.position), (4, Sequence(205).on(Shard::ONLY)));
        let later = store.register(by_key(id(1), "later")).unwrap().post.id;

        let target = tempfile::tempdir().unwrap();
        let path = target.path().join("restored");
        Embedded::restore(&file, &path, &busy(), Timestamp::MAX, &|_| {}).unwrap();
        let open = Embedded::open_with_clock(&path, busy(), store.clock.clone()).unwrap();
        assert_eq!(
            block_on(open.posts(&[gone, later], Frontier::EMPTY)).unwrap(),
            [Some(PostState::Deleted { author: id(1) }), None]
        );
        for author in [id(2), id(3)] {
            assert_eq!(
                block_on(open.posts_by(author, None, 1_000, Frontier::EMPTY)).unwrap(),
                store.walk(author)
            );
        }
        let pulled = block_on(open.posts_by(id(1), None, 1_000, Frontier::EMPTY)).unwrap();
        assert_eq!(pulled, store.walk(id(1))[1..]);
        assert!(matches!(
            block_on(open.posts(&[pulled[0].id], Frontier::EMPTY)).unwrap()[0],
            Some(PostState::Present(_, Delivery::Pull))
        ));
        let known = NewPost { payload: pulled[0].payload.clone(), ..by_id(id(1), pulled[0].id) };
        assert!(!block_on(open.register(known)).unwrap().is_new);
        let conflict =
            block_on(open.register(NewPost { payload: Some(Arc::from("1")), ..by_key(id(1), "key 0") }));
        assert!(matches!(conflict, Err(Error::PostConflict { .. })));
        let next = block_on(open.register(new_post(id(1)))).unwrap().post.id;
        assert!(pulled.iter().all(|post| post.id < next));
        assert_eq!(open.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
        drop(open);
        let open = Embedded::open(&path, busy()).unwrap();
        assert_eq!(
            block_on(open.posts_by(id(1), None, 1_000, Frontier::EMPTY)).unwrap().len(),
            pulled.len() + 1
        );
        assert_eq!(
            block_on(open.counts(EdgeKind::Follow, &[id(1)], Frontier::EMPTY)).unwrap()[0].followers,
            4
        );

        let whole = fs::read(&file).unwrap();
        for cut in (0..whole.len()).step_by(977) {
            fs::write(&file, &whole[..cut]).unwrap();
            let target = target.path().join("cut");
            Embedded::restore(&file, &target, &busy(), Timestamp::MAX, &|_| {}).unwrap_err();
            assert!(!Embedded::exists(&target));
        }
    });
}

#[test]
fn a_backup_is_as_of_one_position_while_writes_go_on() {
    let store = Store::new(IdKind::Integer, busy());
    let post = |number: u64| {
        let author = Id::Integer(number % 5 + 1);
        let id = store.register(by_key(author, &number.to_string())).unwrap().post.id;
        if number.is_multiple_of(3) {
            store.delete(id).unwrap();
        }
        store.follow(Id::Integer(1_000 + number), author);
    };
    (0..200).for_each(post);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| (200..).take_while(|_| !done.load(Ordering::Acquire)).for_each(post));
        for number in 0..5 {
            let (file, folder) =
                (store.folder.path().join(format!("{number}.backup")), tempfile::tempdir().unwrap());
            let position = store.open.backup(&mut File::create(&file).unwrap(), &|_| {}).unwrap().position;
            let changes =
                block_on(store.open.changes(Frontier::EMPTY, position.sequence.0 as usize)).unwrap().changes;
            let model = Model::replay(changes);
            let path = folder.path().join("restored");
            Embedded::restore(&file, &path, &busy(), Timestamp::MAX, &|_| {}).unwrap();
            let open = Embedded::open(&path, busy()).unwrap();
            for author in (1..=5).map(Id::Integer) {
                let posts = block_on(open.posts_by(author, None, 10_000, Frontier::EMPTY)).unwrap();
                assert_eq!(posts, model.posts_by(author, None, 10_000));
                let followers = model.counts(EdgeKind::Follow, author).followers;
                assert_eq!(
                    block_on(open.counts(EdgeKind::Follow, &[author], Frontier::EMPTY)).unwrap()[0].followers,
                    followers
                );
            }
            assert_eq!(open.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
        }
        done.store(true, Ordering::Release);
    });
}
