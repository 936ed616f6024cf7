//! What a failed statement or connection means for the caller.

use std::fmt::Display;
use std::time::Duration;

use deadpool_postgres::{HookError, PoolError};
use kinfolk_core::Error;
use tokio_postgres::error::SqlState;

/// When a caller is asked to try again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Why something did not happen. The failure of a COMMIT is treated apart: here, nothing was changed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The host does not have the shard in this epoch and term: the map is old.
    Moved,
    /// The same may succeed a moment later.
    Transient(Error),
    /// Trying again would fail again.
    Final(Error),
}

impl Failure {
    /// The error for a caller, once nothing more is tried.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Moved => unavailable("the shard", "it is being moved"),
            Self::Transient(error) | Self::Final(error) => error,
        }
    }

    /// What a failed statement on a host means.
    pub(crate) fn of_statement(host: &str, error: &tokio_postgres::Error) -> Self {
        let Some(state) = error.code() else {
            return match error.to_string().as_str() {
                // The server asks for a password, and the connection string has none.
                reason @ ("invalid configuration" | "authentication error") => {
                    Self::Final(Error::Storage { detail: format!("host {host}: {reason}") })
                }
                reason => Self::Transient(unavailable(host, reason)),
            };
        };
        let detail = error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string);
        if *state == SqlState::DISK_FULL {
            return Self::Final(Error::StorageFull { detail });
        }
        // Connections, resources and an operator's intervention; locks, deadlocks and aborted transactions.
        let is_transient =
            ["08", "53", "57", "40", "55", "25"].iter().any(|class| state.code().starts_with(class));
        if is_transient {
            Self::Transient(unavailable(host, detail))
        } else {
            Self::Final(Error::Storage { detail: format!("host {host}: {detail}") })
        }
    }

    /// What it means that there is no connection to a host.
    pub(crate) fn of_pool(host: &str, error: &PoolError) -> Self {
        match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
                Self::of_statement(host, error)
            }
            other => Self::Transient(unavailable(host, other)),
        }
    }
}

/// A host that can't be reached right now.
pub(crate) fn unavailable(what: &str, reason: impl Display) -> Error {
    tracing::debug!(what, %reason, "not reachable");
    Error::Unavailable { what: what.to_owned(), retry_after: RETRY_AFTER }
}
