//! What each process says of its checks, in Redis, so that an operator sees all of them in one place.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::{Cache, CacheVerdict, scripts};
use crate::FilterVerdict;
use crate::fleet::Shared;
use crate::redis::Command;

/// How often a process reports, and for how long its report stands.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// How long Redis may take, and how long it is looked for.
const ANSWER_MAX: Duration = Duration::from_millis(500);
const FOUND_MAX: Duration = Duration::from_secs(2);

/// How many checks each layer of a process has answered in the last ten seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckReport {
    /// The role of the process.
    pub role: String,
    /// The name of its machine.
    pub machine: String,
    /// Its process id there.
    pub process: u32,
    /// Checks that its filters have answered.
    pub by_filter: u64,
    /// Checks that the cache has answered.
    pub by_cache: u64,
    /// Checks that the shards have answered, or failed to.
    pub by_shard: u64,
}

impl CheckReport {
    /// What a process and its numbers read, as they are kept.
    fn read(name: &str, numbers: &str) -> Option<Self> {
        let mut words = name.splitn(3, ' ');
        let (role, process, machine) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
        let mut numbers = numbers.split(' ').map(|number| number.parse().ok());
        let [by_filter, by_cache, by_shard] = [numbers.next()??, numbers.next()??, numbers.next()??];
        let (role, machine) = (role.to_owned(), machine.to_owned());
        Some(Self { role, machine, process, by_filter, by_cache, by_shard })
    }
}

impl Shared {
    /// How many checks each layer has answered so far.
    fn answered(&self) -> [u64; 3] {
        let filters = self.filters.counts().into_iter().filter(|(verdict, _)| *verdict == FilterVerdict::No);
        let cache = self.cache.as_ref().map(|cache| cache.counts.verdicts()).into_iter().flatten();
        let cache = cache.filter(|(verdict, _)| matches!(verdict, CacheVerdict::Yes | CacheVerdict::No));
        let shards = self.shard_counts.verdicts().into_iter();
        [
            filters.map(|(_, count)| count).sum(),
            cache.map(|(_, count)| count).sum(),
            shards.map(|(_, count)| count).sum(),
        ]
    }
}

/// Reports what the process does, until the store is dropped.
pub(crate) async fn report(shared: Arc<Shared>) {
    let Some(cache) = &shared.cache else { return };
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = format!("{} {} {}", shared.settings.role, std::process::id(), machine.trim());
    let mut ticks = interval(REPORT_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let mut before = shared.answered();
    loop {
        ticks.tick().await;
        let now = shared.answered();
        let [filter, by_cache, shard] = [0, 1, 2].map(|layer| now[layer] - before[layer]);
        before = now;
        let mut command = reports_command(shared.topology().identity);
        command.argument(&name);
        command.argument(format!("{filter} {by_cache} {shard}"));
        // One that is lost is followed by another.
        _ = cache.cluster.call(&[command], ANSWER_MAX).await;
    }
}

fn reports_command(identity: i64) -> Command {
    let tag = format!("{identity:x}.processes");
    let mut command = Command::script(scripts::REPORT, &tag);
    command.key(&format!("{{{tag}}}"));
    command
}

impl Cache {
    /// What the processes of a deployment have reported. None if Redis does not answer.
    pub(crate) async fn reports(&self, identity: i64) -> Option<Vec<CheckReport>> {
        let began = Instant::now();
        loop {
            let reply = self.cluster.call(&[reports_command(identity)], ANSWER_MAX).await.pop();
            if let Some(Ok(reply)) = reply {
                let words: Vec<&str> = reply.list()?.iter().filter_map(|word| word.text()).collect();
                let pairs = words.chunks_exact(2).filter_map(|pair| CheckReport::read(pair[0], pair[1]));
                let mut reports: Vec<CheckReport> = pairs.collect();
                reports.sort();
                return Some(reports);
            }
            if began.elapsed() > FOUND_MAX {
                return None;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_as_it_was_written() {
        let report = CheckReport::read("api 17 a machine", "1 2 3").unwrap();
        assert_eq!((report.role.as_str(), report.machine.as_str(), report.process), ("api", "a machine", 17));
        assert_eq!((report.by_filter, report.by_cache, report.by_shard), (1, 2, 3));
        for (name, numbers) in
            [("api", "1 2 3"), ("api x m", "1 2 3"), ("api 1 m", "1 2"), ("api 1 m", "1 2 x")]
        {
            assert_eq!(CheckReport::read(name, numbers), None, "{name:?} {numbers:?}");
        }
    }
}
