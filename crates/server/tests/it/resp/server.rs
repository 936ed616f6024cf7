//! A server on loopback with the watched reference store behind it.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use kinfolk_core::graph::GraphSettings;
use kinfolk_core::{Context, Id, IdKind, Keyring, SigningKey, Store};
use kinfolk_server::resp::{self, RespSettings};
use kinfolk_server::{Access, Service, ServiceSettings};
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

use super::super::administration::Scripted;
use super::super::store::{Watch, WatchedStore};
use super::client::Client;

pub(super) struct Server<S: Store = WatchedStore> {
    pub address: SocketAddr,
    pub watch: Watch,
    pub service: Arc<Service<S>>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// How a server differs from the usual one.
pub(super) struct Setup {
    pub kind: IdKind,
    pub settings: RespSettings,
    pub graph: GraphSettings,
    pub access: Access,
    pub tls: Option<Arc<ServerConfig>>,
    /// All users by number, if the store is to know them.
    pub users: Option<Vec<Id>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            kind: IdKind::Integer,
            // One thread: whoever blocks it blocks everybody, so that a test would notice.
            settings: RespSettings { threads: 1, ..RespSettings::default() },
            graph: GraphSettings::default(),
            access: Access::open(),
            tls: None,
            users: None,
        }
    }
}

impl Server {
    pub(super) fn start() -> Self {
        Self::with(Setup::default())
    }

    pub(super) fn with(setup: Setup) -> Self {
        Self::on(setup, |store| store)
    }
}

impl<S: Store> Server<S> {
    /// Serves what is made of the watched store.
    pub(super) fn on(setup: Setup, make: impl FnOnce(WatchedStore) -> S) -> Self {
        let watch = Watch::default();
        let store = make(WatchedStore::new(setup.kind, Arc::default(), &watch));
        let keys = Keyring::new(SigningKey::new([7; 32]), []);
        let context = Context::new(Arc::new(store), keys, Context::<S>::PAGE_LIMIT_MAX);
        let settings = ServiceSettings { graph: setup.graph, ..ServiceSettings::default() };
        let administration = Scripted { users: setup.users, ..Scripted::default() };
        let service = Service::new(context, settings, setup.access, Arc::new(administration));
        let service = Arc::new(service);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let (served, stopped) = (Arc::clone(&service), stop.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(resp::run(listener, setup.tls, served, setup.settings, stopped)).unwrap();
        });
        Self { address, watch, service, stop, thread: Some(thread) }
    }

    pub(super) fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// Tells the server to stop, without waiting.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }
}

impl<S: Store> Drop for Server<S> {
    fn drop(&mut self) {
        self.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}
