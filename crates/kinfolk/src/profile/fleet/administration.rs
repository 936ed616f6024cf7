//! The administration of a fleet through a server: bulk work on streams, and the state of its hosts for metrics.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kinfolk_core::Result;
use kinfolk_core::bulk::{Progress, VerifyReport};
use kinfolk_fleet::{Fleet, HostStatus};
use kinfolk_server::{Administration, Capability, ExportRequest, ImportDone, ImportRequest, Stat, StatKind};

use super::FleetProfile;
use super::background::{LatestStatus, Observed, Readiness};
use crate::profile::files::StoreFiles;

/// Bulk work on a fleet, and its statistics.
pub(super) struct FleetAdministration {
    files: StoreFiles<Fleet>,
    status: Arc<LatestStatus>,
    readiness: Arc<Readiness>,
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
        Self { files, status: Arc::clone(&profile.status), readiness: Arc::clone(&profile.readiness) }
    }
}

impl Administration for FleetAdministration {
    fn stats(&self) -> Vec<Stat> {
        self.status.get().as_ref().map(stats).unwrap_or_default()
    }

    fn not_ready(&self) -> Option<String> {
        self.readiness.not_ready()
    }

    /// Backups are PostgreSQL's own, and there are no files to compact. Suggestions are computed only on request so far.
    fn has(&self, capability: Capability) -> bool {
        matches!(capability, Capability::Imports | Capability::Exports | Capability::Verification)
    }

    fn import(
        &self,
        file: &mut (dyn Read + Send),
        request: &ImportRequest,
        progress: &dyn Fn(Progress),
    ) -> Result<ImportDone> {
        self.files.import(file, request, progress)
    }

    fn export(&self, file: &mut (dyn Write + Send), request: ExportRequest) -> Result<u64> {
        self.files.export(file, request)
    }

    fn verify(&self, repair: bool, progress: &dyn Fn(Progress)) -> Result<VerifyReport> {
        self.files.store.verify(repair, progress)
    }
}

fn gauge(name: &'static str, help: &'static str, value: f64) -> Stat {
    Stat { name, help, kind: StatKind::Gauge, value }
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
        gauge("kinfolk_fleet_shards", "Logical shards of the fleet.", observed.status.shards as f64),
        gauge(
            "kinfolk_fleet_observed_seconds",
            "Seconds since the last look at the hosts.",
            observed.at.elapsed().as_secs_f64(),
        ),
    ];
    if let Some(behind) = conditions().filter_map(|condition| condition.changes_behind).max() {
        let help = "Changes that the follower side of a host does not show yet, on the host that is furthest behind.";
        stats.push(gauge("kinfolk_fleet_changes_behind", help, behind as f64));
    }
    let lead = conditions().map(|condition| condition.clock_lead).max().unwrap_or(Duration::ZERO);
    let help = "How far this process's clock is ahead of a host's, at most.";
    stats.push(gauge("kinfolk_fleet_clock_lead_seconds", help, lead.as_secs_f64()));
    stats
}
