//! Erasing purged bodies from files. A purge makes bodies unreadable at once; their bytes stay in the log and in files of rows
//! until this is done. What is in backups, and what a disk keeps of files that were removed, is out of reach.
//!
//! First the log: every segment that has one of the bodies is written anew with as many zeros instead, and
//! replaces the old one. Then all files of comments are compacted into one, which leaves out what was replaced. Only then the comments are
//! noted as erased: whatever stops it, it is done again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kinfolk_core::comments::CommentId;
use kinfolk_core::{Clock, Error, Result, Sequence, Timestamp};
use lsm_tree::SeqNo;
use tokio::sync::{mpsc, oneshot};

use super::{Comments, damaged, layout};
use crate::Embedded;
use crate::disk::files;
use crate::engine::store::Store;
use crate::engine::writer::{Command, Writer};
use crate::log::{self, Segment};
use crate::lsm::RowStorage;
use crate::runtime::signal;

/// How often it looks whether bodies are due.
const TICK_MIN: Duration = Duration::from_secs(1);
const TICK_MAX: Duration = Duration::from_secs(60);
/// How long purges from a time that the clock has not reached wait at most.
const AHEAD_MAX: Duration = Duration::from_secs(60 * 60);
/// How long it waits at most for a backup or an export that still reads the files: each try merges all comments.
const IN_USE_MAX: Duration = Duration::from_secs(60 * 60);

/// How long readers of a few rows, such as other background work, may take to let the old files go, and how soon to look again.
const LET_GO_MAX: Duration = Duration::from_secs(5);
const LET_GO_PAUSE: Duration = Duration::from_millis(5);

/// A comment whose bodies are still in files: since when, and where they are in the log.
struct Unerased {
    id: CommentId,
    purged_at: Timestamp,
    positions: Vec<Sequence>,
}

impl Comments {
    /// How many comments were purged whose bodies are still in files.
    pub(crate) fn unerased_count(&self) -> u64 {
        // A file whose index can't be read fails for ever.
        self.unerased().take_while(Result::is_ok).count() as u64
    }

    /// Comments that were purged, and whose bodies are still in files.
    fn unerased(&self) -> impl Iterator<Item = Result<Unerased>> + Send + use<> {
        self.tree.rows(&[layout::UNERASED], (None, None), SeqNo::MAX).map(|row| {
            let (key, value) = row?;
            let id = layout::read_tagged(&key).ok_or_else(damaged)?;
            let (purged_at, positions) = layout::read_unerased(&value).ok_or_else(damaged)?;
            Ok(Unerased { id, purged_at, positions })
        })
    }
}

impl Embedded {
    /// Erases the bodies of all comments that were purged so far; returns how many comments there were.
    pub fn erase(&self) -> Result<u64> {
        erase(&self.store, &self.commands.downgrade())
    }
}

/// Erases purged bodies when the oldest of them has waited long enough, until it is stopped. On a thread of its own:
/// it asks the writer, which may be waiting for other background work.
pub(crate) fn erase_when_due(store: &Arc<Store>, clock: &dyn Clock, commands: &mpsc::WeakSender<Command>) {
    signal::lower_priority();
    let tick = store.settings.erase_after.clamp(TICK_MIN, TICK_MAX);
    let (mut ahead_since, mut pause) = (None, tick);
    while store.erasing.wait(pause) {
        let waited = std::mem::replace(&mut pause, tick);
        match erase_if_due(store, commands, (clock.now(), Instant::now()), &mut ahead_since) {
            Ok(0) | Err(Error::Closed) => {}
            Ok(comments) => tracing::info!(comments, "purged texts were erased from all files"),
            Err(error) => {
                if matches!(error, Error::InUse { .. }) {
                    pause = (waited * 2).min(IN_USE_MAX);
                }
                tracing::error!(%error, "purged bodies could not be erased; it is tried again later");
            }
        }
    }
}

/// `ahead_since` is since when there are purges from a time that the clock has not reached: nobody knows how old these are.
fn erase_if_due(
    store: &Arc<Store>,
    commands: &mpsc::WeakSender<Command>,
    (now, steady): (Timestamp, Instant),
    ahead_since: &mut Option<Instant>,
) -> Result<u64> {
    let purged = store.comments.unerased().map(|row| row.map(|unerased| unerased.purged_at));
    let purged = purged.collect::<Result<Vec<_>>>()?;
    let erase_after = store.settings.erase_after;
    let age = |at: Timestamp| Duration::from_millis(now.millis().saturating_sub(at.millis()));
    let is_old = purged.iter().any(|&at| age(at) >= erase_after);
    *ahead_since = purged.iter().any(|&at| at > now).then(|| ahead_since.unwrap_or(steady));
    // Sooner than it has to be: a restart would begin to count anew.
    let is_long_ahead =
        ahead_since.is_some_and(|since| steady.duration_since(since) >= erase_after.min(AHEAD_MAX));
    if is_old || is_long_ahead { erase(store, commands) } else { Ok(0) }
}

fn erase(store: &Arc<Store>, commands: &mpsc::WeakSender<Command>) -> Result<u64> {
    let _alone = store.comments.erasing.lock();
    let Beginning { ids, segments } = ask(commands, begin)?;
    if ids.is_empty() {
        return Ok(0);
    }
    let temporary = store.folder.path().join(log::ERASING_FILE);
    for TouchedSegment { segment, positions } in segments {
        // What is left of a failure holds other bodies too.
        let blanked = log::blank(&segment, store.identity.ids, &positions, &temporary);
        if !blanked.inspect_err(|_| drop(files::remove_file(&temporary)))? {
            continue;
        }
        let replacement = temporary.clone();
        ask(commands, move |writer| writer.log.replace_segment(segment.first, &replacement))?;
    }
    let tree = &store.comments.tree;
    let before = tree.files()?;
    tree.compact_fully()?;
    let let_go_by = Instant::now() + LET_GO_MAX;
    let mut pause = LET_GO_PAUSE;
    loop {
        // More than once: a flush of others at the same moment goes by an older one, and lets go of less.
        ask(commands, let_go)?;
        if before.is_disjoint(&tree.files()?) {
            break;
        }
        if Instant::now() >= let_go_by {
            let detail = "purged bodies are in files that an export or a backup still reads: try again when it has ended";
            return Err(Error::in_use(detail));
        }
        std::thread::sleep(pause);
        pause *= 2;
    }
    let erased = ids.len() as u64;
    ask(commands, move |writer| {
        for id in ids {
            writer.store.comments.tree.remove(layout::unerased_key(id));
        }
        // So that a start does not take them for unerased again.
        writer.store.flush_now()
    })?;
    Ok(erased)
}

/// Has the tree drop files that were compacted. Runs on the writer's thread.
fn let_go(writer: &mut Writer) -> Result<()> {
    writer.store.require_whole()?;
    writer.store.comments.tree.let_go(writer.store.position())
}

/// A segment, and the positions in it whose bodies go.
struct TouchedSegment {
    segment: Segment,
    positions: BTreeSet<Sequence>,
}

/// What is to be erased: the bodies of these comments, in these segments.
struct Beginning {
    ids: Vec<CommentId>,
    segments: Vec<TouchedSegment>,
}

/// What is to be erased, with everything in files and all segments in question closed. Runs on the writer's thread.
fn begin(writer: &mut Writer) -> Result<Beginning> {
    let unerased: Vec<Unerased> = writer.store.comments.unerased().collect::<Result<_>>()?;
    if unerased.is_empty() {
        return Ok(Beginning { ids: Vec::new(), segments: Vec::new() });
    }
    writer.store.flush_now()?;
    let positions: BTreeSet<Sequence> =
        unerased.iter().flat_map(|unerased| &unerased.positions).copied().collect();
    if let Some(&newest) = positions.last() {
        writer.log.close_segment_of(newest)?;
    }
    let mut touched: BTreeMap<PathBuf, TouchedSegment> = BTreeMap::new();
    for position in positions {
        // Trimmed since: then it is gone already.
        if let Some(segment) = writer.store.log.segment_of(position) {
            let of_segment = touched.entry(segment.path.clone());
            let untouched = TouchedSegment { segment, positions: BTreeSet::new() };
            of_segment.or_insert(untouched).positions.insert(position);
        }
    }
    let ids = unerased.into_iter().map(|unerased| unerased.id).collect();
    Ok(Beginning { ids, segments: touched.into_values().collect() })
}

/// Runs something on the writer's thread, between two batches, and waits for the outcome.
fn ask<T: Send + 'static>(
    commands: &mpsc::WeakSender<Command>,
    work: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (reply, result) = oneshot::channel();
    let run = Command::Run(Box::new(move |writer| {
        let _ = reply.send(work(writer));
    }));
    commands.upgrade().ok_or(Error::Closed)?.blocking_send(run).map_err(|_| Error::Closed)?;
    result.blocking_recv().map_err(|_| Error::Closed)?
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use kinfolk_conformance::{SimulatedClock, block_on};
    use kinfolk_core::changes::ChangeLog;
    use kinfolk_core::comments::{
        CommentEdit, CommentStatus, CommentStore, NewComment, Parent, ParentKind, Withdrawal,
    };
    use kinfolk_core::{Frontier, Id, IdKind};

    use super::*;
    use crate::Settings;
    use crate::disk::format;

    const PARENT: Parent = Parent { kind: ParentKind::Item, id: Id::Integer(1) };

    /// A body that no compression shortens.
    fn random_body() -> Arc<str> {
        let bytes = format::random::<64>().unwrap();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
    }

    fn request(body: &Arc<str>, key: &str) -> NewComment {
        NewComment {
            parent: PARENT,
            author: Id::Integer(7),
            body: Arc::clone(body),
            reply_to: None,
            idempotency_key: Some(key.into()),
            depth_max: 50,
        }
    }

    /// The files below a folder that hold a part of a body.
    fn files_with(folder: &Path, body: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(files_with(&path, body));
            } else {
                // What is gone when it is looked at holds nothing.
                let bytes = fs::read(&path).unwrap_or_default();
                let holds = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
                if body.as_bytes().chunks(16).any(holds) {
                    found.push(path);
                }
            }
        }
        found
    }

    #[test]
    fn what_was_purged_is_in_no_file_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { segment_bytes: 4 << 10, ..Settings::default() };
        let mut store = Embedded::create(folder.path(), IdKind::Integer, settings.clone()).unwrap();
        let bodies: Vec<Arc<str>> = (0..60).map(|_| random_body()).collect();
        let write = |store: &Embedded, at: usize| {
            block_on(store.comment(request(&bodies[at], &at.to_string()))).unwrap().comment.id
        };
        let ids: Vec<CommentId> = (0..20).map(|at| write(&store, at)).collect();
        // Older versions are in files of their own, and in other segments of the log.
        store.flush().unwrap();
        for (at, &id) in ids.iter().enumerate() {
            let edit = |version, body: usize| CommentEdit { id, version, body: Arc::clone(&bodies[body]) };
            block_on(store.edit_comment(edit(1, 20 + at))).unwrap();
            store.flush().unwrap();
            block_on(store.edit_comment(edit(2, 40 + at))).unwrap();
        }
        let purged = [ids[3], ids[19]];
        for id in purged {
            assert!(block_on(store.withdraw_comment(id, Withdrawal::Purge, None)).unwrap().changed);
        }
        let gone = [3, 19, 23, 39, 43, 59];
        assert!(gone.iter().all(|&at| !files_with(folder.path(), &bodies[at]).is_empty()), "it can be found");
        let before = block_on(store.changes(Frontier::EMPTY, 1_000)).unwrap().changes;
        assert_eq!(store.stats().purged_waiting, 2);
        assert_eq!(block_on(store.erase_purged()).unwrap(), 2);
        assert_eq!(store.stats().purged_waiting, 0);
        assert_eq!(block_on(store.erase_purged()).unwrap(), 0);
        for round in 0..2 {
            for (at, body) in bodies.iter().enumerate() {
                let found = files_with(folder.path(), body);
                assert_eq!(found.is_empty(), gone.contains(&at), "body {at} in {found:?}, round {round}");
            }
            assert_eq!(block_on(store.changes(Frontier::EMPTY, 1_000)).unwrap().changes, before);
            let tombstone = block_on(store.comment(request(&bodies[3], "3"))).unwrap();
            assert_eq!((tombstone.is_new, tombstone.comment.status), (false, CommentStatus::Purged));
            assert_eq!(
                block_on(store.comment(request(&bodies[4], "4"))).unwrap().comment.body.as_deref(),
                Some(&*bodies[4])
            );
            assert_eq!(store.verify(false, &|_| {}).unwrap().differences, Vec::<String>::new());
            drop(store);
            store = Embedded::open(folder.path(), settings.clone()).unwrap();
        }
    }

    fn purge_one(store: &Embedded) -> Arc<str> {
        let body = random_body();
        let id = block_on(store.comment(request(&body, &body))).unwrap().comment.id;
        store.flush().unwrap();
        block_on(store.withdraw_comment(id, Withdrawal::Purge, None)).unwrap();
        body
    }

    #[test]
    fn what_somebody_still_reads_is_not_called_erased() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::create(folder.path(), IdKind::Integer, Settings::default()).unwrap();
        let body = purge_one(&store);
        store.flush().unwrap();
        let export = store.all_comments().unwrap();
        assert!(matches!(store.erase(), Err(Error::InUse { .. })));
        drop(export);
        assert_eq!(store.erase().unwrap(), 1);
        assert_eq!(files_with(folder.path(), &body), Vec::<PathBuf>::new());
    }

    #[test]
    fn texts_are_erased_when_they_have_waited_long_enough() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { erase_after: Duration::from_secs(3_600), ..Settings::default() };
        let store = Embedded::create(folder.path(), IdKind::Integer, settings).unwrap();
        let body = purge_one(&store);
        let (commands, now) = (store.commands.downgrade(), store.clock.now());
        let erase_at = |now| erase_if_due(&store.store, &commands, (now, Instant::now()), &mut None).unwrap();
        assert_eq!(erase_at(now), 0);
        assert!(!files_with(folder.path(), &body).is_empty());
        assert_eq!(erase_at(now.plus_millis(3_600_000)), 1);
        assert_eq!(files_with(folder.path(), &body), Vec::<PathBuf>::new());
    }

    /// Times that were given out never go back: after a clock was ahead, purges carry a time that comes later.
    #[test]
    fn a_clock_that_was_ahead_puts_nothing_off() {
        const YEAR_MS: u64 = 365 * 24 * 3_600_000;
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(SimulatedClock::default());
        let store =
            Embedded::create_with_clock(folder.path(), IdKind::Integer, Settings::default(), clock.clone())
                .unwrap();
        clock.advance(YEAR_MS);
        purge_one(&store);
        clock.turn_back(YEAR_MS);
        let body = purge_one(&store);
        let (commands, start) = (store.commands.downgrade(), Instant::now());
        let mut ahead_since = None;
        let mut erase_after = |seconds| {
            let times = (clock.now(), start + Duration::from_secs(seconds));
            erase_if_due(&store.store, &commands, times, &mut ahead_since).unwrap()
        };
        assert_eq!(erase_after(0), 0);
        assert_eq!(erase_after(3_599), 0);
        assert_eq!(erase_after(3_600), 2);
        assert_eq!(files_with(folder.path(), &body), Vec::<PathBuf>::new());
        assert_eq!(erase_after(3_601), 0);
    }

    /// A start replays a log whose bodies were erased: what it makes of them is the same.
    #[test]
    fn an_erased_log_can_be_replayed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Embedded::create(folder.path(), IdKind::Integer, Settings::default()).unwrap();
        let body = random_body();
        let id = block_on(store.comment(request(&body, "k"))).unwrap().comment.id;
        block_on(store.withdraw_comment(id, Withdrawal::Purge, None)).unwrap();
        let expected = block_on(store.comments(&[id], Frontier::EMPTY)).unwrap();
        store.erase().unwrap();
        let (replayed, log) = (tempfile::tempdir().unwrap(), folder.path().join("log"));
        drop(store);
        let identity = format::read_identity(folder.path()).unwrap();
        fs::create_dir(replayed.path().join("log")).unwrap();
        for entry in fs::read_dir(log).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, replayed.path().join("log").join(path.file_name().unwrap())).unwrap();
        }
        fs::copy(folder.path().join("mark"), replayed.path().join("mark")).unwrap();
        format::write_identity(replayed.path(), identity).unwrap();
        let store = Embedded::open(replayed.path(), Settings::default()).unwrap();
        assert_eq!(block_on(store.comments(&[id], Frontier::EMPTY)).unwrap(), expected);
        assert!(!store.follows(
            kinfolk_core::EdgeKind::Follow,
            kinfolk_core::graph::Edge { follower: Id::Integer(1), followee: Id::Integer(2) }
        ));
    }
}
