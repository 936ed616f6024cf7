//! The state of one connection between its commands.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use kinfolk_core::{Epoch, Error, Frontier, Result, Store};
use tokio::sync::Notify;

use super::batch::{Arguments, Batch};
use super::clients::{Addresses, Client, Clients};
use super::command::Command;
use super::connection_quota::{ConnectionQuotas, ConnectionSlot, Quota};
use super::frame::FrameLimits;
use super::keys;
use super::memory::{Held, Pools, Purpose};
use super::operation_rate::OperationRate;
use super::reply::{Output, Version};
use super::reply_mode::ReplyMode;
use super::request::is;
use super::settings::RespSettings;
use super::slow_log::SlowLog;
use super::trace::Sampling;
use super::tracking::{Mode, Seen, Subscription, Tracking};
use crate::access::{Caller, Identity, Scope};
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
    /// What their clients have cached.
    pub tracking: Arc<Tracking>,
    pub sampling: Sampling,
    /// The open connections.
    pub clients: Arc<Clients>,
    pub slow_log: SlowLog,
    pub started_at: Instant,
    pub rate: OperationRate,
}

impl<S: Store> Shared<S> {
    pub(crate) fn new(service: Arc<Service<S>>, settings: RespSettings) -> Self {
        Self {
            pools: Arc::new(Pools::new(&settings)),
            sampling: Sampling::new(settings.trace_sample),
            slow_log: SlowLog::new(settings.slow_log_threshold, settings.slow_log_length),
            tracking: Arc::new(Tracking::new(settings.tracking_items_max)),
            clients: Arc::default(),
            started_at: Instant::now(),
            rate: OperationRate::default(),
            service,
            settings,
            connections: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            quotas: Arc::default(),
        }
    }
}

/// One connection.
pub(super) struct Session<S: Store> {
    pub shared: Arc<Shared<S>>,
    pub id: u64,
    /// This connection, as others see it.
    pub client: Arc<Client>,
    pub reply_mode: ReplyMode,
    /// The commands of a transaction run.
    pub is_executing: bool,
    /// The caller, once it has authenticated.
    pub caller: Option<Caller>,
    /// The last command has changed the caller.
    pub caller_changed: bool,
    /// When the caller's credential ends, as far as is known.
    pub credential_until: Option<Instant>,
    /// This connection in the caller's quota; none while authentication is off.
    slot: Option<ConnectionSlot>,
    pub version: Version,
    /// What the connection has seen is of another epoch: the next read or write replies so.
    refused_token: Option<Box<Error>>,
    /// What this connection has written or asked to see: its reads show it, and its tokens cover it.
    pub seen: Frontier,
    /// The epoch of what it has seen.
    epoch: Epoch,
    pub transaction: Option<Box<Queue>>,
    /// Set while its client caches what it reads.
    pub subscription: Option<Box<Subscription>>,
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
    pub(crate) fn new(shared: Arc<Shared<S>>, addresses: Addresses, wake: Arc<Notify>) -> Self {
        let id = shared.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        let client = shared.clients.add(id, addresses, wake);
        Self::of(shared, client)
    }

    fn of(shared: Arc<Shared<S>>, client: Arc<Client>) -> Self {
        let caller = shared.service.access.anonymous().ok();
        client.set_identity(caller.as_ref().map(|caller| caller.identity.clone()));
        let pool = caller.is_none().then(|| Arc::clone(&shared.pools.unauthenticated));
        Self {
            memory: Held::new(Arc::clone(&shared.pools), pool),
            epoch: shared.service.epoch(),
            shared,
            id: client.id,
            client,
            reply_mode: ReplyMode::On,
            is_executing: false,
            caller,
            caller_changed: false,
            credential_until: None,
            slot: None,
            version: Version::Two,
            refused_token: None,
            seen: Frontier::default(),
            transaction: None,
            subscription: None,
            closing: false,
        }
    }

    /// Back to the state of a new connection.
    pub(crate) fn reset(&mut self) {
        self.client.set_name(String::new());
        let new = Self::of(Arc::clone(&self.shared), Arc::clone(&self.client));
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
        self.client.set_identity(Some(caller.identity.clone()));
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

    /// Whether the caller's credential is no longer valid.
    pub(crate) fn is_refused(&self) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.check().is_err())
    }

    /// Makes the reads that follow show what a token covers, besides what they have to show already.
    pub(crate) fn require_after(&mut self, token: &str) -> Result<()> {
        self.seen.join(&self.shared.service.frontier(token)?);
        Ok(())
    }

    /// Replies once that what it has seen is void.
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

    /// Remembers what a command is about to read, if its client caches it.
    pub(crate) fn note_read(&mut self, command: &Command<S>, arguments: Arguments<'_>) {
        let Self { subscription: Some(subscription), seen, epoch, shared, .. } = self else { return };
        if command.scope != Some(Scope::Read) {
            return;
        }
        let (kind, keys_max) = (shared.service.id_kind(), shared.service.users_max());
        // A call with more keys is refused.
        let is_tracked = |places: &Vec<usize>| subscription.is_caching() && places.len() <= keys_max;
        let places = command.keys.places(arguments).filter(is_tracked);
        let names = places.into_iter().flatten().filter_map(|place| arguments.get(place));
        let keys = names.filter_map(|name| Some((keys::parse(kind, name).ok()?, name)));
        subscription.will_read(keys, Seen { epoch: *epoch, frontier: seen });
    }

    /// What `CLIENT CACHING` said was about the command that has ended, or about all of a transaction.
    pub(crate) fn end_caching(&mut self, arguments: Arguments<'_>) {
        let is_client = arguments.get(0).is_some_and(|name| is(name, "CLIENT"));
        if self.transaction.is_none()
            && !is_client
            && let Some(subscription) = &mut self.subscription
        {
            subscription.caching = None;
        }
    }

    /// Writes what the client has to drop. A caller that may no longer hear of all keys hears only that something has changed.
    pub(crate) fn write_invalidations(&self, out: &mut Output) {
        let Some(subscription) = &self.subscription else { return };
        let may_listen = |caller: &Caller| caller.holds(Scope::Read) && caller.require_service().is_ok();
        if let Mode::Broadcast(_) = subscription.wanted.mode
            && !self.caller.as_ref().is_some_and(may_listen)
        {
            subscription.drop_keys();
        }
        subscription.flush(out);
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
