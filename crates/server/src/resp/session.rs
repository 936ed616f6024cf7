//! What is remembered about one connection between its commands.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use kinfolk_core::{Error, Result};

use super::batch::{Arguments, Batch};
use super::frame::FrameLimits;
use super::reply::Version;
use super::seats::{Seat, Seats};
use super::settings::RespSettings;
use crate::access::{Caller, Identity};
use crate::service::Service;

/// The most commands of a transaction: as many edges as the graph takes in one commit, so that it needs no more.
const TRANSACTION_STEPS_MAX: usize = 10_000;

/// What all connections share.
pub(super) struct Shared<S> {
    pub service: Arc<Service<S>>,
    pub settings: RespSettings,
    /// How many connections there are.
    pub connections: AtomicUsize,
    /// How many there have been.
    pub accepted: AtomicU64,
    /// How many each caller has.
    pub seats: Arc<Seats>,
}

/// One connection.
pub(super) struct Session<S> {
    pub shared: Arc<Shared<S>>,
    pub id: u64,
    pub peer: SocketAddr,
    pub name: String,
    /// Who is calling, once that is known.
    pub caller: Option<Caller>,
    /// The caller is not the one that the last command had; whoever remembers something about it forgets it.
    pub caller_changed: bool,
    /// The caller's right to this connection; none while everybody is the same caller.
    seat: Option<Seat>,
    pub version: Version,
    /// The token that the next read must have seen.
    pub after: Option<String>,
    /// The token of this connection's last write, until a read has seen it.
    pub written: Option<String>,
    pub transaction: Option<Box<Queue>>,
    /// Nothing more is to be read.
    pub closing: bool,
}

/// The commands of a transaction that wait for `EXEC`.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub input: Vec<u8>,
    pub batch: Batch,
    /// How much they do: an edge that is written counts as one, and so does any other command.
    pub steps: usize,
    /// One of them was refused, so none will be run.
    pub aborted: bool,
}

impl<S> Session<S> {
    pub fn new(shared: Arc<Shared<S>>, peer: SocketAddr) -> Self {
        let id = shared.accepted.fetch_add(1, Ordering::Relaxed) + 1;
        let caller = shared.service.access.anonymous().ok();
        Self {
            shared,
            id,
            peer,
            name: String::new(),
            caller,
            caller_changed: false,
            seat: None,
            version: Version::Two,
            after: None,
            written: None,
            transaction: None,
            closing: false,
        }
    }

    /// Back to the state of a new connection.
    pub fn reset(&mut self) {
        let new = Self::new(Arc::clone(&self.shared), self.peer);
        *self = Self { id: self.id, caller_changed: true, ..new };
    }

    /// Somebody else calls from here on. Refused if it has too many connections.
    pub fn set_caller(&mut self, caller: Caller) -> Result<()> {
        let settings = &self.shared.settings;
        let max = match caller.identity {
            Identity::Anyone => None,
            Identity::Service(_) => Some(settings.service_connections_max),
            Identity::User(_) => Some(settings.user_connections_max),
        };
        if let Some(max) = max
            && !self.seat.as_ref().is_some_and(|seat| seat.is_of(&caller.identity))
        {
            self.seat = Some(self.shared.seats.take(&caller.identity, max)?);
        }
        self.caller = Some(caller);
        self.caller_changed = true;
        Ok(())
    }

    /// Whether a read may answer from what is there, without waiting for a position.
    pub fn sees_enough(&self) -> bool {
        self.after.is_none() && self.written.is_none()
    }

    pub fn limits(&self) -> &FrameLimits {
        let settings = &self.shared.settings;
        if self.caller.is_some() { &settings.frame } else { &settings.unauthenticated_frame }
    }

    /// Keeps a command of so many steps for later.
    pub fn enqueue(&mut self, arguments: Arguments<'_>, steps: usize) -> Result<()> {
        let max = self.shared.settings.transaction_bytes_max;
        let Some(queue) = &mut self.transaction else { return Ok(()) };
        queue.steps += steps;
        if queue.steps > TRANSACTION_STEPS_MAX {
            let what = "commands and edges in one transaction";
            return Err(Error::TooMany { what, given: queue.steps, max: TRANSACTION_STEPS_MAX });
        }
        if queue.input.len() + queue.batch.capacity_bytes() + arguments.bytes() > max {
            return Err(Error::TooLarge { max });
        }
        queue.batch.push_copy(arguments, &mut queue.input);
        Ok(())
    }
}
