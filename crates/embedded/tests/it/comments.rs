//! Comments through the port: what holds across restarts, kills and backups.

use std::fs::{self, File};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kinfolk_conformance::block_on;
use kinfolk_core::comments::{
    Comment, CommentEdit, CommentId, CommentOrder, CommentStatus, CommentStore, CommentThreadState,
    CommentWritten, Moderator, NewComment, Parent, ParentKind, Withdrawal,
};
use kinfolk_core::feeds::{NewPost, PostStore};
use kinfolk_core::graph::Edge;
use kinfolk_core::{EdgeKind, Error, Frontier, Id, IdKind, Result, Sequence, Shard, Timestamp};
use kinfolk_embedded::{Embedded, ImportOptions, Settings};

use crate::stores::{Store, busy, in_both_kinds};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

impl Store {
    fn comment(&self, new_comment: NewComment) -> Result<CommentWritten> {
        block_on(self.open.comment(new_comment))
    }

    fn edit(&self, id: CommentId, version: u32, body: &str) -> Comment {
        let edit = CommentEdit { id, version, body: body.into() };
        block_on(self.open.edit_comment(edit)).unwrap().comment
    }

    fn withdraw(&self, id: CommentId, withdrawal: Withdrawal) -> bool {
        self.withdraw_by(id, withdrawal, None)
    }

    fn withdraw_by(&self, id: CommentId, withdrawal: Withdrawal, by: Option<Moderator>) -> bool {
        block_on(self.open.withdraw_comment(id, withdrawal, by)).unwrap().changed
    }

    fn post(&self, author: Id) -> Parent {
        let new_post = NewPost { id: None, author, created_at: None, payload: None, idempotency_key: None };
        Parent::post(block_on(self.open.register(new_post)).unwrap().post.id)
    }
}

fn new_comment(parent: Parent, author: Id, body: &str) -> NewComment {
    NewComment { parent, author, body: body.into(), reply_to: None, idempotency_key: None, depth_max: 50 }
}

fn by_key(parent: Parent, author: Id, key: &str) -> NewComment {
    NewComment { idempotency_key: Some(key.into()), ..new_comment(parent, author, key) }
}

fn comment_thread(store: &Embedded, parent: Parent) -> Vec<Comment> {
    block_on(store.comment_thread(parent, CommentOrder::Oldest, None, 10_000, Frontier::EMPTY)).unwrap()
}

fn state(store: &Embedded, parent: Parent) -> CommentThreadState {
    block_on(store.comment_threads(&[parent], Frontier::EMPTY)).unwrap()[0]
}

/// The first result is answered whatever has become of the comment, the thread and the process.
#[test]
fn a_retry_gets_the_first_result_also_after_a_kill() {
    in_both_kinds(|ids, id| {
        let store = Store::new(ids, busy());
        let parent = store.post(id(1));
        let new_comment = by_key(parent, id(2), "k");
        let first = store.comment(new_comment.clone()).unwrap();
        assert!(first.is_new);
        let repeated = |store: &Store| {
            let again = store.comment(new_comment.clone()).unwrap();
            assert!(!again.is_new);
            again.comment
        };
        assert_eq!(repeated(&store), first.comment);
        assert_eq!(repeated(&store.killed()), first.comment);
        store.comment(NewComment { reply_to: Some(first.comment.id), ..by_key(parent, id(3), "r") }).unwrap();
        store.edit(first.comment.id, 1, "edited");
        store.edit(first.comment.id, 2, "edited again");
        store.withdraw(first.comment.id, Withdrawal::Remove("spam".into()));
        block_on(store.open.lock_comment_thread(parent, true)).unwrap();
        block_on(store.open.delete_post(parent.id)).unwrap();
        assert_eq!(repeated(&store), first.comment);
        let store = store.killed().reopened();
        assert_eq!(repeated(&store), first.comment);
        assert!(store.withdraw(first.comment.id, Withdrawal::Purge));
        let tombstone = repeated(&store.killed());
        assert_eq!((tombstone.status, tombstone.body, tombstone.version), (CommentStatus::Purged, None, 3));
        assert_eq!(tombstone.reply_count, 1);
        store.require_sound();
    });
}

#[test]
fn a_key_is_forgotten_in_the_end() {
    let store = Store::new(IdKind::Integer, busy());
    let parent = Parent { kind: ParentKind::Item, id: Id::Integer(1) };
    let new_comment = by_key(parent, Id::Integer(2), "k");
    store.comment(new_comment.clone()).unwrap();
    store.clock.advance(7 * DAY_MS);
    assert!(!store.comment(new_comment.clone()).unwrap().is_new);
    store.clock.advance(1);
    assert!(store.comment(new_comment).unwrap().is_new);
    assert_eq!(state(&store.open, parent).count, 2);
}

#[test]
fn ids_rise_across_restarts_and_clocks_that_go_back() {
    let mut store = Store::new(IdKind::Integer, busy());
    let parent = Parent { kind: ParentKind::Conversation, id: Id::Integer(1) };
    let mut before = CommentId(0);
    for round in 0..40 {
        let id = store.comment(new_comment(parent, Id::Integer(2), "text")).unwrap().comment.id;
        assert!(id > before && id.0 >> 76 & 0xf == 7 && id.0 >> 62 & 3 == 2, "{id} after {before}");
        before = id;
        store.clock.turn_back(60_000);
        if round % 5 == 0 {
            store = store.killed();
        }
    }
    let ids: Vec<CommentId> = comment_thread(&store.open, parent).iter().map(|comment| comment.id).collect();
    assert!(ids.is_sorted() && ids.len() == 40);
}

/// An older Kinfolk would take comments in the log for damage, so it must not open a store that has some.
#[test]
fn the_first_comment_makes_the_format_newer() {
    let store = Store::new(IdKind::Integer, busy());
    let format = |store: &Store| fs::read_to_string(store.folder.path().join("FORMAT")).unwrap();
    store.follow(Id::Integer(1), Id::Integer(2));
    let missing = Parent::post(Id::Integer(9));
    assert!(matches!(store.comment(new_comment(missing, Id::Integer(1), "a")), Err(Error::NotFound { .. })));
    assert!(format(&store).contains("format 1\n"));
    let parent = store.post(Id::Integer(1));
    assert!(format(&store).contains("format 2\n"));
    let comment = store.comment(new_comment(parent, Id::Integer(1), "a")).unwrap().comment;
    assert!(format(&store).contains("format 3\n"));
    assert_eq!(comment_thread(&store.killed().open, parent), std::slice::from_ref(&comment));
    let store = store.reopened();
    assert!(format(&store).contains("format 3\n"));
    assert_eq!(comment_thread(&store.open, parent), [comment]);

    // Comments without any post.
    let store = Store::new(IdKind::Integer, busy());
    let parent = Parent { kind: ParentKind::Item, id: Id::Integer(1) };
    store.comment(new_comment(parent, Id::Integer(1), "a")).unwrap();
    let store = store.killed();
    assert_eq!(comment_thread(&store.open, parent).len(), 1);
    store.post(Id::Integer(1));
    assert!(format(&store).contains("format 3\n"));
    store.reopened().require_sound();
}

/// An older Kinfolk would take an event with a moderator for damage. Whoever does not record any keeps the format.
#[test]
fn the_first_moderator_makes_the_format_newer() {
    in_both_kinds(|ids, id| {
        let store = Store::new(ids, busy());
        let format = |store: &Store| fs::read_to_string(store.folder.path().join("FORMAT")).unwrap();
        let parent = Parent { kind: ParentKind::Item, id: id(1) };
        let written: Vec<CommentId> =
            (0..4).map(|_| store.comment(new_comment(parent, id(2), "text")).unwrap().comment.id).collect();
        store.withdraw(written[0], Withdrawal::Remove("spam".into()));
        assert!(format(&store).contains("format 3\n"));
        let user = Some(Moderator::User(id(8)));
        store.withdraw_by(written[1], Withdrawal::Remove("spam".into()), user.clone());
        assert!(format(&store).contains("format 4\n"));
        let key = Some(Moderator::Service("feed-service".into()));
        store.withdraw_by(written[2], Withdrawal::Purge, key.clone());
        let moderators = |store: &Store| {
            let found = block_on(store.open.comments(&written, Frontier::EMPTY)).unwrap();
            found.into_iter().map(|comment| comment.unwrap().removed_by).collect::<Vec<_>>()
        };
        let expected = [None, user, key, None];
        assert_eq!(moderators(&store), expected);
        // From the log, and from rows.
        let killed = store.killed();
        assert_eq!(moderators(&killed), expected);
        killed.require_sound();
        let store = store.reopened();
        assert_eq!(moderators(&store), expected);
        assert!(format(&store).contains("format 4\n"));
        store.comment(new_comment(parent, id(2), "later")).unwrap();
        assert_eq!(block_on(store.open.erase_purged()).unwrap(), 1);
        assert_eq!(moderators(&store.reopened()), expected);
    });
}

#[test]
fn many_comments_survive_restarts_and_flushes_with_exact_counts() {
    in_both_kinds(|ids, id| {
        let mut store = Store::new(ids, busy());
        let parents = [store.post(id(1)), store.post(id(1)), Parent { kind: ParentKind::Item, id: id(1) }];
        let mut written: Vec<CommentId> = Vec::new();
        for number in 0..300_usize {
            let parent = parents[number % 3];
            let reply_to = written.len().checked_sub(3).map(|at| written[at]).filter(|_| number % 4 == 3);
            let body = format!("comment {number} ").repeat(number % 9 + 1);
            let new_comment = NewComment { reply_to, ..new_comment(parent, id(number as u64 % 5), &body) };
            match store.comment(new_comment) {
                Ok(new) => written.push(new.comment.id),
                Err(error) => assert!(matches!(error, Error::InvalidReply { .. }), "{error}"),
            }
            if number % 7 == 0 {
                store.withdraw(written[written.len() / 2], Withdrawal::Delete);
            }
            if number % 60 == 59 {
                store = if number % 120 == 59 { store.killed() } else { store.reopened() };
                store.require_sound();
            }
        }
        for parent in parents {
            let comments = comment_thread(&store.open, parent);
            let active = comments.iter().filter(|comment| comment.status == CommentStatus::Active).count();
            assert_eq!(state(&store.open, parent).count, active as u64);
            for comment in &comments {
                let replies = comments.iter().filter(|other| other.reply_to == Some(comment.id)).count();
                assert_eq!(comment.reply_count, replies as u64);
            }
        }
        let all: Vec<Comment> = store.open.all_comments().unwrap().map(Result::unwrap).collect();
        assert_eq!(all.len(), written.len());
    });
}

#[test]
fn a_backup_carries_comments_texts_keys_and_locks() {
    in_both_kinds(|ids, id| {
        let store = Store::new(ids, busy());
        let parents = [store.post(id(1)), Parent { kind: ParentKind::Item, id: id(7) }];
        for number in 0..150 {
            store.comment(by_key(parents[number % 2], id(2), &format!("key {number}"))).unwrap();
        }
        let comments = comment_thread(&store.open, parents[0]);
        let [edited, deleted, removed, purged, ..] = &comments[..] else { panic!("there are more") };
        store.edit(edited.id, 1, "once");
        store.edit(edited.id, 2, "twice");
        store.edit(purged.id, 1, "gone");
        store.withdraw(deleted.id, Withdrawal::Delete);
        let [user, key] = [Moderator::User(id(8)), Moderator::Service("feed-service".into())];
        store.withdraw_by(removed.id, Withdrawal::Remove("spam".into()), Some(user.clone()));
        store.withdraw_by(purged.id, Withdrawal::Purge, Some(key.clone()));
        block_on(store.open.lock_comment_thread(parents[1], true)).unwrap();
        let file = store.folder.path().join("comments.backup");
        let report = store.open.backup(&mut File::create(&file).unwrap(), &|_| {}).unwrap();
        assert_eq!(Embedded::inspect_backup(&file).unwrap(), report);
        assert_eq!((report.posts, report.comments, report.position), (1, 150, Sequence(158).on(Shard::ONLY)));

        let target = tempfile::tempdir().unwrap();
        let path = target.path().join("restored");
        assert_eq!(Embedded::restore(&file, &path, &busy(), Timestamp::MAX, &|_| {}).unwrap(), report);
        let open = Embedded::open_with_clock(&path, busy(), store.clock.clone()).unwrap();
        let look = |store: &Embedded| {
            let threads = parents.map(|parent| (comment_thread(store, parent), state(store, parent)));
            let texts = [edited.id, purged.id]
                .map(|id| block_on(store.comment_versions(id, 0, 99, Frontier::EMPTY)).unwrap());
            (threads, texts, block_on(store.comments_by(id(2), None, 999, Frontier::EMPTY)).unwrap())
        };
        assert_eq!(look(&open), look(&store.open));
        let moderators =
            block_on(open.comments(&[deleted.id, removed.id, purged.id], Frontier::EMPTY)).unwrap();
        let moderators: Vec<_> = moderators.into_iter().map(|comment| comment.unwrap().removed_by).collect();
        assert_eq!(moderators, [None, Some(user), Some(key)]);
        let again = block_on(open.comment(by_key(parents[0], id(2), "key 0"))).unwrap();
        assert_eq!((again.is_new, &again.comment), (false, edited));
        let conflict = NewComment { body: "other".into(), ..by_key(parents[0], id(2), "key 0") };
        assert!(matches!(block_on(open.comment(conflict)), Err(Error::IdempotencyConflict)));
        let locked = block_on(open.comment(new_comment(parents[1], id(2), "late")));
        assert!(matches!(locked, Err(Error::ThreadLocked)));
        let next = block_on(open.comment(new_comment(parents[0], id(2), "new"))).unwrap().comment.id;
        assert!(comments.iter().all(|comment| comment.id < next));
        assert_eq!(open.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
        assert_eq!(block_on(open.erase_purged()).unwrap(), 0, "a restored log has nothing to erase");
        drop(open);

        let whole = fs::read(&file).unwrap();
        for cut in (0..whole.len()).step_by(977) {
            fs::write(&file, &whole[..cut]).unwrap();
            let target = target.path().join("cut");
            Embedded::restore(&file, &target, &busy(), Timestamp::MAX, &|_| {}).unwrap_err();
            assert!(!Embedded::exists(&target));
        }
    });
}

/// Purged texts go while writes and reads of the log go on, and whatever is killed.
#[test]
fn erasing_disturbs_nobody() {
    let settings = Settings { erase_after: Duration::from_secs(3_600), ..busy() };
    let store = Store::new(IdKind::Integer, settings);
    let parent = store.post(Id::Integer(1));
    let written: Vec<CommentId> = (0..100)
        .map(|number| store.comment(by_key(parent, Id::Integer(2), &number.to_string())).unwrap().comment.id)
        .collect();
    let ended = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let (open, ended) = (store.open.clone(), Arc::clone(&ended));
        move || {
            use kinfolk_core::changes::ChangeLog;
            while !ended.load(Ordering::Acquire) {
                let changes = block_on(open.changes(Frontier::EMPTY, 100_000)).unwrap().changes;
                assert!(
                    changes
                        .iter()
                        .zip(1..)
                        .all(|(change, position)| change.position.sequence == Sequence(position))
                );
            }
        }
    });
    for (round, &id) in written.iter().step_by(10).enumerate() {
        store.withdraw(id, Withdrawal::Purge);
        store.comment(by_key(parent, Id::Integer(3), &format!("later {round}"))).unwrap();
        // The reader may hold an old file at that moment; then it is tried again, as the contract says.
        let erased = (0..10_000).find_map(|_| match block_on(store.open.erase_purged()) {
            Err(Error::InUse { .. }) => None,
            erased => Some(erased.unwrap()),
        });
        assert_eq!(erased, Some(1));
        let killed = store.killed();
        killed.require_sound();
        assert_eq!(comment_thread(&killed.open, parent), comment_thread(&store.open, parent));
    }
    ended.store(true, Ordering::Release);
    reader.join().unwrap();
    assert_eq!(state(&store.open, parent).count, 100);
}

/// Reads the begin of a backup, purges a comment, tries to erase it, and leaves.
struct Leaving<'a> {
    store: &'a Store,
    comment: CommentId,
    erased: Option<Result<u64>>,
}

impl Write for Leaving<'_> {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        assert!(self.store.withdraw(self.comment, Withdrawal::Purge));
        self.erased = Some(self.store.open.compact());
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_backup_lets_go_of_what_it_reads_when_its_reader_leaves() {
    let store = Store::new(IdKind::Integer, Settings::default());
    let kind = EdgeKind::Follow;
    let options =
        ImportOptions { kind, following_limit: None, fingerprint: String::new(), sort_memory: 1 << 20 };
    let mut import = store.open.import(&options).unwrap();
    for number in 0..50_000 {
        import.push(Edge { follower: Id::Integer(number), followee: Id::Integer(number + 1) }, None).unwrap();
    }
    import.finish(&|_| {}).unwrap();
    let parent = store.post(Id::Integer(1));
    let comment = store.comment(new_comment(parent, Id::Integer(2), "private")).unwrap().comment.id;
    let mut reader = Leaving { store: &store, comment, erased: None };
    let left = store.open.backup(&mut reader, &|_| {}).unwrap_err();
    assert!(left.to_string().contains("broken pipe"), "{left}");
    assert!(matches!(reader.erased, Some(Err(Error::InUse { .. }))), "it was read: {:?}", reader.erased);
    // Background work may be reading for a moment too.
    let patience = Instant::now() + Duration::from_secs(60);
    let erased = loop {
        match store.open.compact() {
            Err(Error::InUse { .. }) if Instant::now() < patience => {}
            erased => break erased,
        }
    };
    assert_eq!(erased.unwrap(), 1);
}
