//! The embedded store passes all that any store must pass.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_conformance::{
    BACKFILL_POSTS, FAN_OUT_THRESHOLD, INBOX_ENTRIES, SEED, comment_histories, comment_restarts,
    concurrent_comments, concurrent_feeds, concurrent_histories, feed_histories, feed_restarts, histories,
    suite,
};
use kinfolk_core::{Clock, IdKind};
use kinfolk_embedded::{Embedded, Settings};
use tempfile::TempDir;

use crate::stores::copy_of_a_moment;

/// Makes stores, one after another, small enough that every background step happens.
#[derive(Default)]
struct Stores {
    /// Where the newest store is, and its clock.
    newest: RefCell<Option<(TempDir, Arc<dyn Clock>)>>,
    turn: Cell<u32>,
}

impl Stores {
    fn settings() -> Settings {
        Settings {
            // Histories jump over months, and compare the whole log.
            log_keep: Duration::from_secs(10_000 * 24 * 60 * 60),
            segment_bytes: 2 << 10,
            flush_rows: 100,
            flush_post_bytes: 2 << 10,
            snapshot_events: 100,
            fan_out_threshold: FAN_OUT_THRESHOLD,
            fan_out_turn: 1,
            inbox_entries: INBOX_ENTRIES,
            backfill_posts: BACKFILL_POSTS,
            ..Settings::default()
        }
    }

    fn make(&self, ids: IdKind, clock: Arc<dyn Clock>) -> Embedded {
        let folder = tempfile::tempdir().unwrap();
        let store =
            Embedded::create_with_clock(folder.path(), ids, Self::settings(), Arc::clone(&clock)).unwrap();
        self.newest.replace(Some((folder, clock)));
        store
    }

    /// Ends the newest store in the middle of whatever it delivers, and opens it again: closed, with the inboxes that it had,
    /// those of the time before, or none; or as a kill at this moment leaves it.
    fn interrupt(&self, store: Embedded) -> Embedded {
        let turn = self.turn.get();
        self.turn.set(turn + 1);
        if turn % 5 == 4 {
            return self.kill(store);
        }
        store.close().unwrap();
        let folder = self.folder();
        let (stored, kept) = (folder.join("inboxes.snapshot"), folder.join("inboxes.kept"));
        match turn % 5 {
            0 => drop(fs::copy(&stored, &kept)),
            // Where there was none then, there is none now.
            1 => drop(fs::copy(&kept, &stored).or_else(|_| fs::remove_file(&stored).map(|()| 0))),
            2 => drop(fs::remove_file(&stored)),
            _ => {}
        }
        self.open()
    }

    /// Goes on with a copy that is taken while the store is open.
    fn kill(&self, store: Embedded) -> Embedded {
        let copied = copy_of_a_moment(&self.folder());
        drop(store);
        if let Some((folder, _)) = self.newest.borrow_mut().as_mut() {
            *folder = copied;
        }
        self.open()
    }

    /// Closes the newest store and opens it again.
    fn reopen(&self, store: Embedded) -> Embedded {
        store.close().unwrap();
        self.open()
    }

    fn folder(&self) -> PathBuf {
        self.newest.borrow().as_ref().map(|(folder, _)| folder.path().to_owned()).unwrap()
    }

    fn open(&self) -> Embedded {
        let clock = self.newest.borrow().as_ref().map(|(_, clock)| Arc::clone(clock)).unwrap();
        Embedded::open_with_clock(&self.folder(), Self::settings(), clock).unwrap()
    }
}

/// Runs every case of the suite for one of its settings: several tests, so that they run beside each other.
fn the_suite_passes(setting: usize) {
    let stores = Stores::default();
    let setting = suite::CaseScope::all().nth(setting).unwrap();
    for case in suite::all() {
        case.run_in(setting, &|ids, clock| stores.make(ids, clock));
    }
}

#[test]
fn the_suite_passes_with_the_first_setting() {
    the_suite_passes(0);
}

#[test]
fn the_suite_passes_with_the_second_setting() {
    the_suite_passes(1);
}

#[test]
fn the_suite_passes_with_the_third_setting() {
    the_suite_passes(2);
}

#[test]
fn the_suite_passes_with_the_last_setting() {
    assert_eq!(suite::CaseScope::all().count(), 4);
    the_suite_passes(3);
}

#[test]
fn random_histories_with_restarts_agree_with_the_model() {
    let stores = Stores::default();
    histories(&|ids, clock| stores.make(ids, clock), Some(&|store| stores.reopen(store)), 40, SEED);
}

#[test]
fn concurrent_histories_are_linearizable() {
    let stores = Stores::default();
    concurrent_histories(&|ids, clock| stores.make(ids, clock), 8, SEED);
}

#[test]
fn random_histories_of_feeds_with_restarts_agree_with_the_model() {
    let stores = Stores::default();
    let reopen = |store| stores.interrupt(store);
    feed_histories(
        &|ids, clock| stores.make(ids, clock),
        Some(&reopen),
        cases("KINFOLK_FEED_HISTORIES", 60),
        SEED,
    );
}

#[test]
fn feeds_survive_a_restart_after_any_step() {
    let stores = Stores::default();
    feed_restarts(&|ids, clock| stores.make(ids, clock), &|store| stores.interrupt(store));
}

#[test]
fn concurrent_feeds_agree_with_the_log() {
    let stores = Stores::default();
    concurrent_feeds(&|ids, clock| stores.make(ids, clock), 4, SEED);
}

#[test]
fn random_histories_of_comments_with_restarts_agree_with_the_model() {
    let stores = Stores::default();
    let reopen = |store| stores.interrupt(store);
    let cases = cases("KINFOLK_COMMENT_HISTORIES", 60);
    comment_histories(&|ids, clock| stores.make(ids, clock), Some(&reopen), cases, SEED);
}

#[test]
fn comments_survive_a_restart_after_any_step() {
    let stores = Stores::default();
    comment_restarts(&|ids, clock| stores.make(ids, clock), &|store| stores.interrupt(store));
}

#[test]
fn concurrent_comments_agree_with_the_log() {
    let stores = Stores::default();
    concurrent_comments(&|ids, clock| stores.make(ids, clock), 6, SEED);
}

/// How many cases to run: as many as the environment asks for.
fn cases(variable: &str, usual: u32) -> u32 {
    std::env::var(variable).ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}
