//! The state of one connection between its commands.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use kinfolk_core::{Epoch, Error, Frontier, Result, Store};

use super::batch::{Arguments, Batch};
use super::connection_quota::{ConnectionQuotas, ConnectionSlot, Quota};
use super::frame::FrameLimits;
use super::memory::{Held, Pools, Purpose};
use super::reply::Version;
use super::settings::RespSettings;
use super::trace::Sampling;
use crate::access::{Caller, Identity};
use crate::service::Service;

/// Maximum number of steps of a transaction: as many edges as the graph takes in one commit.
const TRANSACTION_STEPS_MAX: usize = 10_000;

/// The state that all connections share.
pub(super) struct Shared<S: Store> {
    pub service: Arc<Service<S>>,
    pub settings: RespSettings,
    /// The number of open connections.
    pub connections: AtomicUsize,
    /// The number of accepted connections so far.
    pub accepted: AtomicU64,
    /// The connections of each caller.
    pub quotas: Arc<ConnectionQuotas>,
    /// The memory that they hold.
    pub pools: Arc<Pools>,
    pub sampling: Sampling,
}

/// One connection.
pub(super) struct Session<S: Store> {
    pub shared: Arc<Shared<S>>,
    pub id: u64,
    pub peer: SocketAddr,
    pub name: String,
    /// The caller, once it has authenticated.
    pub caller: Option<Caller>,
    /// The last command has changed the caller.
    pub caller_changed: bool,
    /// When the caller's credential ends, as far as is known.
    pub credential_until: Option<Instant>,
    /// This connection in the caller's quota; none while authentication is off.
    slot: Option<ConnectionSlot>,
    pub version: Version,
    /// Why a token of `AFTER` was refused: the next read or write replies with it.
    refused_token: Option<Box<Error>>,
    /// What this connection has written or asked to see: its reads show it, and its tokens cover it.
    pub seen: Frontier,
    /// The epoch of what it has seen.
    epoch: Epoch,
    pub transaction: Option<Box<Queue>>,
    /// The memory that this connection holds while it waits.
    pub memory: Held,
    /// The connection reads no more commands.
    pub closing: bool,
}

/// The commands of a transaction that wait for `EXEC`.
#[derive(Debug)]
pub(super) struct Queue {
    pub input: Vec<u8>,
    pub batch: Batch,
    pub opened_at: Instant,
    /// Their cost: one step for each edge that is written, and for any other command.
    pub steps: usize,
    /// A command was refused, so none will run, and none is kept.
    pub aborted: bool,
}

impl Queue {
    fn new(opened_at: Instant) -> Self {
        Self { input: Vec::new(), batch: Batch::default(), opened_at, steps: 0, aborted: false }
    }
}

impl<S: Store> Session<S> {
    pub(crate) fn new(shared: Arc<Shared<S>>, peer: SocketAddr) -> Self {
        let id = shared.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        Self::with_id(shared, peer, id)
    }

    fn with_id(shared: Arc<Shared<S>>, peer: SocketAddr, id: u64) -> Self {
        let caller = shared.service.access.anonymous().ok();
        let pool = caller.is_none().then(|| Arc::clone(&shared.pools.unauthenticated));
        Self {
            memory: Held::new(Arc::clone(&shared.pools), pool),
            epoch: shared.service.epoch(),
            shared,
            id,
            peer,
            name: String::new(),
            caller,
            caller_changed: false,
            credential_until: None,
            slot: None,
            version: Version::Two,
            refused_token: None,
            seen: Frontier::default(),
            transaction: None,
            closing: false,
        }
    }

    /// Back to the state of a new connection.
    pub(crate) fn reset(&mut self) {
        let new = Self::with_id(Arc::clone(&self.shared), self.peer, self.id);
        *self = Self { caller_changed: true, ..new };
    }

    /// Sets the caller of the commands that follow. Refused if it has too many connections, or they hold too much memory.
    pub(crate) fn set_caller(&mut self, caller: Caller) -> Result<()> {
        if !self.slot.as_ref().is_some_and(|slot| slot.is_of(&caller.identity)) {
            let quota = self.quota(&caller.identity);
            let slot = quota.map(|quota| self.shared.quotas.take(&caller.identity, quota)).transpose()?;
            self.memory.move_to(slot.as_ref().map(|slot| Arc::clone(&slot.memory)))?;
            self.slot = slot;
        }
        self.caller = Some(caller);
        self.caller_changed = true;
        self.update_credential_end();
        Ok(())
    }

    /// The quota of a caller; none while authentication is off.
    fn quota(&self, identity: &Identity) -> Option<Quota> {
        let settings = &self.shared.settings;
        let (connections_max, memory_bytes_max) = match identity {
            Identity::Anyone => return None,
            Identity::Service(_) => (settings.service_connections_max, settings.service_memory_bytes_max),
            Identity::User(_) => (settings.user_connections_max, settings.user_memory_bytes_max),
        };
        Some(Quota { connections_max, memory_bytes_max })
    }

    /// Updates when the caller's credential ends; that changes with keys and clocks.
    pub(crate) fn update_credential_end(&mut self) {
        let remaining = self.caller.as_ref().and_then(Caller::remaining);
        self.credential_until = remaining.and_then(|remaining| Instant::now().checked_add(remaining));
    }

    /// Makes the reads that follow show what a token covers, besides what they have to show already.
    pub(crate) fn require_after(&mut self, token: &str) {
        match self.shared.service.frontier(token) {
            Ok(asked) => self.seen.join(&asked),
            Err(error) => self.refused_token = Some(Box::new(error)),
        }
    }

    /// Replies once that a token was refused.
    pub(crate) fn require_token(&mut self) -> Result<()> {
        self.refused_token.take().map_or(Ok(()), |refused| Err(*refused))
    }

    /// Forgets what it saw before the store was restored; the next command replies so.
    pub(crate) fn require_current_epoch(&mut self) {
        let current = self.shared.service.epoch();
        if std::mem::replace(&mut self.epoch, current) != current && !self.seen.is_empty() {
            self.seen = Frontier::default();
            self.refused_token = Some(Box::new(Error::TokenFromOtherEpoch));
        }
    }

    /// The token of all that it has seen.
    pub(crate) fn token(&self) -> String {
        self.shared.service.token(self.seen.clone())
    }

    pub(crate) fn limits(&self) -> &FrameLimits {
        let settings = &self.shared.settings;
        if self.caller.is_some() { &settings.frame } else { &settings.unauthenticated_frame }
    }

    /// Queues the commands that follow.
    pub(crate) fn open_transaction(&mut self) {
        self.transaction = Some(Box::new(Queue::new(Instant::now())));
    }

    /// None of the queued commands will be run: they are dropped, and so are those that follow until `EXEC`.
    pub(crate) fn abort_transaction(&mut self) {
        if let Some(queue) = &mut self.transaction {
            **queue = Queue { aborted: true, ..Queue::new(queue.opened_at) };
            self.memory.release(Purpose::Queue);
        }
    }

    /// Releases its memory; no more commands run.
    pub(crate) fn release(&mut self) {
        self.transaction = None;
        for purpose in [Purpose::Input, Purpose::Queue, Purpose::Output] {
            self.memory.release(purpose);
        }
    }

    /// Queues a command with this number of steps.
    pub(crate) fn enqueue(&mut self, arguments: Arguments<'_>, steps: usize) -> Result<()> {
        let max = self.shared.settings.transaction_bytes_max;
        let Some(queue) = self.transaction.as_mut().filter(|queue| !queue.aborted) else { return Ok(()) };
        queue.steps += steps;
        if queue.steps > TRANSACTION_STEPS_MAX {
            let what = "commands and edges in one transaction";
            return Err(Error::TooMany { what, count: queue.steps, max: TRANSACTION_STEPS_MAX });
        }
        if queue.input.len() + queue.batch.capacity_bytes() + arguments.bytes() > max {
            return Err(Error::TooLarge { max });
        }
        queue.batch.push_copy(arguments, &mut queue.input);
        let bytes = queue.input.capacity() + queue.batch.capacity_bytes();
        Ok(self.memory.set(Purpose::Queue, bytes)?)
    }
}
