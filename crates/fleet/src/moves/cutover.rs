//! Handing a shard over: its old host takes no more writes, the copy gets the last changes, and the new host opens it.

use std::time::Duration;

use kinfolk_core::{Position, Sequence, Shard};
use tokio::time::{sleep, timeout};
use tokio_postgres::Row;

use super::{Mover, TRANSACTION_MAX};
use crate::postgres::{Failure, Pooled, unavailable};
use crate::write::LOCK_CLASS;

/// The shard is closed only when so few changes are left to bring.
const FEW: usize = 500;

/// Writes are refused for no longer: then the shard is opened where it was, and the copy follows for a while.
const CLOSED_MAX: Duration = Duration::from_secs(4);

/// How often that is tried.
const ATTEMPTS_MAX: u32 = 10;

/// A shard that is only closing is opened where it is.
pub(super) const OPEN_CLOSING: &str =
    "UPDATE shards SET state = 'open' WHERE shard = $1 AND term = $2 AND state = 'closing'";

/// Locking all marks of a host waits for projections under way, and keeps new ones out.
pub(super) const LOCK_ALL_MARKS: &str = "SELECT source, sequence FROM projected ORDER BY source FOR UPDATE";

impl Mover<'_> {
    /// Follows the changes until few are left, then hands the shard over.
    pub(super) async fn hand_over(&self) -> Result<(), Failure> {
        for attempt in 1.. {
            self.follow().await?;
            let handed = timeout(CLOSED_MAX, self.try_to_hand_over()).await;
            let Err(failure) = handed.unwrap_or_else(|_| Err(self.late())) else { break };
            let (old, new) = (self.number.get(), super::random_number().map_err(Failure::Final)?);
            let is_open_again = self.patiently(|| self.open_again(old, new)).await?;
            let claim = async || {
                let claimed = self.shared.catalog().claim_move(&self.moved, Some(old), new).await;
                claimed.map_err(Failure::Transient)
            };
            if !self.patiently(claim).await? {
                return Err(self.replaced());
            }
            if !is_open_again {
                break;
            }
            if attempt >= ATTEMPTS_MAX || matches!(failure, Failure::Final(_)) {
                return Err(failure);
            }
            tracing::info!(
                shard = self.moved.shard.0,
                ?failure,
                "a shard was not handed over and follows on"
            );
            sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }

    async fn follow(&self) -> Result<(), Failure> {
        // A source may have been moved meanwhile.
        self.patiently(|| self.shared.reload_topology()).await?;
        let mut changes = 0;
        loop {
            let of_shard = self.patiently(|| self.follow_log()).await?;
            let of_sources = self.patiently(|| self.follow_sources()).await?;
            changes += of_shard + of_sources;
            self.report("following", changes as u64, None);
            if of_shard < FEW && of_sources < FEW {
                return Ok(());
            }
        }
    }

    async fn try_to_hand_over(&self) -> Result<(), Failure> {
        self.report("handing over", 0, None);
        let last = self.close().await?;
        // The shard is one of its own sources.
        while self.log_position().await?.1 < last || self.mark_of_shard().await? < last {
            self.follow_log().await?;
            self.follow_sources().await?;
        }
        let relayed = self.hand_off().await?;
        self.open(relayed).await
    }

    fn late(&self) -> Failure {
        Failure::Transient(unavailable(&self.to.name, "the copy did not catch up in time"))
    }

    /// Ends the writes of the shard, once those under way are over. Returns its last change.
    async fn close(&self) -> Result<i64, Failure> {
        let (shard, term) = (self.number_of_shard(), self.moved.term);
        let epoch = self.topology.epoch.0 as i64;
        let failed = |error: tokio_postgres::Error| Failure::of_statement(&self.from.name, &error);
        let closed = self.from.transaction(TRANSACTION_MAX, async |connection: &Pooled| {
            let client = connection.client();
            self.require_outgoing(connection).await?;
            let lock = format!("SELECT pg_advisory_xact_lock({LOCK_CLASS}, {shard})");
            client.batch_execute(&lock).await.map_err(failed)?;
            let close = "UPDATE shards SET state = 'closing'
                         WHERE shard = $1 AND term = $2 AND epoch = $3 AND state <> 'closed'";
            client.execute(close, &[&shard, &term, &epoch]).await.map_err(failed)?;
            let last = "SELECT (SELECT coalesce(max(sequence), 0) FROM log WHERE shard = $1)
                        FROM shards WHERE shard = $1 AND term = $2 AND epoch = $3 AND state <> 'open'";
            let row = client.query_opt(last, &[&shard, &term, &epoch]).await.map_err(failed)?;
            row.map(|row| row.get(0)).ok_or(Failure::Moved)
        });
        closed.await
    }

    /// Fails if another process has taken over. Until the transaction ends, none does.
    async fn require_outgoing(&self, connection: &Pooled) -> Result<(), Failure> {
        let own = "SELECT FROM outgoing WHERE shard = $1 AND mover = $2 FOR UPDATE";
        let found = connection.client().query_opt(own, &[&self.number_of_shard(), &self.number.get()]).await;
        let found = found.map_err(|error| Failure::of_statement(&self.from.name, &error))?;
        found.map(drop).ok_or_else(|| self.replaced())
    }

    /// Lets the shard be written on its old host. Only while nobody can open the copy.
    pub(super) async fn open_old(&self) -> Result<(), Failure> {
        let (shard, term) = (self.number_of_shard(), self.moved.term);
        let failed = |error: tokio_postgres::Error| Failure::of_statement(&self.from.name, &error);
        let opened = self.from.transaction(TRANSACTION_MAX, async |connection: &Pooled| {
            self.require_outgoing(connection).await?;
            let open = "UPDATE shards SET state = 'open' WHERE shard = $1 AND term = $2";
            connection.client().execute(open, &[&shard, &term]).await.map(drop).map_err(failed)
        });
        opened.await
    }

    /// From now on the move has a new number on the old host: no step under the old one succeeds. Returns whether the shard is open: one
    /// that was only closing takes writes again, whether or not the new host answers, because nobody can have opened the copy.
    async fn rename_old(&self, old: i64, new: i64) -> Result<bool, Failure> {
        let (shard, term) = (self.number_of_shard(), self.moved.term);
        let failed = |error: tokio_postgres::Error| Failure::of_statement(&self.from.name, &error);
        let renamed = self.from.transaction(TRANSACTION_MAX, async |connection: &Pooled| {
            let client = connection.client();
            let rename = "UPDATE outgoing SET mover = $3 WHERE shard = $1 AND mover IN ($2, $3)";
            if client.execute(rename, &[&shard, &old, &new]).await.map_err(failed)? == 0 {
                return Err(self.replaced());
            }
            client.execute(OPEN_CLOSING, &[&shard, &term]).await.map_err(failed)?;
            let is_open = "SELECT FROM shards WHERE shard = $1 AND term = $2 AND state = 'open'";
            let found = client.query_opt(is_open, &[&shard, &term]).await.map_err(failed)?;
            Ok(found.is_some())
        });
        renamed.await
    }

    /// As [`Mover::rename_old`], on the new host. Returns false if it has no such copy. A commit that opens the copy may be under way: it
    /// has the copy's row, so that this waits for it.
    async fn rename_new(&self, old: i64, new: i64) -> Result<bool, Failure> {
        let shard = self.number_of_shard();
        let renamed = self.to.transaction(TRANSACTION_MAX, async |connection: &Pooled| {
            let rename = "UPDATE incoming SET mover = $3 WHERE shard = $1 AND mover IN ($2, $3)";
            let renamed = connection.client().execute(rename, &[&shard, &old, &new]).await;
            renamed.map_err(|error| Failure::of_statement(&self.to.name, &error))
        });
        Ok(renamed.await? > 0)
    }

    /// How far the follower side of the copy shows the shard itself.
    async fn mark_of_shard(&self) -> Result<i64, Failure> {
        let marks = self.incoming_marks().await?;
        Ok(marks.get(self.moved.shard).unwrap_or_default().0 as i64)
    }

    /// Ends the reads of the shard, too. Returns how far it was relayed, if it was.
    async fn hand_off(&self) -> Result<Option<(i64, i64)>, Failure> {
        let (shard, term) = (self.number_of_shard(), self.moved.term);
        let failed = |error: tokio_postgres::Error| Failure::of_statement(&self.from.name, &error);
        let handed = self.from.transaction(TRANSACTION_MAX, async |connection: &Pooled| {
            let client = connection.client();
            self.require_outgoing(connection).await?;
            let close = "UPDATE shards SET state = 'closed' WHERE shard = $1 AND term = $2";
            client.execute(close, &[&shard, &term]).await.map_err(failed)?;
            let relayed = "SELECT epoch, sequence FROM relayed WHERE shard = $1";
            let relayed = client.query_opt(relayed, &[&shard]).await.map_err(failed)?;
            Ok(relayed.map(|row| (row.get(0), row.get(1))))
        });
        handed.await
    }

    /// Opens the shard on its new host. Its follower side must not lack what the marks of the host claim.
    async fn open(&self, relayed: Option<(i64, i64)>) -> Result<(), Failure> {
        let (shard, term) = (self.number_of_shard(), self.moved.term + 1);
        let epoch = self.topology.epoch.0 as i64;
        let failed = |error: tokio_postgres::Error| Failure::of_statement(&self.to.name, &error);
        let mut known = self.incoming_marks().await?;
        let opened = self.to.transaction(TRANSACTION_MAX, async |connection: &Pooled| {
            let client = connection.client();
            // Sources on other hosts are read meanwhile.
            client
                .batch_execute("SET LOCAL idle_in_transaction_session_timeout = '4s'")
                .await
                .map_err(failed)?;
            let marks = client.query(LOCK_ALL_MARKS, &[]).await.map_err(failed)?;
            self.note(connection, "mover = $2", &[]).await?;
            loop {
                let behind: Vec<Position> = marks.iter().filter_map(|mark| behind(mark, &known)).collect();
                if behind.is_empty() {
                    break;
                }
                let step = self.next_of_sources(&behind).await?;
                if step.count == 0 {
                    // A source that is being moved, too, can be read in a moment.
                    sleep(Duration::from_millis(10)).await;
                    continue;
                }
                step.marks.iter().for_each(|(source, mark)| known.advance(mark.on(*source)));
                self.apply_sources(connection, step).await?;
            }
            let open = "INSERT INTO shards (shard, epoch, term, state) VALUES ($1, $2, $3, 'open')
                        ON CONFLICT (shard) DO UPDATE SET epoch = $2, term = $3, state = 'open'";
            client.execute(open, &[&shard, &epoch, &term]).await.map_err(failed)?;
            let relay = "INSERT INTO relayed (shard, epoch, sequence) VALUES ($1, $2, $3)
                         ON CONFLICT (shard) DO UPDATE SET epoch = $2, sequence = $3";
            if let Some((epoch, sequence)) = relayed {
                client.execute(relay, &[&shard, &epoch, &sequence]).await.map_err(failed)?;
            }
            client.execute("DELETE FROM incoming WHERE shard = $1", &[&shard]).await.map_err(failed)?;
            let marks = "DELETE FROM incoming_marks WHERE shard = $1";
            client.execute(marks, &[&shard]).await.map(drop).map_err(failed)
        });
        opened.await
    }

    /// Opens the shard where it was, while the copy stays one. Returns false if the new host has opened it after all: the reply to the last
    /// step may have been lost.
    async fn open_again(&self, old: i64, new: i64) -> Result<bool, Failure> {
        let is_open = self.rename_old(old, new).await?;
        self.number.set(new);
        if !self.rename_new(old, new).await? {
            let is_open = self.is_open_at_new_host().await?;
            return if is_open { Ok(false) } else { Err(self.replaced()) };
        }
        if !is_open {
            self.open_old().await?;
        }
        Ok(true)
    }
}

/// Where a source goes on, if the copy lacks what a mark of its new host claims.
fn behind(mark: &Row, known: &kinfolk_core::Frontier) -> Option<Position> {
    let source = Shard(mark.get::<_, i16>(0) as u16);
    let (claimed, known) = (Sequence(mark.get::<_, i64>(1) as u64), known.get(source).unwrap_or_default());
    (known < claimed).then(|| known.on(source))
}
