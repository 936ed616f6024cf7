//! What one connection asked for with `CLIENT TRACKING`, for as long as this lives.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::{Context, Poll};

use kinfolk_core::graph::UserSet;
use kinfolk_core::{Epoch, Frontier};

use super::super::reply::Output;
use super::Tracking;
use super::outbox::{Outbox, Pending};

/// Which keys a connection hears of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Mode {
    /// All that it reads.
    Default,
    /// What it reads right after `CLIENT CACHING YES`.
    OptIn,
    /// What it reads, but not right after `CLIENT CACHING NO`.
    OptOut,
    /// All keys with one of these prefixes, read or not; all keys if there is none.
    Broadcast(Vec<Box<[u8]>>),
}

/// What a connection wants to hear of.
#[derive(Clone, Debug)]
pub(in super::super) struct Wanted {
    pub mode: Mode,
    /// Whether it does not want to hear of its own changes.
    pub is_no_loop: bool,
}

/// What a connection has seen.
#[derive(Debug)]
pub(in super::super) struct Seen<'a> {
    pub epoch: Epoch,
    pub frontier: &'a mut Frontier,
}

/// A connection that receives invalidations.
#[derive(Debug)]
pub(in super::super) struct Subscription {
    tracking: Arc<Tracking>,
    connection: u64,
    pub wanted: Wanted,
    /// What `CLIENT CACHING` said about the next command or transaction.
    pub caching: Option<bool>,
    outbox: Arc<Outbox>,
}

impl Subscription {
    pub(crate) fn new(tracking: &Arc<Tracking>, connection: u64, wanted: Wanted) -> Self {
        let outbox = Arc::new(Outbox::default());
        tracking.subscribe(connection, Arc::clone(&outbox), &wanted);
        Self { tracking: Arc::clone(tracking), connection, wanted, caching: None, outbox }
    }

    /// The client drops everything: what it has cached is not known here.
    pub(crate) fn drop_everything(&self) {
        self.outbox.add_everything();
    }

    /// Forgets which keys there are to drop: the client drops everything instead.
    pub(crate) fn drop_keys(&self) {
        if !self.outbox.is_empty() {
            self.outbox.add_everything();
        }
    }

    /// Whether the client caches what the next command reads.
    pub(crate) fn is_caching(&self) -> bool {
        match self.wanted.mode {
            Mode::Default => true,
            Mode::OptIn => self.caching == Some(true),
            Mode::OptOut => self.caching != Some(false),
            // It hears of all keys by their usual names, and by others of what it reads.
            Mode::Broadcast(_) => true,
        }
    }

    /// The connection is about to read these keys. Adds to `seen` what the read must show, so that it shows everything that the
    /// client was told to drop.
    pub(crate) fn will_read<'a>(&self, keys: impl Iterator<Item = (UserSet, &'a [u8])>, seen: Seen<'_>) {
        self.tracking.will_read(self.connection, keys, seen);
    }

    /// The outbox, to wait for something to send.
    pub(crate) fn signal(&self) -> Signal {
        Signal(Arc::clone(&self.outbox))
    }

    /// Writes what there is to send as one message.
    pub(crate) fn flush(&self, out: &mut Output) {
        match self.outbox.take() {
            Pending::Everything => {
                out.push(2);
                out.bulk("invalidate");
                out.null();
            }
            Pending::Keys(keys) if keys.is_empty() => {}
            Pending::Keys(mut keys) => {
                let mut known = HashSet::new();
                if self.wanted.is_no_loop {
                    // The feed may have heard of a change before this connection knew that it was its own.
                    self.tracking.drop_own(self.connection, &mut keys);
                }
                keys.retain(|key| known.insert(Arc::clone(&key.name)));
                if !keys.is_empty() {
                    out.push(2);
                    out.bulk("invalidate");
                    out.array(keys.len());
                    keys.iter().for_each(|key| out.bulk(&key.name));
                }
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.tracking.unsubscribe(self.connection);
    }
}

/// Ready when a subscription has something to send.
pub(in super::super) struct Signal(Arc<Outbox>);

impl Signal {
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll(context)
    }
}
