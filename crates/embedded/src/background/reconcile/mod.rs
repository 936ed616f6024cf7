//! Compares lists, index, posts and comments with the truth, a few rows a second, all the time, and repairs what has differed
//! for 30 seconds. Writes go on meanwhile, so a difference counts only if it is still there after that time.
//!
//! It goes round and round: all pairs, all rows of both lists, all users of the index, all posts, all comments. A whole round
//! takes as long as the setting makes it take; `verify` does the same at once. What can't be read is counted and passed over:
//! the rest is compared all the same.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc as std_mpsc};
use std::time::{Duration, Instant};

use kinfolk_core::graph::Side;
use kinfolk_core::{EdgeKind, Error, Id, Result};
use tokio::sync::mpsc;

use crate::bulk::verify::{self, Difference, Recount, Settled};
use crate::comments::Tallying;
use crate::edges::{Row, Tree};
use crate::engine::store::Store;
use crate::engine::writer::Command;
use crate::lsm::{Part, first_key};

/// How long something must differ before it is repaired.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many differences are remembered at a time.
const SUSPECTS_MAX: usize = 10_000;
/// Lists up to this long are counted when they are met, together with rows that are not on disk yet.
const COUNTED_AT_ONCE: u64 = 5_000;
/// Counting is so much cheaper than comparing.
const COUNTED_PER_COMPARED: usize = 16;

/// Where it is in its round.
enum Place {
    /// In a tree of rows, at a key.
    Rows(Tree, Vec<u8>),
    /// At a user of the index, by number.
    Users(EdgeKind, u32),
    /// Among posts, at a key.
    Posts(Vec<u8>),
    /// Among comments, at a key.
    Comments(Vec<u8>),
}

/// Counts that are counted again, as the writer has begun them.
enum Recounting {
    Idle,
    Begun(std_mpsc::Receiver<Vec<Recount>>),
    /// All up to a place are counted to the end.
    Counting(Vec<Recount>, usize),
}

/// What could not be read in a step.
struct Unreadable {
    times: u64,
    first: Error,
}

/// What the writer is to do.
#[derive(Default)]
struct Work {
    /// Look at these again, and repair them.
    overdue: Vec<Difference>,
    /// Correct these.
    counted: Vec<Recount>,
}

/// Goes through everything, again and again.
pub struct Reconciler {
    store: Arc<Store>,
    rows_per_step: usize,
    place: Place,
    /// The owner whose rows are being counted, and how many there were so far.
    counting: Option<(EdgeKind, Id, u64)>,
    /// The comments that are being counted.
    tallying: Tallying,
    /// What has seemed to differ, since when.
    suspects: BTreeMap<Difference, Instant>,
    recounting: Recounting,
    unreadable: Option<Unreadable>,
}

impl Reconciler {
    /// Begins with the first pair.
    pub fn new(store: Arc<Store>, rows_per_step: usize) -> Self {
        Self {
            store,
            rows_per_step,
            place: Place::Rows(Tree::Pairs, first_key()),
            counting: None,
            tallying: Tallying::default(),
            suspects: BTreeMap::new(),
            recounting: Recounting::Idle,
            unreadable: None,
        }
    }

    /// Compares some rows, and has repaired what has differed for long enough. Never waits for the writer, which may be waiting
    /// for this thread to merge files.
    pub fn step(&mut self, now: Instant, commands: &mpsc::WeakSender<Command>) {
        if self.rows_per_step == 0 {
            return;
        }
        let Work { overdue, counted } = self.work(now);
        let Some(commands) = commands.upgrade() else { return };
        // A full queue means a busy writer: what differs will be met again.
        if !counted.is_empty() {
            let correct = move |store: &Store| log(verify::correct(store, &counted));
            let _ = commands.try_send(Command::Run(Box::new(move |writer| correct(&writer.store))));
        }
        if !overdue.is_empty() {
            let (begun, recounts) = std_mpsc::channel();
            let repair = Command::Run(Box::new(move |writer| {
                // It has perhaps ended meanwhile, and the whole process with it.
                let _ = begun.send(repair(&writer.store, &overdue));
            }));
            if commands.try_send(repair).is_ok() && matches!(self.recounting, Recounting::Idle) {
                self.recounting = Recounting::Begun(recounts);
            }
        }
    }

    fn work(&mut self, now: Instant) -> Work {
        self.compare_some(now);
        let counted = self.count_some();
        let work = Work { overdue: self.overdue(now), counted };
        if let Some(Unreadable { times, first }) = self.unreadable.take() {
            self.store.counters.unreadable(times);
            tracing::error!(
                times,
                error = %first,
                "rows could not be read and were not compared with the truth; restore from a backup"
            );
        }
        work
    }

    fn compare_some(&mut self, now: Instant) {
        let start = || Place::Rows(Tree::Pairs, first_key());
        self.place = match std::mem::replace(&mut self.place, start()) {
            Place::Rows(tree, from) => self.compare_rows(tree, &from, now),
            Place::Users(kind, number) => self.compare_users(kind, number, now),
            Place::Posts(from) => self.compare_posts(&from, now),
            Place::Comments(from) => self.compare_comments(&from, now),
        };
    }

    /// The value, unless it could not be read: then that is noted.
    fn readable<T>(&mut self, read: Result<T>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(first) => {
                self.unreadable.get_or_insert(Unreadable { times: 0, first }).times += 1;
                None
            }
        }
    }

    /// Takes note of what a part could not read; returns whether there was something.
    fn is_broken(&mut self, part: &mut Part) -> bool {
        self.store.counters.reconciled(part.rows.len());
        match part.unreadable.take() {
            Some(error) => self.readable::<()>(Err(error)).is_none(),
            None => false,
        }
    }

    fn compare_rows(&mut self, tree: Tree, from: &[u8], now: Instant) -> Place {
        let store = Arc::clone(&self.store);
        let mut part = store.edges.rows.part(tree, from, self.rows_per_step);
        let is_broken = self.is_broken(&mut part);
        for row in &part.rows {
            let compared =
                store.edges.rows.decode(tree, row).and_then(|row| Ok((row, differences(&store, tree, row)?)));
            if let Some((row, differences)) = self.readable(compared) {
                differences.into_iter().for_each(|suspected| self.suspect(suspected, now));
                self.count(tree, row, now);
            }
        }
        if is_broken {
            // Who knows how many rows were passed over.
            self.counting = None;
        }
        if let Some(next) = part.next {
            return Place::Rows(tree, next);
        }
        self.finish_count(tree, now);
        match tree {
            Tree::Pairs => Place::Rows(Tree::Following, first_key()),
            Tree::Following => Place::Rows(Tree::Followers, first_key()),
            Tree::Followers => Place::Users(EdgeKind::ALL[0], 0),
        }
    }

    /// Finds users that only the index knows: no row leads to them.
    fn compare_users(&mut self, kind: EdgeKind, first: u32, now: Instant) -> Place {
        let store = Arc::clone(&self.store);
        let users = store.edges.index.users_from(kind, first, self.rows_per_step);
        for &of in &users {
            let counts = store.edges.index.counts(kind, of);
            for (side, count) in [(Side::Following, counts.following), (Side::Followers, counts.followers)] {
                let first = |side| store.edges.rows.list_rows((kind, side, of), None).next().transpose();
                if count > 0 && self.readable(first(side)) == Some(None) {
                    match side {
                        Side::Following => self.compare_followees(kind, of, now),
                        Side::Followers => self.suspect(follower_count(kind, of), now),
                    }
                }
            }
        }
        let next_kind = EdgeKind::ALL.into_iter().find(|&other| other > kind);
        match next_kind {
            _ if users.len() == self.rows_per_step => Place::Users(kind, first + users.len() as u32),
            Some(next) => Place::Users(next, 0),
            None => Place::Posts(first_key()),
        }
    }

    fn compare_posts(&mut self, from: &[u8], now: Instant) -> Place {
        let store = Arc::clone(&self.store);
        let mut part = store.posts.tree.part(from, self.rows_per_step);
        self.is_broken(&mut part);
        for row in &part.rows {
            let suspected = self.readable(store.posts.examine(row, store.newest_time()));
            suspected.flatten().into_iter().for_each(|suspected| self.suspect(suspected, now));
        }
        part.next.map_or_else(|| Place::Comments(first_key()), Place::Posts)
    }

    fn compare_comments(&mut self, from: &[u8], now: Instant) -> Place {
        let store = Arc::clone(&self.store);
        let mut part = store.comments.tree.part(from, self.rows_per_step);
        let is_broken = self.is_broken(&mut part);
        let mut tallying = std::mem::take(&mut self.tallying);
        let mut suspected = Vec::new();
        let mut found = |difference| {
            suspected.push(difference);
            Ok(())
        };
        for row in &part.rows {
            let examined = store.comments.examine(row, store.newest_time(), &mut tallying, &mut found);
            self.readable(examined);
        }
        if is_broken {
            tallying = Tallying::default();
        }
        if part.next.is_none() {
            let finished = store.comments.finish_tally(&mut tallying, &mut found);
            self.readable(finished);
        }
        self.tallying = tallying;
        suspected.into_iter().for_each(|suspected| self.suspect(suspected, now));
        part.next.map_or_else(|| Place::Rows(Tree::Pairs, first_key()), Place::Comments)
    }

    fn suspect(&mut self, suspected: Difference, now: Instant) {
        if self.suspects.len() < SUSPECTS_MAX {
            self.suspects.entry(suspected).or_insert(now);
        }
    }

    /// Counts the rows of each list, which come owner by owner.
    fn count(&mut self, tree: Tree, (kind, edge, _): Row, now: Instant) {
        let owner = match tree {
            Tree::Pairs => return,
            Tree::Following => edge.follower,
            Tree::Followers => edge.followee,
        };
        match &mut self.counting {
            Some((of_kind, of, rows)) if (*of_kind, *of) == (kind, owner) => *rows += 1,
            _ => {
                self.finish_count(tree, now);
                self.counting = Some((kind, owner, 1));
            }
        }
    }

    /// A list whose rows on disk are not as many as the index has is looked at more closely, with those in memory.
    fn finish_count(&mut self, tree: Tree, now: Instant) {
        let Some((kind, of, rows)) = self.counting.take() else { return };
        let counts = self.store.edges.index.counts(kind, of);
        if tree == Tree::Following && counts.following != rows {
            self.compare_followees(kind, of, now);
        }
        if tree == Tree::Followers && counts.followers != rows {
            let list = self.store.edges.rows.list_rows((kind, Side::Followers, of), None);
            let is_short = rows.max(counts.followers) <= COUNTED_AT_ONCE;
            let counted = is_short.then(|| list.into_iter().try_fold(0, |count, row| row.map(|_| count + 1)));
            let counted = counted.and_then(|counted| self.readable(counted));
            if counted.is_none_or(|count| count != self.store.edges.index.counts(kind, of).followers) {
                self.suspect(follower_count(kind, of), now);
            }
        }
    }

    fn compare_followees(&mut self, kind: EdgeKind, follower: Id, now: Instant) {
        let looked = Difference::Followees { kind, follower }.look_again(&self.store);
        if let Some(Some(suspected)) = self.readable(looked) {
            self.suspect(suspected, now);
        }
    }

    /// What has differed for long enough and does so now. Counts come last, and only while no others are counted again: what they
    /// count is then repaired.
    fn overdue(&mut self, now: Instant) -> Vec<Difference> {
        let is_idle = matches!(self.recounting, Recounting::Idle);
        let due = self.suspects.iter().filter(|&(suspected, &since)| {
            now.duration_since(since) >= PATIENCE && (is_idle || !suspected.is_count())
        });
        let due: Vec<Difference> =
            due.map(|(suspected, _)| suspected.clone()).take(verify::TOGETHER).collect();
        let mut overdue = Vec::new();
        for suspected in due {
            self.suspects.remove(&suspected);
            if suspected.is_count() {
                overdue.push(suspected);
            } else {
                let looked = suspected.look_again(&self.store);
                overdue.extend(self.readable(looked).flatten());
            }
        }
        overdue
    }

    /// Counts some rows again; returns what is counted to the end.
    fn count_some(&mut self) -> Vec<Recount> {
        if let Recounting::Begun(recounts) = &self.recounting {
            self.recounting = match recounts.try_recv() {
                Ok(recounts) => Recounting::Counting(recounts, 0),
                Err(std_mpsc::TryRecvError::Empty) => return Vec::new(),
                Err(std_mpsc::TryRecvError::Disconnected) => Recounting::Idle,
            };
        }
        let Recounting::Counting(mut recounts, mut at) =
            std::mem::replace(&mut self.recounting, Recounting::Idle)
        else {
            return Vec::new();
        };
        let mut left = self.rows_per_step.saturating_mul(COUNTED_PER_COMPARED);
        while left > 0
            && let Some(recount) = recounts.get_mut(at)
        {
            let counted = recount.count(left);
            match self.readable(counted) {
                Some(counted) if counted == left => left = 0,
                Some(counted) => (left, at) = (left - counted, at + 1),
                // What can't be counted is not corrected.
                None => drop(recounts.remove(at)),
            }
        }
        if at < recounts.len() {
            self.recounting = Recounting::Counting(recounts, at);
            return Vec::new();
        }
        recounts.retain(|recount| recount.difference().is_some());
        recounts
    }
}

fn follower_count(kind: EdgeKind, id: Id) -> Difference {
    Difference::FollowerCount { kind, id, counted: 0, is: 0 }
}

/// Where projections say something else about a row than the truth: the row was found in `tree`.
fn differences(store: &Store, found_in: Tree, (kind, edge, since): Row) -> Result<Vec<Difference>> {
    let truth = store.edges.rows.since(kind, edge)?;
    if found_in == Tree::Pairs && truth != Some(since) {
        // It was removed, or made anew, since it was read.
        return Ok(Vec::new());
    }
    let expected = truth == Some(since);
    let mut differences = Vec::new();
    for tree in [Tree::Following, Tree::Followers] {
        if store.edges.rows.has(tree, (kind, edge, since))? != expected {
            differences.push(Difference::Row { tree, kind, edge, since, missing: expected });
        }
    }
    if store.edges.index.contains(kind, edge) != truth.is_some() {
        differences.push(Difference::Followees { kind, follower: edge.follower });
    }
    Ok(differences)
}

/// Repairs what really differs, and begins to count what may be counted wrongly. Runs on the writer's thread, between two
/// batches.
fn repair(store: &Store, differences: &[Difference]) -> Vec<Recount> {
    match verify::settle(store, differences, true) {
        Ok(Settled { real, recounts }) => {
            if !real.is_empty() {
                log(Ok(real.len()));
                store.signal.wake();
            }
            recounts
        }
        Err(error) => {
            log(Err(error));
            Vec::new()
        }
    }
}

/// Says what was repaired, or why it could not be.
fn log(repaired: Result<usize>) {
    match repaired {
        Ok(0) => {}
        Ok(repaired) => {
            tracing::warn!(repaired, "projections differed from the truth and were repaired");
        }
        Err(error) => tracing::error!(%error, "a difference could not be repaired"),
    }
}

#[cfg(test)]
mod tests;
