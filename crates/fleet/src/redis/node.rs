//! A node of the cluster: its connection, made when it is needed, and its breaker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::breaker::Breaker;
use super::connection::{Access, Connection};
use super::{Command, Reply};

/// How long opening a connection may take, with signing in and loading the scripts.
const OPEN_MAX: Duration = Duration::from_secs(2);

/// Why a node has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It is left out, because it has failed before.
    LeftOut,
    /// It took too long.
    TimedOut,
    /// There is no connection, or it was lost.
    Unreachable,
    /// It does not serve the slot, or not all of it.
    Moved,
    /// It refuses the command.
    Refused,
}

/// A node.
pub(super) struct Node {
    pub(super) address: String,
    access: Arc<Access>,
    connection: RwLock<Option<Arc<Connection>>>,
    /// Whether a connection is being opened.
    is_opening: AtomicBool,
    /// It has been, or could not be.
    opened: Notify,
    /// Why the last connection could not be opened.
    problem: RwLock<Option<String>>,
    breaker: Breaker,
}

impl Node {
    pub(super) fn new(address: String, access: Arc<Access>) -> Self {
        Self {
            address,
            access,
            connection: RwLock::default(),
            is_opening: AtomicBool::new(false),
            opened: Notify::new(),
            problem: RwLock::default(),
            breaker: Breaker::default(),
        }
    }

    /// Whether calls are not even made, because they have failed.
    pub(super) fn is_left_out(&self) -> bool {
        self.breaker.is_open()
    }

    /// The replies to commands, in their order, within some time.
    pub(super) async fn call(
        self: &Arc<Self>,
        commands: &[&Command],
        limit: Duration,
    ) -> Result<Vec<Reply>, Unanswered> {
        if !self.breaker.admits() {
            return Err(Unanswered::LeftOut);
        }
        let reply = async {
            let connection = self.connected().await.ok_or(Unanswered::Unreachable)?;
            connection.call(commands).await.map_err(|_| Unanswered::Unreachable)
        };
        let answered = timeout(limit, reply).await.unwrap_or(Err(Unanswered::TimedOut));
        if answered.as_ref().is_ok_and(|replies| !replies.iter().any(is_down)) {
            self.breaker.succeeded();
        } else if self.breaker.failed() {
            tracing::warn!(node = self.address, "a node of Redis is left out for a while");
            // The next call is made on a new connection: this one may have a long queue.
            self.forget_connection();
        }
        if answered.as_ref().is_ok_and(|replies| replies.iter().any(has_no_script)) {
            self.forget_connection();
        }
        answered
    }

    /// The reply to a question about the cluster. It is asked whether or not the node is left out.
    pub(super) async fn ask(self: &Arc<Self>, asked: &[&str], limit: Duration) -> Option<Reply> {
        let reply = async { self.connected().await?.ask(asked).await.ok() };
        let reply = timeout(limit, reply).await.ok().flatten();
        if reply.is_none() {
            self.forget_connection();
        }
        reply
    }

    /// The connection, once it is open. It is opened in the background: that may take longer than who asks can wait.
    async fn connected(self: &Arc<Self>) -> Option<Arc<Connection>> {
        if let Some(connection) = self.known() {
            return Some(connection);
        }
        let opened = self.opened.notified();
        tokio::pin!(opened);
        // From here on it hears of it.
        opened.as_mut().enable();
        if !self.is_opening.swap(true, Ordering::AcqRel) {
            tokio::spawn(Arc::clone(self).open());
        }
        if let Some(connection) = self.known() {
            return Some(connection);
        }
        opened.await;
        self.known()
    }

    /// Why the last connection could not be opened, if one could not.
    pub(super) fn problem(&self) -> Option<String> {
        self.problem.read().clone()
    }

    fn known(&self) -> Option<Arc<Connection>> {
        self.connection.read().as_ref().filter(|connection| connection.is_open()).map(Arc::clone)
    }

    async fn open(self: Arc<Self>) {
        match Connection::open(&self.address, &self.access, OPEN_MAX).await {
            Ok(connection) => *self.connection.write() = Some(Arc::new(connection)),
            Err(error) => {
                tracing::debug!(node = self.address, %error, "no connection to a node of Redis");
                *self.problem.write() = Some(error.to_string());
                self.forget_connection();
            }
        }
        self.is_opening.store(false, Ordering::Release);
        self.opened.notify_waiters();
    }

    fn forget_connection(&self) {
        *self.connection.write() = None;
    }
}

/// The first word of an error.
pub(super) fn code(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Error(error) => Some(error.split(' ').next().unwrap_or_default()),
        _ => None,
    }
}

fn is_down(reply: &Reply) -> bool {
    code(reply).is_some_and(|code| matches!(code, "CLUSTERDOWN" | "LOADING" | "MASTERDOWN"))
}

fn has_no_script(reply: &Reply) -> bool {
    code(reply) == Some("NOSCRIPT")
}
