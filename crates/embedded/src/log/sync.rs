//! Syncs a file on a thread of its own, so that the writer can work meanwhile, and measures how long that took. One sync at a time, no
//! retries.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kinfolk_core::Result;

use crate::runtime::health::Health;

/// The thread, and whether it is at work.
#[derive(Debug)]
pub(crate) struct Syncer {
    files: Option<SyncSender<Arc<File>>>,
    outcomes: Receiver<io::Result<Duration>>,
    thread: Option<JoinHandle<()>>,
    busy: bool,
}

impl Syncer {
    /// Starts the thread.
    pub(crate) fn start(health: &Arc<Health>) -> Result<Self> {
        let (files, to_sync) = sync_channel::<Arc<File>>(1);
        let (report, outcomes) = sync_channel(1);
        let thread = health.spawn("kinfolk-sync", move || {
            while let Ok(file) = to_sync.recv() {
                if report.send(sync(&file)).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { files: Some(files), outcomes, thread: Some(thread), busy: false })
    }

    /// Begins to sync a file.
    pub(crate) fn begin(&mut self, file: &Arc<File>) {
        assert!(!self.busy, "a sync is under way already");
        let files = self.files.as_ref().expect("the thread lives as long as this");
        // A thread that died is noticed when the outcome is asked for.
        let _ = files.send(Arc::clone(file));
        self.busy = true;
    }

    /// Waits for the sync that was begun, if one was; returns how long it took.
    pub(crate) fn finish(&mut self) -> io::Result<Duration> {
        if !std::mem::take(&mut self.busy) {
            return Ok(Duration::ZERO);
        }
        self.outcomes.recv().unwrap_or_else(|_| Err(io::Error::other("the syncing thread has died")))
    }
}

/// Syncs a file at once; returns how long it took.
pub(crate) fn sync(file: &File) -> io::Result<Duration> {
    let started = Instant::now();
    file.sync_data().map(|()| started.elapsed())
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.files = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sync_has_one_outcome() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let mut syncer = Syncer::start(&Arc::default()).unwrap();
        for _ in 0..3 {
            syncer.begin(&file);
            syncer.finish().unwrap();
            syncer.finish().unwrap();
        }
        // A pipe can't be synced.
        let (reader, _writer) = io::pipe().unwrap();
        syncer.begin(&Arc::new(File::from(std::os::fd::OwnedFd::from(reader))));
        assert!(syncer.finish().is_err());
    }
}
