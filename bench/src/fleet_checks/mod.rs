//! `fleet-checks`: checks of a fleet on the ego-Twitter graph, layer by layer, from one to four processes, and under races, beside a
//! cache-aside on the same servers.

mod aside;
mod deployment;
mod graph;
mod layers;
mod memory;
mod processes;
mod races;
mod rows;
mod store;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use kinfolk_fleet::Fleet;
use tokio::runtime::Runtime;

use self::aside::{CacheAside, OnWrite};
use self::deployment::{Deployment, Projecting, Serving};
use self::graph::{Expected, Graph};
use self::layers::Layers;
use self::processes::Processes;
use self::races::Outcome;
use self::rows::ROWS;
use self::store::{InProcess, check_for};
use crate::dataset::build_kinfolk;
use crate::everyone_graph;
use crate::measurement::Recorder;
use crate::options::Options;
use crate::random::Random;

const NAME: &str = "fleet-checks";

/// Checks that are under way at a time where both sides are compared.
const AT_A_TIME: usize = 32;

/// Checks that a load repeats.
const MIX: usize = 100_000;

/// Flags of this benchmark.
#[derive(Clone, Debug, Args)]
pub struct FleetChecks {
    #[command(flatten)]
    options: Options,
    /// Only show that it works: a small part of the graph, one round, a second for each load; writes into the work folder
    #[arg(long)]
    short: bool,
    /// Measure only these parts
    #[arg(long, value_delimiter = ',')]
    only: Vec<Part>,
}

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Filter, cache and shard
    Layers,
    /// Memory of Redis
    Memory,
    /// Checks a second, beside a cache-aside
    Aside,
    /// Wrong answers under races, beside a cache-aside
    Races,
    /// One, two and four processes of the binary
    Processes,
}

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// One of so many followers is in the graph.
    one_of: u64,
    rounds: u32,
    /// Checks of the filter in a round.
    checks: usize,
    load: Duration,
    race: Duration,
}

impl FleetChecks {
    pub fn run(&self) -> Result<()> {
        let folder = self.options.work.join(NAME);
        let edges = everyone_graph::Graph::unpack_twitter(&folder)?;
        let plan = self.plan();
        let run = Run {
            plan,
            graph: Graph::read(&edges, plan.one_of)?,
            runtime: Runtime::new()?,
            // Relative paths are of no use to servers.
            folder: folder.canonicalize()?,
        };
        let mut recorder = Recorder::new(ROWS);
        let notes = run.measure(self, &mut recorder)?;
        let results = if self.short { &folder } else { &self.options.results };
        recorder.finish(NAME, run.graph.size(), notes).publish(results)
    }

    fn plan(&self) -> Plan {
        let time = self.options.round_time();
        let Options { rounds, .. } = self.options;
        match self.short {
            false => Plan { one_of: 1, rounds, checks: 200_000, load: time / 2, race: time },
            true => {
                let (load, race) = (Duration::from_secs(1), Duration::from_secs(4));
                Plan { one_of: 22, rounds: 1, checks: 5_000, load, race }
            }
        }
    }

    fn has(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    /// The program that is measured, in the profile that is released.
    fn kinfolk(&self) -> Result<PathBuf> {
        match &self.options.kinfolk {
            Some(program) => Ok(program.clone()),
            None => build_kinfolk(&["fleet"]),
        }
    }
}

/// What all parts share.
struct Run {
    plan: Plan,
    graph: Graph,
    runtime: Runtime,
    folder: PathBuf,
}

impl Run {
    /// Measures the parts that are asked for. Returns notes.
    fn measure(&self, asked: &FleetChecks, recorder: &mut Recorder) -> Result<Vec<String>> {
        let kinfolk = asked.has(Part::Processes).then(|| asked.kinfolk()).transpose()?;
        let deployment = Deployment::start(&self.folder)?;
        deployment.import(&self.graph, &self.runtime)?;
        let mut notes = self.notes();
        if asked.has(Part::Memory) {
            let projecting = Projecting::start(&deployment)?;
            notes.extend(memory::measure(&deployment, &self.graph, &self.runtime, recorder)?);
            drop(projecting);
        }
        if [Part::Layers, Part::Aside, Part::Races].into_iter().any(|part| asked.has(part)) {
            self.in_process(asked, &deployment, recorder)?;
        }
        if let Some(kinfolk) = kinfolk {
            self.processes(&kinfolk, &deployment, recorder)?;
        }
        Ok(notes)
    }

    fn notes(&self) -> Vec<String> {
        let Plan { rounds, load, race, .. } = self.plan;
        vec![
            format!(
                "{} users of ego-Twitter follow somebody; a check that is negative has one of them as follower and another \
                 user that it does not follow as followee; the mix has 80 % of these and 20 % edges",
                self.graph.followers.len()
            ),
            format!(
                "servers, clients and Kinfolk share the cores: two PostgreSQL hosts with fsync on and a catalog, {} shards, \
                 Redis Cluster of three masters and three replicas with set-max-intset-entries 10000; {rounds} rounds, \
                 loads of {} s, races of {} s",
                deployment::SHARDS,
                load.as_secs_f64(),
                race.as_secs_f64()
            ),
            format!(
                "api processes: kinfolk serve with an API key, a rate limit and metrics, beside one that projects; \
                 {} connections in all, pipelines of {}, every reply compared",
                processes::CONNECTIONS,
                processes::PIPELINE
            ),
            "the cache-aside has a Redis of its own, not a cluster, and a table on a host; EXISTS and SISMEMBER are one round \
             trip; its sets are all cached before its rate is measured, as Kinfolk's are"
                .to_owned(),
            format!(
                "races: {} workers toggle up to 2,000 pairs of 500 users, each pair once in 5 s; {} check the same pairs; 100 keys \
                 a second are deleted; an answer is wrong if the pair was in no such state from 2 s before the check to its end",
                races::WRITERS,
                races::READERS
            ),
        ]
    }

    /// Layers, rates and races, with one process that serves and one that projects inside of this one.
    fn in_process(
        &self,
        asked: &FleetChecks,
        deployment: &Deployment,
        recorder: &mut Recorder,
    ) -> Result<()> {
        let aside = match asked.has(Part::Aside) || asked.has(Part::Races) {
            true => Some(self.runtime.block_on(CacheAside::start(
                &self.folder,
                deployment.host()?,
                &self.graph,
            ))?),
            false => None,
        };
        let projecting = Projecting::start(deployment)?;
        let serving = Serving::start(deployment)?;
        let shards_only = Fleet::open(deployment.settings("api")?)?;
        let layers = Layers {
            graph: &self.graph,
            serving: &serving.fleet,
            shards_only: &shards_only,
            checks: self.plan.checks,
        };
        let mut random = Random::new(1);
        if asked.has(Part::Layers) {
            deployment.flush_cache()?;
            layers.misses(&self.runtime, recorder, &mut random)?;
        }
        deployment.fill_cache(&self.graph.followers, &self.runtime)?;
        let aside = aside.as_ref();
        let filled = aside.filter(|_| asked.has(Part::Aside));
        filled.map(|aside| aside.fill(&self.graph)).transpose()?;
        for round in 1..=self.plan.rounds {
            eprintln!("{NAME}, round {round}");
            if asked.has(Part::Layers) {
                layers.measure(&self.runtime, recorder, &mut random)?;
            }
            if let Some(aside) = filled {
                self.rates(&serving.fleet, aside, recorder, &mut random)?;
            }
        }
        for round in 1..=self.plan.rounds {
            if let Some(aside) = aside.filter(|_| asked.has(Part::Races)) {
                eprintln!("{NAME}, races, round {round}");
                self.races(deployment, &serving.fleet, aside, recorder, &mut random)?;
            }
        }
        drop(projecting);
        Ok(())
    }

    /// Checks a second of Kinfolk and of the cache-aside, one at a time and many.
    fn rates(
        &self,
        fleet: &Fleet,
        aside: &CacheAside<'_>,
        recorder: &mut Recorder,
        random: &mut Random,
    ) -> Result<()> {
        let checks: Arc<[Expected]> = self.graph.mix(MIX, random).into();
        let mut rates = [0.0; 2];
        for (at_a_time, name) in [(1, "one"), (AT_A_TIME, "many")] {
            let ours = vec![InProcess(fleet.clone()); at_a_time];
            let theirs = self.runtime.block_on(aside.workers(at_a_time, OnWrite::Change))?;
            let ours = self.runtime.block_on(check_for(ours, &checks, self.plan.load))?;
            let theirs = self.runtime.block_on(check_for(theirs, &checks, self.plan.load))?;
            recorder.record(&format!("mix_{name}"), ours.per_second);
            recorder.record(&format!("aside_{name}"), theirs.per_second);
            recorder.record_us(&format!("mix_{name}"), &ours.latency);
            recorder.record_us(&format!("aside_{name}"), &theirs.latency);
            rates = [ours.per_second, theirs.per_second];
        }
        recorder.record("times_aside", rates[0] / rates[1]);
        Ok(())
    }

    /// The same load on Kinfolk and on both sorts of cache-aside.
    fn races(
        &self,
        deployment: &Deployment,
        fleet: &Fleet,
        aside: &CacheAside<'_>,
        recorder: &mut Recorder,
        random: &mut Random,
    ) -> Result<()> {
        let pairs = races::pairs(&self.graph, random);
        let workers = races::WRITERS + races::READERS;
        deployment.flush_cache()?;
        let before = answered_by_cache(fleet);
        let ours = vec![InProcess(fleet.clone()); workers];
        let outcome =
            self.runtime.block_on(races::run(ours, &pairs, deployment.masters()?, self.plan.race))?;
        record_race(recorder, "kinfolk", outcome);
        let cached = (answered_by_cache(fleet) - before) as f64;
        recorder.record("race_kinfolk_cached", 100.0 * cached / outcome.checks.max(1) as f64);
        for (name, on_write) in [("change", OnWrite::Change), ("delete", OnWrite::Delete)] {
            let mut redis = crate::client::Client::resp(aside.redis(), None)?;
            redis.command("FLUSHALL SYNC")?;
            let theirs = self.runtime.block_on(aside.workers(workers, on_write))?;
            let outcome = self.runtime.block_on(races::run(theirs, &pairs, vec![redis], self.plan.race))?;
            record_race(recorder, name, outcome);
        }
        Ok(())
    }

    fn processes(&self, kinfolk: &Path, deployment: &Deployment, recorder: &mut Recorder) -> Result<()> {
        let projecting = Projecting::start(deployment)?;
        deployment.fill_cache(&self.graph.followers, &self.runtime)?;
        drop(projecting);
        let processes = Processes { kinfolk, deployment, graph: &self.graph, time: self.plan.load };
        let mut random = Random::new(2);
        for round in 1..=self.plan.rounds {
            eprintln!("{NAME}, processes, round {round}");
            processes.measure(recorder, &mut random)?;
        }
        Ok(())
    }
}

fn record_race(recorder: &mut Recorder, name: &str, outcome: Outcome) {
    eprintln!("  {name}: {} writes, {} keys deleted", outcome.writes, outcome.deleted);
    recorder.record(&format!("race_{name}_rate"), outcome.per_second);
    recorder.record(&format!("race_{name}_checks"), outcome.checks as f64);
    recorder.record(&format!("race_{name}_wrong"), outcome.wrong as f64);
    let per_million = 1e6 * outcome.wrong as f64 / outcome.checks.max(1) as f64;
    recorder.record(&format!("race_{name}_per_million"), per_million);
}

/// How many checks the cache has answered for a process.
fn answered_by_cache(fleet: &Fleet) -> u64 {
    use kinfolk_fleet::CacheVerdict::{No, Yes};
    let verdicts = fleet.layer_states().cache.map(|cache| cache.verdicts);
    verdicts
        .into_iter()
        .flatten()
        .filter(|(verdict, _)| matches!(verdict, Yes | No))
        .map(|(_, count)| count)
        .sum()
}
