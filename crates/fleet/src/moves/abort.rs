//! Giving a move up: the copy is dropped, and the shard is open where it was.

use kinfolk_core::Error;

use super::{Mover, TRANSACTION_MAX};
use crate::postgres::{Failure, Pooled};

impl Mover<'_> {
    pub(super) async fn abort(&self) -> Result<(), Failure> {
        let (_, term) = self.shared.catalog().assignment(self.moved.shard).await.map_err(Failure::Final)?;
        if term != self.moved.term || self.is_open_at_new_host().await? {
            let (shard, host) = (self.moved.shard.0, &self.moved.to);
            let detail =
                format!("shard {shard} is open on host {host} already: finish the move, then move it back");
            return Err(Failure::Final(Error::InvalidInput { detail }));
        }
        // First the copy: without it, no process that is still at the move can open it.
        self.drop_copy().await?;
        self.open_old().await?;
        self.erase_copy().await?;
        self.leave_old().await?;
        self.shared.catalog().end_move(&self.moved, self.number.get()).await.map_err(Failure::Transient)
    }

    /// Deletes the record of the copy, so that nobody can open it.
    async fn drop_copy(&self) -> Result<(), Failure> {
        let shard = self.number_of_shard();
        let to = &self.to;
        let failed = |error: tokio_postgres::Error| Failure::of_statement(&to.name, &error);
        let dropped = to.transaction(TRANSACTION_MAX, async |connection: &Pooled| {
            let client = connection.client();
            self.require_copy_is_own(connection).await?;
            client.execute("DELETE FROM incoming WHERE shard = $1", &[&shard]).await.map_err(failed)?;
            let marks = "DELETE FROM incoming_marks WHERE shard = $1";
            client.execute(marks, &[&shard]).await.map(drop).map_err(failed)
        });
        dropped.await
    }

    /// The old host keeps the shard, and forgets the move.
    async fn leave_old(&self) -> Result<(), Failure> {
        let (shard, number) = (self.number_of_shard(), self.number.get());
        let leave = format!("DELETE FROM outgoing WHERE shard = {shard} AND mover = {number}");
        self.from.change(&leave).await.map(drop)
    }
}
