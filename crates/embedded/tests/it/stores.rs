//! Stores that tests break: closed and opened again, or killed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use kinfolk_conformance::{SimulatedClock, write_commands};
use kinfolk_core::graph::{Edge, EdgeAction, EdgeCommand};
use kinfolk_core::{Clock, EdgeKind, Id, IdKind};
use kinfolk_embedded::{Embedded, Settings};
use tempfile::TempDir;

use crate::fixtures::try_copy;

/// A store and its clock; `Store::killed` opens what a kill at this moment would leave.
pub struct Store {
    pub folder: TempDir,
    pub clock: Arc<SimulatedClock>,
    pub settings: Settings,
    pub open: Embedded,
}

impl Store {
    pub fn new(ids: IdKind, settings: Settings) -> Self {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(SimulatedClock::default()));
        let shared: Arc<dyn Clock> = clock.clone();
        let open = Embedded::create_with_clock(folder.path(), ids, settings.clone(), shared).unwrap();
        Self { folder, clock, settings, open }
    }

    pub fn reopened(self) -> Self {
        let Self { folder, clock, settings, open } = self;
        open.close().unwrap();
        let open = Embedded::open_with_clock(folder.path(), settings.clone(), clock.clone()).unwrap();
        Self { folder, clock, settings, open }
    }

    pub fn killed(&self) -> Self {
        let folder = copy_of_a_moment(self.folder.path());
        let clock: Arc<dyn Clock> = self.clock.clone();
        let open = Embedded::open_with_clock(folder.path(), self.settings.clone(), clock).unwrap();
        Self { folder, clock: self.clock.clone(), settings: self.settings.clone(), open }
    }

    pub fn follow(&self, follower: Id, followee: Id) {
        let commands = vec![EdgeCommand { action: EdgeAction::Follow, edge: Edge { follower, followee } }];
        write_commands(&self.open, EdgeKind::Follow, &commands, 1_000).unwrap();
    }

    pub fn require_sound(&self) {
        assert_eq!(self.open.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
    }
}

/// Everything is written to disk all the time, and the log has many short segments.
pub fn busy() -> Settings {
    Settings {
        segment_bytes: 2 << 10,
        flush_rows: 20,
        flush_post_bytes: 4 << 10,
        snapshot_events: 50,
        fan_out_threshold: 3,
        ..Settings::default()
    }
}

pub fn id(ids: IdKind, number: u64) -> Id {
    match ids {
        IdKind::Integer => Id::Integer(number),
        IdKind::Uuid => Id::Uuid(u128::from(number) << 64 | 9),
    }
}

pub fn in_both_kinds(test: impl Fn(IdKind, &dyn Fn(u64) -> Id)) {
    for ids in [IdKind::Integer, IdKind::Uuid] {
        test(ids, &|number| id(ids, number));
    }
}

/// A copy of a folder during which nothing in it has changed.
pub fn copy_of_a_moment(folder: &Path) -> TempDir {
    loop {
        let target = tempfile::tempdir().unwrap();
        let before = look(folder);
        if try_copy(folder, target.path()).is_ok() && look(folder) == before {
            return target;
        }
    }
}

/// All files below a folder, how long they are and when they were last written.
fn look(folder: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            files.extend(look(&entry.path()));
        } else {
            files.insert(entry.path(), (metadata.len(), metadata.modified().unwrap()));
        }
    }
    files
}
