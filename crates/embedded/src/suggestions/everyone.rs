//! Suggestions for everyone: users by id, shared out in small groups to threads, results written in order, part by part.
//!
//! Memory is bounded: the ids of all users, one table of counts a thread, a window of groups whose results wait for
//! an earlier one, and one part of the tree that is being written.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use kinfolk_core::suggestions::{SuggestionRunReport, SuggestionRunRequest};
use kinfolk_core::{Clock, EdgeKind, Error, Id, Result};
use lsm_tree::{AbstractTree, AnyIngestion, AnyTree, SeqNo};
use parking_lot::{Condvar, Mutex};

use super::{ComputedSuggestions, Run, record};
use crate::edges::index::{Scratch, UsersById};
use crate::lsm::tree_error;
use crate::runtime::signal;

/// How many users a thread takes at a time.
const GROUP_USERS: usize = 64;
/// How many groups threads may be ahead of the first that is not finished.
const WINDOW_GROUPS: usize = 256;
/// What is written at a time; a run that is killed repeats at most this.
const PART_BYTES: usize = 32 << 20;
const PART_USERS: u64 = 200_000;
/// How often it is asked whether to go on, while no results come.
const ASK_EVERY: Duration = Duration::from_millis(100);
const THREADS_MAX: usize = 256;

/// A user, and its record if there is something to suggest.
type Record = (Id, Option<Vec<u8>>);

/// Computes suggestions for all users and stores them, or goes on where a run was stopped.
pub(crate) fn compute(
    suggestions: &ComputedSuggestions,
    clock: &dyn Clock,
    request: SuggestionRunRequest,
    watch: &(dyn Fn(u64, u64) -> bool + Sync),
) -> Result<SuggestionRunReport> {
    let Some(_alone) = suggestions.running.try_lock() else {
        return Err(Error::in_use("suggestions are being computed already; wait for that"));
    };
    suggestions.store_folder.require()?;
    let tree = suggestions.open_tree()?;
    let is_first = tree.table_count() == 0;
    let resumable = suggestions.newest().filter(|run| run.is_resumable(request.bounds, clock.now()));
    let run = resumable.filter(|_| !request.afresh).unwrap_or_else(|| Run::new(request.bounds, clock.now()));
    let (resumed, suggested_before) = (run.users, run.suggested);
    suggestions.keep_run(&run)?;
    let users = suggestions.edges.index.of(EdgeKind::Follow).users_by_id(run.done);
    let work = Work {
        suggestions,
        clock,
        request,
        users: &users,
        next: AtomicUsize::new(0),
        is_ended: AtomicBool::new(false),
        written: Mutex::new(0),
        advanced: Condvar::new(),
    };
    let run = work.run(&tree, run, watch)?;
    if run.finished_at.is_some() && !is_first {
        suggestions.compact(&tree)?;
    }
    Ok(SuggestionRunReport {
        users: run.users - resumed,
        suggested: run.suggested - suggested_before,
        resumed,
        complete: run.finished_at.is_some(),
    })
}

/// What the threads of a run share.
struct Work<'a> {
    suggestions: &'a ComputedSuggestions,
    clock: &'a dyn Clock,
    request: SuggestionRunRequest,
    users: &'a UsersById,
    /// The next group that nobody has taken.
    next: AtomicUsize,
    is_ended: AtomicBool,
    /// How many groups are written: all before the first that is not finished.
    written: Mutex<usize>,
    advanced: Condvar,
}

impl Work<'_> {
    fn run(&self, tree: &AnyTree, run: Run, watch: &(dyn Fn(u64, u64) -> bool + Sync)) -> Result<Run> {
        let threads = self.request.threads.clamp(1, THREADS_MAX);
        let (send, results) = sync_channel(threads * 2);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let send = send.clone();
                scope.spawn(move || self.walk_groups(&send));
            }
            drop(send);
            let total = run.users + self.users.len as u64;
            let mut output =
                Output { suggestions: self.suggestions, tree, run, ingestion: None, bytes: 0, users: 0 };
            let ended = self.write_groups(&results, &mut output, total, watch);
            // A thread that waits to hand over what nobody takes any more would be waited for.
            drop(results);
            self.end();
            let is_complete = ended?;
            output.finish_part()?;
            if is_complete {
                output.finish(self.clock)?;
            }
            Ok(output.run)
        })
    }

    /// Nobody should begin anything more.
    fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
        let _written = self.written.lock();
        self.advanced.notify_all();
    }

    /// A thread: takes groups and walks for each user in them.
    fn walk_groups(&self, results: &SyncSender<(usize, Result<Vec<Record>>)>) {
        signal::lower_priority();
        // A thread that dies would be waited for.
        let ending = EndOnPanic(self);
        let mut scratch = Scratch::default();
        loop {
            let group = self.next.fetch_add(1, Ordering::Relaxed);
            let from = group * GROUP_USERS;
            if from >= self.users.len || !self.wait_for_window(group) {
                break;
            }
            let users = from..self.users.len.min(from + GROUP_USERS);
            let records: Result<Vec<Record>> =
                users.map(|at| self.walk_one((self.users.get)(at), &mut scratch)).collect();
            if results.send((group, records)).is_err() {
                break;
            }
        }
        std::mem::forget(ending);
    }

    /// Waits until a group is not too far ahead; false where the run has ended.
    fn wait_for_window(&self, group: usize) -> bool {
        let mut written = self.written.lock();
        while group >= *written + WINDOW_GROUPS && !self.is_ended.load(Ordering::Acquire) {
            self.advanced.wait(&mut written);
        }
        !self.is_ended.load(Ordering::Acquire)
    }

    fn walk_one(&self, of: Id, scratch: &mut Scratch) -> Result<Record> {
        let is_ended = || self.is_ended.load(Ordering::Relaxed);
        let items = self.suggestions.edges.candidates(of, self.request.bounds, scratch, &is_ended)?;
        let bytes = (!items.is_empty()).then(|| record::encode(self.clock.now(), &items));
        Ok((of, bytes))
    }

    /// Writes results in the order of users; returns whether all of them came.
    fn write_groups(
        &self,
        results: &Receiver<(usize, Result<Vec<Record>>)>,
        output: &mut Output<'_>,
        total: u64,
        watch: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<bool> {
        let mut early = BTreeMap::new();
        let mut expected = 0;
        loop {
            match results.recv_timeout(ASK_EVERY) {
                Ok((group, records)) => drop(early.insert(group, records?)),
                Err(RecvTimeoutError::Timeout) if watch(output.run.users, total) => {}
                Err(RecvTimeoutError::Timeout) => return Ok(false),
                Err(RecvTimeoutError::Disconnected) => {
                    return Ok(expected == self.users.len.div_ceil(GROUP_USERS));
                }
            }
            while let Some(records) = early.remove(&expected) {
                output.push(&records)?;
                expected += 1;
                *self.written.lock() = expected;
                self.advanced.notify_all();
                output.suggestions.report(output.run.users, total);
                if !watch(output.run.users, total) {
                    return Ok(false);
                }
            }
        }
    }
}

/// Ends the run when it is dropped, which happens only where a thread panics.
struct EndOnPanic<'a, 'b>(&'a Work<'b>);

impl Drop for EndOnPanic<'_, '_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Where results go.
struct Output<'a> {
    suggestions: &'a ComputedSuggestions,
    tree: &'a AnyTree,
    run: Run,
    /// The part that is being written.
    ingestion: Option<AnyIngestion<'a>>,
    bytes: usize,
    users: u64,
}

impl<'a> Output<'a> {
    fn push(&mut self, records: &[Record]) -> Result<()> {
        for (of, record) in records {
            let mut key = Vec::with_capacity(16);
            of.push_to(&mut key);
            match record {
                Some(record) => {
                    self.bytes += key.len() + record.len();
                    self.part()?.write(key, record).map_err(tree_error)?;
                    self.run.suggested += 1;
                }
                None if self.tree.contains_key(&key, SeqNo::MAX).map_err(tree_error)? => {
                    self.part()?.write_tombstone(key).map_err(tree_error)?;
                }
                None => {}
            }
            self.run.users += 1;
            self.users += 1;
            self.run.done = Some(*of);
        }
        let is_full = self.bytes >= PART_BYTES || self.users >= PART_USERS;
        if is_full { self.finish_part() } else { Ok(()) }
    }

    fn part(&mut self) -> Result<&mut AnyIngestion<'a>> {
        if self.ingestion.is_none() {
            self.ingestion = Some(self.tree.ingestion().map_err(tree_error)?);
        }
        Ok(self.ingestion.as_mut().expect("it was put there"))
    }

    /// Makes what was written durable, and then that it need not be computed again.
    fn finish_part(&mut self) -> Result<()> {
        if let Some(part) = self.ingestion.take() {
            part.finish().map_err(tree_error)?;
        }
        (self.bytes, self.users) = (0, 0);
        self.suggestions.keep_run(&self.run)
    }

    /// All users were looked at.
    fn finish(&mut self, clock: &dyn Clock) -> Result<()> {
        self.run.finished_at = Some(clock.now());
        self.suggestions.keep_run(&self.run)
    }
}
