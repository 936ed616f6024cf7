//! Verification: the follower side against the truth, counts against rows, and logs against gaps, in ranges of keys.
//!
//! Writes and projections go on meanwhile. Counts are compared with rows of the same snapshot; the two sides of an edge are on
//! two hosts, so that what seems to differ is looked at again while the mark of its source is locked.

mod counts;
mod log;
mod sides;

use std::sync::Arc;

use kinfolk_core::bulk::{Progress, VerifyReport};
use kinfolk_core::{EdgeKind, Error, Id, Result, Shard};

use crate::Fleet;
use crate::catalog::Topology;
use crate::fleet::Shared;
use crate::postgres::{Failure, Host, Pooled};
use crate::write::BEGIN;

/// Rows that are read at once.
const PAGE: i64 = 2_000;

/// Differences that are described.
const EXAMPLES_MAX: usize = 20;

/// A repair can uncover another difference: rows that are right again have another count.
const ROUNDS_MAX: usize = 4;

impl Fleet {
    /// Compares what is derived with the truth, and repairs what differs if asked to. Repairs are verified by another pass.
    ///
    /// A change that is lost from a log can't be found again: its place is filled by an entry that tells consumers to read the
    /// graph afresh.
    ///
    /// It waits for the hosts and must not be called on a thread of an async runtime.
    pub fn verify(&self, repair: bool, progress: &dyn Fn(Progress)) -> Result<VerifyReport> {
        let verify = async {
            let mut first = self.verify_once(repair, progress).await?;
            if !repair || first.difference_count == 0 {
                return Ok(first);
            }
            for _ in 0..ROUNDS_MAX {
                if self.verify_once(true, progress).await?.difference_count == 0 {
                    first.repaired = true;
                    return Ok(first);
                }
            }
            let detail = "some differences could not be repaired; restore from a backup".into();
            Err(Failure::Final(Error::Corrupt { detail }))
        };
        self.handle().block_on(verify).map_err(Failure::into_error)
    }

    async fn verify_once(
        &self,
        repair: bool,
        progress: &dyn Fn(Progress),
    ) -> std::result::Result<VerifyReport, Failure> {
        let topology = self.shared.topology();
        let report = VerifyReport::default();
        let mut pass = Pass { shared: &self.shared, topology: &topology, repair, progress, report, rows: 0 };
        // The logs first: a projection waits at a gap.
        for shard in topology.shards() {
            pass.check_log(shard).await?;
        }
        for shard in topology.shards() {
            pass.compare_following(shard).await?;
            pass.compare_followers(shard).await?;
            pass.check_counts_without_rows(shard).await?;
        }
        Ok(pass.report)
    }
}

/// A user with edges of a kind.
type Owner = (EdgeKind, Id);

/// One pass over everything.
struct Pass<'a> {
    shared: &'a Arc<Shared>,
    topology: &'a Topology,
    repair: bool,
    progress: &'a dyn Fn(Progress),
    report: VerifyReport,
    /// How many rows were looked at.
    rows: u64,
}

impl Pass<'_> {
    fn host(&self, shard: Shard) -> &Host {
        &self.topology.hosts[self.topology.host_of(shard)]
    }

    fn looked_at(&mut self, rows: usize) {
        self.rows += rows as u64;
        (self.progress)(Progress { stage: "verifying", done: self.rows, total: None });
    }

    fn differs(&mut self, description: impl FnOnce() -> String) {
        self.report.difference_count += 1;
        if self.report.differences.len() < EXAMPLES_MAX {
            self.report.differences.push(description());
        }
    }
}

/// Runs work as a transaction of a host. The work ends it; whatever fails ends with the connection.
async fn transaction<T>(
    host: &Host,
    work: impl AsyncFnOnce(&Pooled) -> std::result::Result<T, Failure>,
) -> std::result::Result<T, Failure> {
    let connection = host.writer().await?;
    let begun = connection.begin(BEGIN).await.map_err(|error| Failure::of_statement(&host.name, &error));
    let outcome = match begun {
        Ok(()) => work(&connection).await,
        Err(failure) => Err(failure),
    };
    outcome.inspect_err(|_| connection.discard())
}

/// The users of rows that come in the order of their users, without the last one of the rows before.
fn new_owners(owners: impl Iterator<Item = Owner>, last: &mut Option<Owner>) -> Vec<Owner> {
    let mut new: Vec<Owner> = owners.collect();
    new.dedup();
    let before = std::mem::replace(last, new.last().copied().or(*last));
    if new.first().copied() == before && before.is_some() {
        new.remove(0);
    }
    new
}
