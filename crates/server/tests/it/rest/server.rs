//! A server on loopback with the reference store behind it.

use std::net::SocketAddr;
use std::sync::Arc;

use kinfolk_conformance::SimulatedClock;
use kinfolk_core::graph::GraphSettings;
use kinfolk_core::{Context, IdKind, Keyring, SigningKey, Store};
use kinfolk_server::rest::{self, RestSettings};
use kinfolk_server::{Access, Door, Service, ServiceSettings};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

use super::super::administration::Scripted;
use super::super::store::{Watch, WatchedStore};
use super::client::{Answer, Connection};

pub(crate) struct Server<S: Store = WatchedStore> {
    pub address: SocketAddr,
    pub door: Arc<Door<S>>,
    pub clock: Arc<SimulatedClock>,
    pub administration: Arc<Scripted>,
    pub watch: Watch,
    stop: CancellationToken,
    served: Option<JoinHandle<()>>,
    runtime: Runtime,
}

impl Server {
    /// Serves an empty graph with integer ids.
    pub(crate) fn start() -> Self {
        let server = Self::closed(RestSettings::default());
        server.open(IdKind::Integer, Access::open());
        server
    }

    pub(crate) fn with(settings: RestSettings) -> Self {
        let server = Self::closed(settings);
        server.open(IdKind::Integer, Access::open());
        server
    }

    pub(crate) fn open(&self, kind: IdKind, access: Access) {
        self.open_on(kind, access, |store| store);
    }
}

impl<S: Store> Server<S> {
    /// Nothing is loaded yet.
    pub(crate) fn closed(settings: RestSettings) -> Self {
        Self::listening(settings, None)
    }

    /// As [`Server::closed`], over TLS.
    pub(crate) fn listening(settings: RestSettings, tls: Option<Arc<ServerConfig>>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (door, stop) = (Door::closed(), CancellationToken::new());
        let served = rest::serve(listener, tls, Arc::clone(&door), settings, stop.clone());
        let served = Some(runtime.spawn(served));
        let clock = Arc::new(SimulatedClock::default());
        Self {
            address,
            door,
            clock,
            administration: Arc::default(),
            watch: Watch::default(),
            stop,
            served,
            runtime,
        }
    }

    /// Serves what is made of the watched store.
    pub(crate) fn open_on(&self, kind: IdKind, access: Access, make: impl FnOnce(WatchedStore) -> S) {
        let store = make(WatchedStore::new(kind, Arc::clone(&self.clock), &self.watch));
        let graph = GraphSettings { following_limit: 2_000, ..GraphSettings::default() };
        let keys = Keyring::new(SigningKey::new([7; 32]), []);
        let context = Context::new(Arc::new(store), keys, Context::<S>::PAGE_LIMIT_MAX);
        let settings = ServiceSettings { graph, ..ServiceSettings::default() };
        let administration = Arc::clone(&self.administration);
        let service = Service::new(context, settings, access, administration);
        self.door.open(Arc::new(service));
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.address)
    }

    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.connect().request(method, path, headers, body)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], b"")
    }

    /// The JSON of a read that must succeed.
    pub(crate) fn read(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        answer.json()
    }

    pub(crate) fn act(&self, actor: u64, method: &str, path: &str) -> Answer {
        self.request(method, path, &[("kinfolk-actor", &actor.to_string())], b"")
    }

    /// One user follows another; answers the token.
    pub(crate) fn follow(&self, actor: u64, target: u64) -> String {
        let answer = self.act(actor, "POST", &format!("/v1/users/{target}/follow"));
        assert_eq!(answer.status, 204, "{answer:?}");
        answer.header("kinfolk-token").unwrap().to_owned()
    }

    /// Registers a post that JSON describes, without a header that names an actor.
    pub(crate) fn post(&self, body: &str) -> Answer {
        self.post_with(&[], body)
    }

    pub(crate) fn post_with(&self, headers: &[(&str, &str)], body: &str) -> Answer {
        let headers = [headers, &[("content-type", "application/json")]].concat();
        self.request("POST", "/v1/posts", &headers, body.as_bytes())
    }

    /// A user writes a comment that JSON describes.
    pub(crate) fn comment(&self, author: u64, post: u64, key: &str, body: &str) -> Answer {
        let author = author.to_string();
        let headers = [
            ("kinfolk-actor", author.as_str()),
            ("idempotency-key", key),
            ("content-type", "application/json"),
        ];
        self.request("POST", &format!("/v1/posts/{post}/comments"), &headers, body.as_bytes())
    }

    /// A user edits the version of a comment that it has seen.
    pub(crate) fn edit(&self, author: u64, comment: &str, seen: &str, body: &str) -> Answer {
        let author = author.to_string();
        let headers =
            [("kinfolk-actor", author.as_str()), ("if-match", seen), ("content-type", "application/json")];
        self.request("PATCH", &format!("/v1/comments/{comment}"), &headers, body.as_bytes())
    }

    /// A moderator removes a comment.
    pub(crate) fn remove(&self, comment: &str, body: &str) -> Answer {
        let headers = [("content-type", "application/json")];
        self.request("POST", &format!("/v1/comments/{comment}/remove"), &headers, body.as_bytes())
    }

    pub(crate) fn check(&self, body: &str) -> Answer {
        self.request("POST", "/v1/check", &[("content-type", "application/json")], body.as_bytes())
    }

    /// Tells the server to stop, without waiting.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits for the server to end.
    pub(crate) fn join(mut self) {
        let served = self.served.take().unwrap();
        self.runtime.block_on(served).unwrap();
    }
}
