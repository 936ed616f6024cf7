//! Verification: the follower side against the truth, counts against rows, and logs against gaps.
//!
//! Writes and projections go on meanwhile: see [`compare`](crate::compare).

mod log;

use std::collections::HashSet;
use std::time::Duration;

use kinfolk_core::bulk::{Progress, VerifyReport};
use kinfolk_core::{Error, Result, Shard};

use crate::Fleet;
use crate::catalog::Topology;
use crate::compare::{Comparison, PAGE, Subject, Thoroughness, Walk};
use crate::fleet::Shared;
use crate::postgres::Failure;

/// Differences that are described.
const EXAMPLES_MAX: usize = 20;

/// Differences that are remembered, so that each counts once.
const SEEN_MAX: usize = 1_000_000;

/// A repair can uncover another difference: rows that are right again have another count.
const ROUNDS_MAX: usize = 4;

/// A shard that is moved while it is looked at is looked at again, where it is then.
const MOVES_MAX: usize = 20;

/// A shard that is being moved is open again about then.
const AFTER_MOVE: Duration = Duration::from_millis(500);

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
        let (report, seen) = (VerifyReport::default(), HashSet::new());
        let mut pass = Pass { shared: &self.shared, repair, progress, report, rows: 0, seen };
        // The logs first: a projection waits at a gap.
        for part in [Part::Log, Part::Rows] {
            for shard in self.shared.topology().shards() {
                pass.verify_where_it_is(shard, part).await?;
            }
        }
        Ok(pass.report)
    }
}

/// What is verified of a shard.
#[derive(Clone, Copy)]
enum Part {
    Log,
    Rows,
}

/// One pass over everything.
struct Pass<'a> {
    shared: &'a Shared,
    repair: bool,
    progress: &'a dyn Fn(Progress),
    report: VerifyReport,
    /// How many rows were looked at.
    rows: u64,
    /// What was found to differ.
    seen: HashSet<Subject>,
}

impl Pass<'_> {
    /// Verifies a part of a shard, again from the beginning if it was moved meanwhile.
    async fn verify_where_it_is(&mut self, shard: Shard, part: Part) -> std::result::Result<(), Failure> {
        let mut moves = 0;
        loop {
            let topology = self.shared.topology();
            let before = self.report.clone();
            let outcome = match part {
                Part::Log => self.check_log(&topology, shard).await,
                Part::Rows => self.check_rows(&topology, shard).await,
            };
            match outcome {
                Err(Failure::Moved) if moves < MOVES_MAX => moves += 1,
                outcome => return outcome,
            }
            // What was repaired there is not found again.
            if self.repair {
                (self.report.edges, self.report.users) = (before.edges, before.users);
            } else {
                self.report = before;
            }
            tokio::time::sleep(AFTER_MOVE).await;
            self.shared.reload_topology().await?;
        }
    }

    async fn check_rows(&mut self, topology: &Topology, shard: Shard) -> std::result::Result<(), Failure> {
        let compare = self.comparison(topology);
        let mut walk = Some(Walk::new(topology.id_kind));
        while let Some(at) = walk {
            let repair = self.repair;
            let step = compare.step(shard, at, PAGE, &move |_| repair).await?;
            self.rows += step.rows;
            (self.progress)(Progress { stage: "verifying", done: self.rows, total: None });
            self.report.edges += step.edges;
            self.report.users += step.users;
            for settled in step.settled {
                // An edge that differs is found from both of its sides, unless it is repaired in between.
                if self.seen.len() >= SEEN_MAX || self.seen.insert(settled.difference.subject()) {
                    self.differs(|| settled.difference.to_string());
                }
            }
            walk = step.next;
        }
        compare.require_open(shard).await
    }

    fn comparison<'b>(&self, topology: &'b Topology) -> Comparison<'b>
    where
        Self: 'b,
    {
        Comparison { shared: self.shared, topology, thoroughness: Thoroughness::Full }
    }

    fn differs(&mut self, description: impl FnOnce() -> String) {
        self.report.difference_count += 1;
        if self.report.differences.len() < EXAMPLES_MAX {
            self.report.differences.push(description());
        }
    }
}
