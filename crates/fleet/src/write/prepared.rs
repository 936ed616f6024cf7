//! The statements of a batch, prepared before its transaction begins: under the lock of a shard every round trip counts.

use tokio_postgres::{Error, Statement};

use crate::postgres::{Pooled, Query, Statements};

/// Prepared statements of one connection, in the order in which a batch uses them.
pub(super) struct Prepared {
    pub(super) lock: Statement,
    pub(super) head: Statement,
    pub(super) edges: Statement,
    pub(super) users: Statement,
    pub(super) delete: Statement,
    pub(super) upsert: Statement,
    pub(super) count: Statement,
    pub(super) append: Statement,
}

impl Prepared {
    /// Round trips are made only by the first batch of a connection.
    pub(super) async fn new(connection: &Pooled, statements: &Statements) -> Result<Self, Error> {
        Ok(Self {
            lock: connection.prepare(statements, Query::LockShards).await?,
            head: connection.prepare(statements, Query::Head).await?,
            edges: connection.prepare(statements, Query::Edges).await?,
            users: connection.prepare(statements, Query::Users).await?,
            delete: connection.prepare(statements, Query::DeleteFollowing).await?,
            upsert: connection.prepare(statements, Query::UpsertFollowing).await?,
            count: connection.prepare(statements, Query::UpsertUsers).await?,
            append: connection.prepare(statements, Query::AppendLog).await?,
        })
    }
}
