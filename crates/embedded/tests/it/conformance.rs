//! The embedded store passes all that any store must pass.

use std::cell::RefCell;
use std::sync::Arc;

use kinfolk_conformance::{FAN_OUT_THRESHOLD, SEED, concurrent_histories, histories, suite};
use kinfolk_core::{Clock, IdKind};
use kinfolk_embedded::{Embedded, Settings};
use tempfile::TempDir;

/// Makes stores in folders that live as long as it does, small enough that every background step happens.
#[derive(Default)]
struct Stores {
    folders: RefCell<Vec<(TempDir, Arc<dyn Clock>)>>,
}

impl Stores {
    fn settings() -> Settings {
        Settings {
            segment_bytes: 2 << 10,
            flush_rows: 100,
            flush_post_bytes: 2 << 10,
            snapshot_events: 100,
            fan_out_threshold: FAN_OUT_THRESHOLD,
            ..Settings::default()
        }
    }

    fn make(&self, ids: IdKind, clock: Arc<dyn Clock>) -> Embedded {
        let folder = tempfile::tempdir().unwrap();
        let store =
            Embedded::create_with_clock(folder.path(), ids, Self::settings(), Arc::clone(&clock)).unwrap();
        self.folders.borrow_mut().push((folder, clock));
        store
    }

    /// Closes the newest store and opens it again.
    fn reopen(&self, store: Embedded) -> Embedded {
        store.close().unwrap();
        let folders = self.folders.borrow();
        let (folder, clock) = folders.last().unwrap();
        Embedded::open_with_clock(folder.path(), Self::settings(), Arc::clone(clock)).unwrap()
    }
}

#[test]
fn the_suite_passes() {
    let stores = Stores::default();
    suite::run(&|ids, clock| stores.make(ids, clock));
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
