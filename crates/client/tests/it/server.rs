//! A server on loopback with an embedded store behind it.

use std::net::SocketAddr;
use std::sync::Arc;

use kinfolk_client::{Client, blocking};
use kinfolk_core::{Context, IdKind};
use kinfolk_embedded::{Embedded, Settings};
use kinfolk_server::rest::{self, RestSettings};
use kinfolk_server::{Access, Door, Protocol, Service, ServiceSettings, Tls};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::administration::StoreAdministration;

pub(crate) struct Server {
    pub address: SocketAddr,
    scheme: &'static str,
    stop: CancellationToken,
    runtime: Runtime,
    _folder: TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::listening(None)
    }

    pub(crate) fn listening(tls: Option<&Tls>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store =
            Embedded::create(&folder.path().join("data"), IdKind::Integer, Settings::default()).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (door, stop) = (Door::closed(), CancellationToken::new());
        let config = tls.map(|tls| tls.server_config(Protocol::Rest).unwrap());
        let served = rest::serve(listener, config, Arc::clone(&door), RestSettings::default(), stop.clone());
        runtime.spawn(served);
        let administration = Arc::new(StoreAdministration(store.clone()));
        let keys = store.keyring();
        let context = Context::new(Arc::new(store), keys, Context::<Embedded>::PAGE_LIMIT_MAX);
        let (settings, access) = (ServiceSettings::default(), Access::open());
        door.open(Arc::new(Service::new(context, settings, access, administration)));
        let scheme = if tls.is_some() { "https" } else { "http" };
        Self { address, scheme, stop, runtime, _folder: folder }
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://localhost:{}", self.scheme, self.address.port())
    }

    pub(crate) fn blocking(&self) -> blocking::Client {
        blocking::Client::new(self.url()).unwrap()
    }

    /// Runs a test of the async client.
    pub(crate) fn run<F: Future<Output = ()>>(&self, test: impl FnOnce(Client) -> F) {
        self.runtime.block_on(test(Client::new(self.url()).unwrap()));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
