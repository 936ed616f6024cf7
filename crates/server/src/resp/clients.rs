//! All open connections, as `CLIENT LIST` and `CLIENT KILL` see them. What a connection does is not here.
//!
//! Each connection has a [`Client`], which its own thread updates once for a batch of commands; others only read it. The list of
//! all is touched when a connection opens and when it ends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::reply::Version;
use crate::access::{Caller, Identity, Scope};

/// The connections that are open, by id.
#[derive(Debug, Default)]
pub(super) struct Clients {
    open: Mutex<BTreeMap<u64, Weak<Client>>>,
}

impl Clients {
    /// Adds a connection, until its [`Client`] is dropped.
    pub(crate) fn add(self: &Arc<Self>, id: u64, addresses: Addresses, wake: Arc<Notify>) -> Arc<Client> {
        let client = Arc::new(Client {
            id,
            addresses,
            opened_at: Instant::now(),
            labels: Mutex::default(),
            active_millis: AtomicU64::new(0),
            command: AtomicU8::new(NO_COMMAND),
            queued: AtomicI32::new(NOT_QUEUING),
            version: AtomicU8::new(Version::Two.number()),
            is_killed: AtomicBool::new(false),
            wake: Mutex::new(wake),
            clients: Arc::clone(self),
        });
        self.open.lock().insert(id, Arc::downgrade(&client));
        client
    }

    /// The connections that a caller may know of, by id: its own; for administrators, and while authentication is off, all.
    pub(crate) fn visible_to(&self, caller: &Caller) -> Vec<Arc<Client>> {
        let open: Vec<_> = self.open.lock().values().filter_map(Weak::upgrade).collect();
        open.into_iter().filter(|client| !client.is_killed() && client.is_visible_to(caller)).collect()
    }
}

/// Both ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub peer: SocketAddr,
    pub local: Option<SocketAddr>,
}

/// What is known of a connection.
#[derive(Debug)]
pub(super) struct Client {
    pub id: u64,
    pub addresses: Addresses,
    opened_at: Instant,
    labels: Mutex<Labels>,
    /// When it was last served, in milliseconds since it was opened.
    active_millis: AtomicU64,
    /// The number of its last command in the table.
    command: AtomicU8,
    /// How many commands its transaction has queued.
    queued: AtomicI32,
    version: AtomicU8,
    /// It is to end.
    is_killed: AtomicBool,
    /// Wakes the connections of its thread.
    wake: Mutex<Arc<Notify>>,
    clients: Arc<Clients>,
}

/// No command yet, or an unknown one.
const NO_COMMAND: u8 = u8::MAX;
const NOT_QUEUING: i32 = -1;

/// What a client says of itself, and who it has proven to be.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    pub name: String,
    pub library_name: String,
    pub library_version: String,
    /// The caller, once it has authenticated.
    pub identity: Option<Identity>,
}

/// What a connection was doing when it was last served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activity {
    pub at: Instant,
    /// The number of its last command in the table.
    pub command: Option<u8>,
    /// How many commands its transaction has queued.
    pub queued: Option<usize>,
    pub version: Version,
}

impl Client {
    /// Notes what the connection was doing. Called by its own thread, once for a batch.
    pub(crate) fn note(&self, activity: Activity) {
        let Activity { at, command, queued, version } = activity;
        let millis = at.saturating_duration_since(self.opened_at).as_millis() as u64;
        self.active_millis.store(millis, Ordering::Relaxed);
        self.command.store(command.unwrap_or(NO_COMMAND), Ordering::Relaxed);
        self.queued.store(queued.map_or(NOT_QUEUING, |queued| queued as i32), Ordering::Relaxed);
        self.version.store(version.number(), Ordering::Relaxed);
    }

    pub(crate) fn labels(&self) -> Labels {
        self.labels.lock().clone()
    }

    pub(crate) fn set_name(&self, name: String) {
        self.labels.lock().name = name;
    }

    pub(crate) fn set_library_name(&self, name: String) {
        self.labels.lock().library_name = name;
    }

    pub(crate) fn set_library_version(&self, version: String) {
        self.labels.lock().library_version = version;
    }

    pub(crate) fn set_identity(&self, identity: Option<Identity>) {
        self.labels.lock().identity = identity;
    }

    /// How long it is open.
    pub(crate) fn age(&self) -> Duration {
        self.opened_at.elapsed()
    }

    /// How long ago it was last served.
    pub(crate) fn idle(&self) -> Duration {
        self.age().saturating_sub(Duration::from_millis(self.active_millis.load(Ordering::Relaxed)))
    }

    /// The number of its last command in the table.
    pub(crate) fn command(&self) -> Option<u8> {
        Some(self.command.load(Ordering::Relaxed)).filter(|&command| command != NO_COMMAND)
    }

    /// How many commands its transaction has queued; -1 without a transaction.
    pub(crate) fn queued(&self) -> i32 {
        self.queued.load(Ordering::Relaxed)
    }

    pub(crate) fn version(&self) -> u8 {
        self.version.load(Ordering::Relaxed)
    }

    /// Whether it is to end.
    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Relaxed)
    }

    /// Ends it after the commands that it runs now.
    pub(crate) fn kill(&self) {
        self.is_killed.store(true, Ordering::Relaxed);
        // It may wait for input. So may others of its thread, which look and wait again.
        self.wake.lock().notify_waiters();
    }

    /// It has moved to another thread.
    pub(crate) fn set_wake(&self, wake: Arc<Notify>) {
        *self.wake.lock() = wake;
    }

    /// Whether a caller may know of it.
    pub(crate) fn is_visible_to(&self, caller: &Caller) -> bool {
        match &caller.identity {
            Identity::Anyone => true,
            Identity::Service(_) if caller.holds(Scope::Admin) => true,
            identity => self.labels.lock().identity.as_ref() == Some(identity),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.clients.open.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::Id;

    use super::*;
    use crate::access::Scopes;
    use crate::limits::Budget;

    fn caller(identity: Identity, scopes: &[Scope]) -> Caller {
        let scopes: Scopes = scopes.iter().copied().collect();
        Caller::new(identity, scopes, Arc::new(Budget::unlimited()))
    }

    #[test]
    fn callers_see_their_own_and_administrators_see_all() {
        let clients = Arc::new(Clients::default());
        let peer = "127.0.0.1:1".parse().unwrap();
        let add = |id, identity| {
            let client = clients.add(id, Addresses { peer, local: None }, Arc::default());
            client.set_identity(identity);
            client
        };
        let (user, feed, ops) = (Identity::User(Id::Integer(7)), "feed", "ops");
        let service = |name: &str| Identity::Service(name.into());
        let open = [
            add(1, None),
            add(2, Some(user.clone())),
            add(3, Some(service(feed))),
            add(4, Some(service(ops))),
            add(5, Some(user.clone())),
        ];
        let seen =
            |caller: &Caller| clients.visible_to(caller).iter().map(|client| client.id).collect::<Vec<_>>();
        assert_eq!(seen(&caller(Identity::Anyone, &[])), [1, 2, 3, 4, 5]);
        assert_eq!(seen(&caller(service(ops), &[Scope::Admin])), [1, 2, 3, 4, 5]);
        assert_eq!(seen(&caller(service(feed), &[Scope::Read])), [3]);
        assert_eq!(seen(&caller(user.clone(), &[Scope::Read])), [2, 5]);
        assert_eq!(seen(&caller(user, &[Scope::Admin])), [2, 5]);
        drop(open);
        assert_eq!(seen(&caller(Identity::Anyone, &[])), [0_u64; 0]);
    }
}
