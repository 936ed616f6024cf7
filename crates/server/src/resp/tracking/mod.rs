//! Client-side caching (`CLIENT TRACKING`): remembers which connections have read a key, and pushes an invalidation to them
//! when the key changes. Reads and writes nothing itself.
//!
//! ```text
//! subscription   what one connection asked for
//! outbox         invalidations that one connection has not sent yet
//! table          which connections have read a key, and which changes are their own
//! feed           follows the change log and invalidates what changed
//! ```
//!
//! No change is missed. A connection is in the table before its read begins, and the read covers everything that the feed
//! has applied by then. So a change is either covered by the read, or applied afterwards, when the key is in the table.
//! Where changes may be missed (an import, a restore, a log that can't be read), clients drop everything.

mod feed;
mod outbox;
mod subscription;
mod table;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(super) use feed::run;
use kinfolk_core::changes::{Change, ChangeBody};
use kinfolk_core::graph::{Edge, FollowerChanges, Receipt, Side, UserSet};
use kinfolk_core::{EdgeKind, Epoch, Frontier, Position};
use outbox::{Invalidation, Outbox};
use parking_lot::Mutex;
pub(super) use subscription::{Mode, Seen, Subscription, Wanted};
use table::Table;
use tokio::sync::{Notify, watch};

/// How long a read waits for the feed to begin.
const BEGIN_MAX: Duration = Duration::from_secs(1);

/// How many changes of this process are remembered until the feed comes to them. Without them it invalidates once more, which does
/// no harm.
const WRITTEN_MAX: usize = 100_000;

/// What all connections share about their caches.
#[derive(Debug)]
pub(super) struct Tracking {
    /// How many connections have subscribed: without any, nothing below is touched.
    subscribers: AtomicUsize,
    /// Wakes the feed when there is a subscriber.
    wake: Notify,
    /// Whether the feed has begun, or has failed to.
    is_live: watch::Sender<bool>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    table: Table,
    /// The epoch of the positions below.
    epoch: Option<Epoch>,
    /// Reads of subscribers show at least this: everything that was invalidated.
    applied: Frontier,
    /// How far the feed has come.
    fed: Frontier,
    /// Changes of this process that were invalidated before the feed has come to them.
    written: HashMap<Position, Edge>,
}

impl State {
    fn note_written(&mut self, position: Position, edge: Edge) {
        if self.written.len() == WRITTEN_MAX {
            self.written.clear();
        }
        self.written.insert(position, edge);
    }
}

/// Numbers for `INFO`, named as in Redis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TrackingStats {
    pub clients: usize,
    pub keys: usize,
    pub items: usize,
    pub prefixes: usize,
}

impl Tracking {
    /// Remembers up to `items_max` reads.
    pub(crate) fn new(items_max: usize) -> Self {
        let table = Table::new(items_max);
        let (applied, fed) = (Frontier::default(), Frontier::default());
        let state = State { table, epoch: None, applied, fed, written: HashMap::new() };
        let (subscribers, wake, is_live) = (AtomicUsize::new(0), Notify::new(), watch::Sender::new(false));
        Self { subscribers, wake, is_live, state: Mutex::new(state) }
    }

    pub(crate) fn has_subscribers(&self) -> bool {
        self.subscribers.load(Ordering::Acquire) > 0
    }

    /// Whether a connection receives invalidations, and if so, whether it hears of all keys with a prefix.
    pub(crate) fn listens(&self, connection: u64) -> Option<bool> {
        self.has_subscribers().then(|| self.state.lock().table.listens(connection)).flatten()
    }

    /// Waits for a subscriber.
    async fn subscribed(&self) {
        while !self.has_subscribers() {
            self.wake.notified().await;
        }
    }

    /// Sends invalidations to a connection from now on.
    fn subscribe(&self, connection: u64, outbox: Arc<Outbox>, wanted: &Wanted) {
        self.state.lock().table.add(connection, outbox, wanted);
        self.subscribers.fetch_add(1, Ordering::AcqRel);
        self.wake.notify_one();
    }

    fn unsubscribe(&self, connection: u64) {
        self.state.lock().table.remove(connection);
        self.subscribers.fetch_sub(1, Ordering::AcqRel);
    }

    /// A connection is about to read, and to cache these keys, each with its name as the client wrote it. Adds to `seen` what the
    /// read must show.
    fn will_read<'a>(
        &self,
        connection: u64,
        keys: impl Iterator<Item = (UserSet, &'a [u8])>,
        Seen { epoch, frontier }: Seen<'_>,
    ) {
        let mut state = self.state.lock();
        state.table.will_read(connection);
        keys.for_each(|(key, name)| state.table.register(connection, key, name));
        // After the registration: see the header. Positions of an epoch that has ended would never be reached.
        if state.epoch == Some(epoch) {
            frontier.join(&state.applied);
        }
    }

    /// A connection hands a write to the store, or has its result.
    pub(crate) fn set_writing(&self, connection: u64, is_writing: bool) {
        self.state.lock().table.set_writing(connection, is_writing);
    }

    /// What a connection has just written: readers hear of it before the writer gets its reply, without waiting for the feed.
    pub(crate) fn written(&self, connection: u64, changes: &FollowerChanges, receipt: &Receipt) {
        let mut state = self.state.lock();
        for (edge, position) in changed_edges(changes, receipt) {
            state.table.written_by(connection, position);
            if state.fed.covers(position) {
                // The feed was faster.
                continue;
            }
            state.note_written(position, edge);
            keys(edge).for_each(|key| state.table.invalidate_readers(key, position));
        }
        state.applied.advance(receipt.position);
    }

    /// Leaves out what a connection has changed itself.
    fn drop_own(&self, connection: u64, keys: &mut Vec<Invalidation>) {
        self.state.lock().table.drop_own(connection, keys);
    }

    /// Invalidates what a page of the change log has changed.
    fn apply(&self, changes: &[Change], next: &Frontier) {
        let mut state = self.state.lock();
        for change in changes {
            match change.body {
                ChangeBody::Followed { kind: EdgeKind::Follow, edge }
                | ChangeBody::Unfollowed { kind: EdgeKind::Follow, edge, .. } => {
                    // Those who have read since cover the change, and need not read again.
                    let is_known = state.written.remove(&change.position) == Some(edge);
                    for key in keys(edge) {
                        if !is_known {
                            state.table.invalidate_readers(key, change.position);
                        }
                        state.table.invalidate_listeners(key, change.position);
                    }
                }
                ChangeBody::Imported { kind: EdgeKind::Follow, .. } => state.table.invalidate_all(),
                _ => {}
            }
        }
        state.applied.join(next);
        state.fed.join(next);
    }

    pub(crate) fn is_live(&self) -> bool {
        *self.is_live.borrow()
    }

    /// Waits until the feed has begun, so that the first reads of a subscriber need not be dropped for it. Not for long: a feed
    /// that begins later is right, too.
    pub(crate) async fn live(&self) {
        let mut is_live = self.is_live.subscribe();
        let _ = tokio::time::timeout(BEGIN_MAX, is_live.wait_for(|&is_live| is_live)).await;
    }

    /// The feed begins here. What was cached before may have changed without notice.
    fn begin(&self, epoch: Epoch, at: &Frontier) {
        let mut state = self.state.lock();
        state.table.invalidate_all();
        if state.epoch.replace(epoch) != Some(epoch) {
            state.table.forget_own();
        }
        state.applied = at.clone();
        state.fed = at.clone();
        state.written.clear();
        drop(state);
        self.is_live.send_replace(true);
    }

    /// The feed ends: nobody listens.
    fn end(&self) {
        self.is_live.send_replace(false);
    }

    /// Changes may go unnoticed for now. Nobody waits for the feed meanwhile.
    fn fail(&self) {
        self.state.lock().table.invalidate_all();
        self.is_live.send_replace(true);
    }

    pub(crate) fn stats(&self) -> TrackingStats {
        self.state.lock().table.stats()
    }
}

/// The two sets that an edge is in.
fn keys(edge: Edge) -> impl Iterator<Item = UserSet> {
    let following = UserSet { side: Side::Following, of: edge.follower };
    let followers = UserSet { side: Side::Followers, of: edge.followee };
    [following, followers].into_iter()
}

/// The edges that a write has changed. Its events come one after another and end at the position of its receipt.
fn changed_edges<'a>(
    changes: &'a FollowerChanges,
    receipt: &'a Receipt,
) -> impl Iterator<Item = (Edge, Position)> + 'a {
    let mut sequence = receipt.position.sequence;
    let commands = changes.commands.iter().zip(&receipt.changed).rev();
    commands.filter(|&(_, &changed)| changed).map(move |(command, _)| {
        let position = sequence.on(receipt.position.shard);
        sequence.0 = sequence.0.saturating_sub(1);
        (Edge { follower: changes.follower, followee: command.followee }, position)
    })
}
