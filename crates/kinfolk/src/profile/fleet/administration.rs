//! The administration of a fleet through a server: bulk work on streams, and the state of its hosts for metrics.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kinfolk_core::bulk::{Progress, VerifyReport};
use kinfolk_core::{Result, Sequence};
use kinfolk_fleet::{Fleet, HostStatus, ShardStatus};
use kinfolk_server::{
    Administration, Capability, ExportRequest, Import, ImportDone, LayerTimes, SharedBudgets, Stat,
    StateTable, gauge,
};

use super::FleetProfile;
use super::background::{LatestStatus, Observed, RELAY_ALARM, Readiness, relay_behind};
use super::budgets::budget_stats;
use super::hot::hot_stats;
use super::layers::layer_stats;
use super::reconciler::reconciler_stats;
use super::report::FleetReport;
use crate::profile::files::StoreFiles;

/// Bulk work on a fleet, and its statistics.
pub(super) struct FleetAdministration {
    files: StoreFiles<Fleet>,
    status: Arc<LatestStatus>,
    readiness: Arc<Readiness>,
    budgets: Option<Arc<SharedBudgets>>,
}

impl FleetAdministration {
    /// The administration of an open fleet.
    pub(super) fn new(store: Fleet, profile: &FleetProfile) -> Self {
        let files = StoreFiles {
            store,
            folder: std::env::temp_dir(),
            following_limit: profile.service.graph.following_limit,
            sort_memory: profile.sort_memory,
            importing: Mutex::new(()),
        };
        Self {
            files,
            status: Arc::clone(&profile.status),
            readiness: Arc::clone(&profile.readiness),
            budgets: profile.budgets.clone(),
        }
    }
}

impl Administration for FleetAdministration {
    fn stats(&self) -> Vec<Stat> {
        let mut stats = self.status.get().as_ref().map(stats).unwrap_or_default();
        stats.extend(layer_stats(&self.files.store.layer_states()));
        stats.extend(hot_stats(&self.files.store.hot_state()));
        stats.extend(self.files.store.reconcile_state().iter().flat_map(reconciler_stats));
        stats.extend(self.budgets.iter().flat_map(|budgets| budget_stats(budgets.counts())));
        stats
    }

    fn tables(&self) -> Vec<StateTable> {
        let observed = self.status.get();
        observed.map(|observed| FleetReport::new(observed.status, true).tables()).unwrap_or_default()
    }

    fn layers(&self) -> Vec<LayerTimes> {
        let times = self.files.store.layer_times().into_iter();
        times.map(|(layer, times)| LayerTimes { layer, times }).collect()
    }

    fn not_ready(&self) -> Option<String> {
        self.readiness.get()
    }

    /// Backups are PostgreSQL's own, and there are no files to compact. Suggestions are computed only on request so far.
    fn has(&self, capability: Capability) -> bool {
        matches!(capability, Capability::Imports | Capability::Exports | Capability::Verification)
    }

    fn import(
        &self,
        file: &mut (dyn Read + Send),
        options: &Import,
        progress: &dyn Fn(Progress),
    ) -> Result<ImportDone> {
        self.files.import(file, options, progress)
    }

    fn export(&self, file: &mut (dyn Write + Send), request: ExportRequest) -> Result<u64> {
        self.files.export(file, request)
    }

    fn verify(&self, repair: bool, progress: &dyn Fn(Progress)) -> Result<VerifyReport> {
        self.files.store.verify(repair, progress)
    }
}

/// A gauge for each shard whose value is known.
fn of_shards<'a>(
    name: &'static str,
    help: &'static str,
    shards: &'a [ShardStatus],
    value: impl Fn(&ShardStatus) -> Option<Sequence> + 'a,
) -> impl Iterator<Item = Stat> + 'a {
    shards.iter().filter_map(move |shard| {
        let of = Some(("shard", shard.shard.0.to_string()));
        Some(Stat { of, ..gauge(name, help, value(shard)?.0 as f64) })
    })
}

/// How far each shard is, who relays them, and what waits for Kafka.
fn shard_stats(shards: &[ShardStatus]) -> Vec<Stat> {
    let mut stats = Vec::new();
    if let Some(behind) = relay_behind(shards) {
        let help = "Changes that are not in the topic yet, of all shards together.";
        stats.push(gauge("kinfolk_fleet_relay_behind", help, behind as f64));
        let help = "1 while 100,000 changes or more are not in the topic yet.";
        stats.push(gauge("kinfolk_fleet_relay_late", help, f64::from(u8::from(behind >= RELAY_ALARM))));
        let idle = shards.iter().filter(|shard| shard.relay.is_none()).count();
        stats.push(gauge("kinfolk_fleet_shards_without_relay", "Shards that nobody relays.", idle as f64));
        let mut owners: BTreeMap<String, u64> = BTreeMap::new();
        for owner in shards.iter().filter_map(|shard| shard.relay.as_ref()) {
            *owners.entry(format!("{}:{}", owner.address, owner.process)).or_default() += 1;
        }
        let help = "Shards that a process relays.";
        stats.extend(owners.into_iter().map(|(process, count)| Stat {
            of: Some(("process", process)),
            ..gauge("kinfolk_fleet_relay_shards", help, count as f64)
        }));
    }
    let help = "The newest change of the log of each shard.";
    stats.extend(of_shards("kinfolk_fleet_shard_newest", help, shards, |shard| shard.newest));
    let help = "How far each shard was relayed to the topic.";
    stats.extend(of_shards("kinfolk_fleet_shard_relayed", help, shards, |shard| shard.relayed));
    let help = "What the follower side of every host shows of each shard.";
    stats.extend(of_shards("kinfolk_fleet_shard_projected", help, shards, |shard| shard.projected));
    stats
}

/// The state of the hosts. A lag that is unknown is left out; the clock's lead is 0 while no host answers.
fn stats(observed: &Observed) -> Vec<Stat> {
    let hosts = &observed.status.hosts;
    let conditions = || hosts.iter().filter_map(|host: &HostStatus| host.condition.as_ref().ok());
    let silent = hosts.len() - conditions().count();
    let mut stats = vec![
        gauge("kinfolk_fleet_hosts", "Hosts of the fleet.", hosts.len() as f64),
        gauge(
            "kinfolk_fleet_hosts_unreachable",
            "Hosts that this process could not use at its last look.",
            silent as f64,
        ),
        gauge("kinfolk_fleet_shards", "Logical shards of the fleet.", observed.status.shards.len() as f64),
        gauge(
            "kinfolk_fleet_observed_seconds",
            "Seconds since the last look at the hosts.",
            observed.at.elapsed().as_secs_f64(),
        ),
    ];
    let closed = conditions().map(|condition| condition.shards_closed).sum::<u64>();
    let help = "Shards that take no writes because they are being moved, or because a move was interrupted.";
    stats.push(gauge("kinfolk_fleet_shards_closed", help, closed as f64));
    let help = "Shards whose writes are refused because their logs are full.";
    stats.push(gauge("kinfolk_fleet_full_logs", help, observed.status.full_logs as f64));
    if let Some(behind) = conditions().filter_map(|condition| condition.changes_behind).max() {
        let help = "Changes that the follower side of a host does not show yet, on the host that is furthest behind.";
        stats.push(gauge("kinfolk_fleet_changes_behind", help, behind as f64));
    }
    let lead = conditions().map(|condition| condition.clock_lead).max().unwrap_or(Duration::ZERO);
    let help = "How far this process's clock is ahead of a host's, at most.";
    stats.push(gauge("kinfolk_fleet_clock_lead_seconds", help, lead.as_secs_f64()));
    stats.extend(shard_stats(&observed.status.shards));
    stats
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Instant;

    use kinfolk_core::histogram::HistogramSnapshot;
    use kinfolk_core::{Epoch, IdKind, Shard};
    use kinfolk_fleet::{
        CacheState, CacheVerdict, FillOutcome, FilterState, FilterVerdict, FleetStatus, HostCondition,
        HotState, HotVerdict, LayerStates, ProcessStatus, ReconcileState, ShardVerdict,
    };
    use kinfolk_server::{ExchangeCounts, Metrics, StatKind};

    use super::*;
    use crate::profile::dashboard::metrics_of;

    /// A shard of which everything is known.
    fn shard(number: u16, newest: u64, relayed: Option<u64>) -> ShardStatus {
        let relay = ProcessStatus { role: "relay".to_owned(), address: "10.0.0.1".to_owned(), process: 7 };
        ShardStatus {
            shard: Shard(number),
            host: "a".to_owned(),
            newest: Some(Sequence(newest)),
            relayed: relayed.map(Sequence),
            relay: relayed.map(|_| relay),
            projected: Some(Sequence(newest)),
        }
    }

    fn observed(shards: Vec<ShardStatus>) -> Observed {
        let condition = HostCondition { changes_behind: Some(0), ..HostCondition::default() };
        let host = HostStatus { name: "a".to_owned(), shards: shards.len(), condition: Ok(condition) };
        let status = FleetStatus {
            id_kind: IdKind::Integer,
            epoch: Epoch(1),
            shards,
            hosts: vec![host],
            full_logs: 0,
            processes: BTreeSet::new(),
            checks: None,
        };
        Observed { at: Instant::now(), status }
    }

    /// All layers of checks, which have done nothing yet.
    fn layer_states() -> LayerStates {
        let filters = FilterState {
            verdicts: FilterVerdict::ALL.map(|verdict| (verdict, 0)),
            shards: 0,
            bytes: 0,
            damaged: 0,
        };
        let cache = CacheState {
            nodes: 0,
            nodes_left_out: 0,
            verdicts: CacheVerdict::ALL.map(|verdict| (verdict, 0)),
            fills: FillOutcome::ALL.map(|outcome| (outcome, 0)),
            changes_behind: 0,
            tags_unknown: 0,
            tags_given_up: 0,
            generations: 0,
        };
        let shards = ShardVerdict::ALL.map(|verdict| (verdict, 0));
        LayerStates { filters: Some(filters), cache: Some(cache), shards }
    }

    /// The values of a name, in their order.
    fn values(stats: &[Stat], name: &str) -> Vec<u64> {
        stats.iter().filter(|stat| stat.name == name).map(|stat| stat.value as u64).collect()
    }

    #[test]
    fn the_dashboard_shows_all_statistics_and_only_those_that_exist() {
        const LATENCIES: &str = "kinfolk_layer_duration_seconds_bucket";
        let mut stats = stats(&observed(vec![shard(0, 5, Some(5)), shard(1, 9, Some(8))]));
        stats.extend(layer_stats(&layer_states()));
        let verdicts = HotVerdict::ALL.map(|verdict| (verdict, 0));
        stats.extend(hot_stats(&HotState { verdicts, entries: 0 }));
        stats.extend(budget_stats(ExchangeCounts::default()));
        stats.extend(reconciler_stats(&ReconcileState::default()));
        let mut shown = metrics_of(include_str!("../../../../../docs/operating/grafana-fleet.json"));
        assert!(shown.remove(LATENCIES), "the dashboard does not show the latencies of the layers");
        let layers = [LayerTimes { layer: "check_shard", times: HistogramSnapshot::default() }];
        assert!(Metrics::default().render(&stats, &layers).contains(LATENCIES));
        let given: BTreeSet<String> = stats.iter().map(|stat| stat.name.to_owned()).collect();
        assert_eq!(shown, given);
        for Stat { name, kind, .. } in &stats {
            assert_eq!(*kind == StatKind::Counter, name.ends_with("_total"), "{name}");
        }
        let names: Vec<&str> =
            stats.chunk_by(|one, next| one.name == next.name).map(|of| of[0].name).collect();
        assert_eq!(names.len(), given.len(), "values of one name come one after another: {names:?}");
    }

    #[test]
    fn a_late_relay_is_an_alarm() {
        let idle = ShardStatus { relay: None, ..shard(1, RELAY_ALARM, Some(1)) };
        let late = |newest| stats(&observed(vec![shard(0, newest, Some(5)), idle.clone()]));
        let in_time = late(5);
        assert_eq!(values(&in_time, "kinfolk_fleet_relay_behind"), [99_999]);
        assert_eq!(values(&in_time, "kinfolk_fleet_relay_late"), [0]);
        assert_eq!(values(&in_time, "kinfolk_fleet_shards_without_relay"), [1]);
        assert_eq!(values(&in_time, "kinfolk_fleet_relay_shards"), [1]);
        assert_eq!(values(&late(6), "kinfolk_fleet_relay_late"), [1]);
    }

    #[test]
    fn a_fleet_without_kafka_has_no_statistics_of_relays() {
        let stats = stats(&observed(vec![shard(0, 5, None)]));
        assert_eq!(values(&stats, "kinfolk_fleet_shard_newest"), [5]);
        let of_relays = stats.iter().filter(|stat| stat.name.contains("relay")).count();
        assert_eq!(of_relays, 0);
    }
}
