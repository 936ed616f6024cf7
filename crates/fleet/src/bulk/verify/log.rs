//! Logs against gaps: the sequences of a shard are contiguous from the oldest that is kept to the newest.

use kinfolk_core::Shard;
use tokio_postgres::types::ToSql;

use super::Pass;
use crate::catalog::Topology;
use crate::log::Entry;
use crate::postgres::{Failure, IdValue, Query};
use crate::write::random_batch;

/// Changes that are looked at, or filled in, at once.
const STEP: i64 = 10_000;

impl Pass<'_> {
    /// Looks for changes that are missing in the middle of a log.
    pub(super) async fn check_log(&mut self, topology: &Topology, shard: Shard) -> Result<(), Failure> {
        let host = &topology.hosts[topology.host_of(shard)];
        let (number, mut from) = (shard.0 as i16, 0_i64);
        loop {
            let statements = &self.shared.statements;
            let rows = host.query(statements, Query::LogGaps, &[&number, &from, &STEP]).await?;
            for row in &rows {
                if let (before, Some(after)) = (row.get(0), row.get(1)) {
                    self.gap(topology, shard, (before, after)).await?;
                }
            }
            // The last change of a page is looked at again as the first of the next one.
            match rows.last().map(|row| row.get::<_, i64>(0)) {
                Some(last) if last > from => from = last,
                _ => return self.comparison(topology).require_open(shard).await,
            }
        }
    }

    async fn gap(
        &mut self,
        topology: &Topology,
        shard: Shard,
        (before, after): (i64, i64),
    ) -> Result<(), Failure> {
        self.differs(|| format!("the log of shard {} goes from {before} to {after}", shard.0));
        if !self.repair {
            return Ok(());
        }
        let (number, filler) = (shard.0 as i16, Entry::lost());
        let batch = IdValue(random_batch().map_err(Failure::Final)?);
        let mut last = before;
        while last < after - 1 {
            let to = (last + STEP).min(after - 1);
            let parameters: [&(dyn ToSql + Sync); 6] =
                [&number, &last, &to, &batch, &filler.kind, &filler.body];
            let filled = self.comparison(topology).execute(shard, Query::FillLog, &parameters).await?;
            if filled == 0 {
                // The beginning was trimmed meanwhile, and the gap with it.
                return Ok(());
            }
            last = to;
        }
        Ok(())
    }
}
