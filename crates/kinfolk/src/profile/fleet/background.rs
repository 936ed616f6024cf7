//! What a process of a fleet does beside requests: it observes the hosts, judges whether it is ready and, in the role project,
//! keeps the follower side up to date and trims the logs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kinfolk_fleet::{Fleet, FleetStatus, LogSource, Projection, Retention, Trimmed};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::FleetProfile;

/// The interval between two looks at the hosts.
const OBSERVE_EVERY: Duration = Duration::from_secs(5);
/// The interval between two judgements of readiness, which ask no host.
const JUDGE_EVERY: Duration = Duration::from_millis(500);
/// The interval between two runs of retention.
const TRIM_EVERY: Duration = Duration::from_secs(60);

/// The background work of a process. Dropping it ends the work.
pub(crate) struct Background {
    _projection: Option<Projection>,
    _loops: JoinSet<()>,
}

impl Background {
    /// Starts the work, in a tokio runtime.
    pub(super) fn start(store: &Fleet, profile: &FleetProfile) -> Self {
        let mut loops = JoinSet::new();
        loops.spawn(observe(store.clone(), Arc::clone(&profile.status)));
        loops.spawn(judge_readiness(store.clone(), Arc::clone(&profile.readiness)));
        let projection = profile.projects().then(|| {
            loops.spawn(trim(store.clone(), profile.retention));
            Projection::start(store, &Arc::new(LogSource::new(store)))
        });
        Self { _projection: projection, _loops: loops }
    }
}

/// The state of the fleet when it was last looked at.
#[derive(Default)]
pub(super) struct LatestStatus(Mutex<Option<Observed>>);

/// A look at the fleet.
#[derive(Clone)]
pub(super) struct Observed {
    pub(super) at: Instant,
    pub(super) status: FleetStatus,
}

impl LatestStatus {
    /// The latest look, if there was one.
    pub(super) fn get(&self) -> Option<Observed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, status: FleetStatus) {
        let observed = Observed { at: Instant::now(), status };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(observed);
    }
}

/// Whether this process should be sent requests, as was last found out.
#[derive(Default)]
pub(super) struct Readiness(Mutex<Option<String>>);

impl Readiness {
    /// Why not, if there is a reason.
    pub(super) fn not_ready(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, reason: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }
}

async fn observe(store: Fleet, latest: Arc<LatestStatus>) {
    let mut ticks = interval(OBSERVE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match store.status().await {
            Ok(status) => {
                for host in &status.hosts {
                    if let Err(reason) = &host.condition {
                        tracing::warn!(host = host.name, reason, "a host does not answer");
                    }
                }
                latest.set(status);
            }
            Err(error) => tracing::warn!(%error, "could not look at the hosts"),
        }
    }
}

async fn judge_readiness(store: Fleet, readiness: Arc<Readiness>) {
    let mut ticks = interval(JUDGE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // It fails only while the store is being closed.
        let reason = store.not_ready().await.unwrap_or_default();
        match (&reason, readiness.not_ready()) {
            (Some(reason), None) => tracing::warn!(reason, "not ready"),
            (None, Some(_)) => tracing::info!("ready again"),
            _ => {}
        }
        readiness.set(reason);
    }
}

async fn trim(store: Fleet, retention: Retention) {
    let mut ticks = interval(TRIM_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match store.trim_log(retention).await {
            Ok(Trimmed { entries: 0, shards_held_back: 0 }) => {}
            Ok(Trimmed { entries, shards_held_back }) => {
                tracing::info!(entries, shards_held_back, "trimmed the change log");
            }
            Err(error) => tracing::warn!(%error, "could not trim the change log"),
        }
    }
}
