//! A small load balancer: asks every process whether it is ready, and names one for each request. It sends nothing itself.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::client::HttpClient;
use crate::serve::running::Running;

/// The interval between two questions.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// A process that serves.
#[derive(Debug)]
pub(super) struct Backend {
    pub(super) http: String,
    pub(super) resp: String,
    is_ready: AtomicBool,
}

impl Backend {
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// A connection was refused: it gets no more requests until it says that it is ready.
    pub(super) fn leave_out(&self) {
        self.is_ready.store(false, Ordering::Release);
    }
}

/// All processes that serve.
#[derive(Default)]
pub(super) struct Balancer {
    backends: Mutex<Vec<Arc<Backend>>>,
    turn: AtomicUsize,
}

impl Balancer {
    /// From now on it is asked.
    pub(super) fn add(&self, server: &Running) -> Arc<Backend> {
        let http = server.http.trim_start_matches("http://").to_owned();
        let backend = Backend { http, resp: server.resp.clone(), is_ready: AtomicBool::new(false) };
        let backend = Arc::new(backend);
        self.backends.lock().unwrap().push(Arc::clone(&backend));
        backend
    }

    /// It is asked no more.
    pub(super) fn remove(&self, backend: &Arc<Backend>) {
        self.backends.lock().unwrap().retain(|other| !Arc::ptr_eq(other, backend));
    }

    /// One that is ready, each in its turn.
    pub(super) fn choose(&self) -> Arc<Backend> {
        let backends = self.backends.lock().unwrap();
        let ready: Vec<_> = backends.iter().filter(|backend| backend.is_ready()).collect();
        assert!(!ready.is_empty(), "no process is ready: {backends:?}");
        Arc::clone(ready[self.turn.fetch_add(1, Ordering::Relaxed) % ready.len()])
    }

    /// Asks all processes again and again.
    pub(super) fn ask_until(&self, ends: &AtomicBool) {
        let mut client = HttpClient::default();
        while !ends.load(Ordering::Acquire) {
            let backends = self.backends.lock().unwrap().clone();
            for backend in backends {
                let answer = client.send(&backend.http, "GET /readyz", &[], "");
                backend.is_ready.store(answer.is_ok_and(|answer| answer.status == 200), Ordering::Release);
            }
            std::thread::sleep(ASK_EVERY);
        }
    }
}
