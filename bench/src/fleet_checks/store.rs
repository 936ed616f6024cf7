//! What checks and follows, as one worker of a load sees it: Kinfolk's fleet in process, or something beside it.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kinfolk_core::Frontier;
use kinfolk_core::graph::{CheckStore, EdgeAction, EdgeStore, FollowerCommand, WriteRequest};
use kinfolk_fleet::Fleet;

use super::graph::Expected;
use crate::dataset::{KIND, edge};
use crate::histogram::Histogram;
use crate::survey::Pair;

/// One worker's way to a store.
pub trait Store: Send + 'static {
    /// Whether an edge exists.
    fn check(&mut self, pair: Pair) -> impl Future<Output = Result<bool>> + Send;

    /// Makes an edge exist or not. It is durable once this returns.
    fn write(&mut self, pair: Pair, exists: bool) -> impl Future<Output = Result<()>> + Send;
}

/// A fleet in this process, asked as its services ask it.
#[derive(Clone)]
pub struct InProcess(pub Fleet);

impl Store for InProcess {
    async fn check(&mut self, pair: Pair) -> Result<bool> {
        let edge = edge(pair);
        if let Some(exists) = self.0.contains_now(KIND, edge, Frontier::EMPTY) {
            return Ok(exists);
        }
        let found = self.0.contains(KIND, &[edge], Frontier::EMPTY).await?;
        found.first().copied().context("a check has an answer")
    }

    async fn write(&mut self, pair: Pair, exists: bool) -> Result<()> {
        let edge = edge(pair);
        let action = if exists { EdgeAction::Follow } else { EdgeAction::Unfollow };
        let commands = [FollowerCommand { action, followee: edge.followee }].into();
        let request =
            WriteRequest { kind: KIND, follower: edge.follower, commands, following_limit: u32::MAX };
        self.0.write_one(request).await?;
        Ok(())
    }
}

/// What workers measured together.
#[derive(Debug, Default)]
pub struct Measured {
    pub latency: Histogram,
    pub per_second: f64,
}

/// Checks a list again and again for a time, each worker one check at a time. A wrong answer ends it.
pub async fn check_for<S: Store>(
    workers: Vec<S>,
    checks: &Arc<[Expected]>,
    time: Duration,
) -> Result<Measured> {
    let (count, began) = (workers.len(), Instant::now());
    let run = |(number, mut worker): (usize, S)| {
        let checks = Arc::clone(checks);
        tokio::spawn(async move {
            let mut latency = Histogram::default();
            let own = checks.iter().cycle().skip(number * checks.len() / count);
            for &Expected { pair, exists } in own {
                let started = Instant::now();
                if started.duration_since(began) >= time {
                    break;
                }
                if worker.check(pair).await? != exists {
                    bail!("the check of {pair:?} did not return {exists}");
                }
                latency.record(started.elapsed());
            }
            Ok(latency)
        })
    };
    let tasks: Vec<_> = workers.into_iter().enumerate().map(run).collect();
    let mut measured = Measured::default();
    for task in tasks {
        measured.latency.merge(&task.await??);
    }
    measured.per_second = measured.latency.total() as f64 / began.elapsed().as_secs_f64();
    Ok(measured)
}
