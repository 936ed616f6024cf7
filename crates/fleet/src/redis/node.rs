//! A node of the cluster: its connection, made when it is needed, and its breaker.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use super::breaker::Breaker;
use super::connection::{Access, Connection};
use super::{Command, Reply};

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
    connection: Mutex<Option<Arc<Connection>>>,
    breaker: Breaker,
}

impl Node {
    pub(super) fn new(address: String, access: Arc<Access>) -> Self {
        Self { address, access, connection: Mutex::default(), breaker: Breaker::default() }
    }

    /// Whether calls are not even made, because they have failed.
    pub(super) fn is_left_out(&self) -> bool {
        self.breaker.is_open()
    }

    /// The replies to commands, in their order, within some time.
    pub(super) async fn call(
        &self,
        commands: &[&Command],
        limit: Duration,
    ) -> Result<Vec<Reply>, Unanswered> {
        if !self.breaker.admits() {
            return Err(Unanswered::LeftOut);
        }
        let deadline = Instant::now() + limit;
        let answered = match timeout_at(deadline, self.connected(limit)).await {
            Ok(Some(connection)) => {
                let replies = timeout_at(deadline, connection.call(commands)).await;
                replies
                    .map_or(Err(Unanswered::TimedOut), |replies| replies.map_err(|_| Unanswered::Unreachable))
            }
            Ok(None) => Err(Unanswered::Unreachable),
            Err(_) => Err(Unanswered::TimedOut),
        };
        let is_up = answered.as_ref().is_ok_and(|replies| !replies.iter().any(is_down));
        if is_up {
            self.breaker.succeeded();
        } else if self.breaker.failed() {
            tracing::warn!(node = self.address, "a node of Redis is left out for a while");
            // The next call is made on a new connection: this one may have a long queue.
            self.forget_connection().await;
        }
        if answered.as_ref().is_ok_and(|replies| replies.iter().any(has_no_script)) {
            self.forget_connection().await;
        }
        answered
    }

    /// The reply to a question about the cluster. It is asked whether or not the node is left out.
    pub(super) async fn ask(&self, asked: &[&str], limit: Duration) -> Option<Reply> {
        let reply = async { self.connected(limit).await?.ask(asked).await.ok() };
        match timeout(limit, reply).await {
            Ok(Some(reply)) => Some(reply),
            _ => {
                self.forget_connection().await;
                None
            }
        }
    }

    async fn connected(&self, limit: Duration) -> Option<Arc<Connection>> {
        let mut known = self.connection.lock().await;
        if let Some(connection) = known.as_ref().filter(|connection| connection.is_open()) {
            return Some(Arc::clone(connection));
        }
        match Connection::open(&self.address, &self.access, limit).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *known = Some(Arc::clone(&connection));
                Some(connection)
            }
            Err(error) => {
                *known = None;
                tracing::debug!(node = self.address, %error, "no connection to a node of Redis");
                None
            }
        }
    }

    async fn forget_connection(&self) {
        *self.connection.lock().await = None;
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
