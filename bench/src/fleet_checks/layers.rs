//! The layers of a check, one by one: how many checks end in the filter, and how long filter, cache and shard take in the service.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kinfolk_core::Frontier;
use kinfolk_core::graph::{CheckStore, Edge};
use kinfolk_fleet::{FilterVerdict, Fleet};
use tokio::runtime::Runtime;
use tokio::time::sleep;

use super::deployment::asked_shards;
use super::graph::Graph;
use crate::dataset::{KIND, edge};
use crate::histogram::Histogram;
use crate::measurement::Recorder;
use crate::random::Random;

/// Checks of one call.
const BULK: usize = 100;

/// Fewer checks than this, and the layer that is measured did not answer them.
const ANSWERED_MIN: f64 = 0.9;

/// What is measured, and how often.
pub struct Layers<'a> {
    pub graph: &'a Graph,
    /// A process with all layers.
    pub serving: &'a Fleet,
    /// A process that asks only the shards.
    pub shards_only: &'a Fleet,
    /// Checks that the filter is asked for; the others are asked for a tenth of them.
    pub checks: usize,
}

impl Layers<'_> {
    pub fn measure(&self, runtime: &Runtime, recorder: &mut Recorder, random: &mut Random) -> Result<()> {
        runtime.block_on(async {
            self.filter(recorder, random).await?;
            self.cache(recorder, random).await?;
            self.bulks(recorder, random).await?;
            self.shard(recorder, random).await
        })
    }

    async fn filter(&self, recorder: &mut Recorder, random: &mut Random) -> Result<()> {
        self.wait_for_filters(random).await?;
        let mut latency = Histogram::default();
        for _ in 0..self.checks {
            let absent = edge(self.graph.absent(random));
            let began = Instant::now();
            let known = self.serving.contains_now(KIND, absent, Frontier::EMPTY);
            let elapsed = began.elapsed();
            if let Some(exists) = known {
                ensure!(!exists, "the filter says that {absent:?} exists");
                latency.record(elapsed);
            }
        }
        recorder.record("filter_share", 100.0 * latency.total() as f64 / self.checks as f64);
        recorder.record_us("filter", &latency);
        Ok(())
    }

    /// Waits until no filter is behind its shard.
    async fn wait_for_filters(&self, random: &mut Random) -> Result<()> {
        let behind = || -> u64 {
            let verdicts = self.serving.layer_states().filters.map(|filters| filters.verdicts);
            let is_behind = |(verdict, _): &(FilterVerdict, u64)| {
                matches!(verdict, FilterVerdict::Behind | FilterVerdict::Uncovered)
            };
            verdicts.into_iter().flatten().filter(is_behind).map(|(_, count)| count).sum()
        };
        loop {
            let before = behind();
            let edges: Vec<Edge> = (0..1_000).map(|_| edge(self.graph.absent(random))).collect();
            self.serving.contains(KIND, &edges, Frontier::EMPTY).await?;
            if behind() == before {
                return Ok(());
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn cache(&self, recorder: &mut Recorder, random: &mut Random) -> Result<()> {
        let mut latency = Histogram::default();
        let count = self.checks / 10;
        for _ in 0..count {
            let existing = [edge(self.graph.existing(random))];
            let asked = asked_shards(self.serving);
            let began = Instant::now();
            let found = self.serving.contains(KIND, &existing, Frontier::EMPTY).await?;
            let elapsed = began.elapsed();
            ensure!(found == [true], "{existing:?} does not exist");
            if asked_shards(self.serving) == asked {
                latency.record(elapsed);
            }
        }
        ensure!(
            latency.total() as f64 >= ANSWERED_MIN * count as f64,
            "the cache answered {}",
            latency.total()
        );
        recorder.record_ms("cache", &latency);
        Ok(())
    }

    async fn bulks(&self, recorder: &mut Recorder, random: &mut Random) -> Result<()> {
        let (mut latency, mut elapsed) = (Histogram::default(), Duration::ZERO);
        let (count, asked) = (self.checks / 100, asked_shards(self.serving));
        for _ in 0..count {
            let edges: Vec<Edge> = (0..BULK).map(|_| edge(self.graph.existing(random))).collect();
            let began = Instant::now();
            let found = self.serving.contains(KIND, &edges, Frontier::EMPTY).await?;
            elapsed += began.elapsed();
            latency.record(began.elapsed());
            ensure!(found.iter().all(|exists| *exists), "an edge does not exist");
        }
        let (checks, by_shards) = (count * BULK, asked_shards(self.serving) - asked);
        ensure!(by_shards as f64 <= (1.0 - ANSWERED_MIN) * checks as f64, "shards answered {by_shards}");
        recorder.record_ms("cache_100", &latency);
        recorder.record("cache_100_rate", checks as f64 / elapsed.as_secs_f64());
        Ok(())
    }

    /// Half of the checks are of edges that exist.
    async fn shard(&self, recorder: &mut Recorder, random: &mut Random) -> Result<()> {
        let mut latency = Histogram::default();
        for number in 0..self.checks / 10 {
            let exists = number % 2 == 0;
            let pair = if exists { self.graph.existing(random) } else { self.graph.absent(random) };
            let began = Instant::now();
            let found = self.shards_only.contains(KIND, &[edge(pair)], Frontier::EMPTY).await?;
            latency.record(began.elapsed());
            ensure!(found == [exists], "the shard is wrong about {pair:?}");
        }
        recorder.record_ms("shard", &latency);
        Ok(())
    }

    /// Checks of followers whose sets are not there: the cache is asked first, in vain. It has to be empty.
    pub fn misses(&self, runtime: &Runtime, recorder: &mut Recorder, random: &mut Random) -> Result<()> {
        let mut followers = self.graph.followers.clone();
        random.shuffle(&mut followers);
        followers.truncate(self.checks / 10);
        let mut latency = Histogram::default();
        for &follower in &followers {
            let existing = [edge(crate::survey::Pair {
                follower,
                followee: random.pick(self.graph.following(follower)),
            })];
            let asked = asked_shards(self.serving);
            let began = Instant::now();
            let found = runtime.block_on(self.serving.contains(KIND, &existing, Frontier::EMPTY))?;
            let elapsed = began.elapsed();
            ensure!(found == [true], "{existing:?} does not exist");
            if asked_shards(self.serving) > asked {
                latency.record(elapsed);
            }
        }
        ensure!(
            latency.total() as f64 >= ANSWERED_MIN * followers.len() as f64,
            "shards answered {}",
            latency.total()
        );
        recorder.record_ms("miss", &latency);
        Ok(())
    }
}
