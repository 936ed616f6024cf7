//! What a process of a fleet does beside requests: it observes the hosts and, in the role project, keeps the follower side up to
//! date and trims the logs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kinfolk_core::Result;
use kinfolk_fleet::{Fleet, FleetStatus, LogSource, Projection, Retention, Trimmed};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::FleetProfile;

/// The interval between two looks at the hosts.
const OBSERVE_EVERY: Duration = Duration::from_secs(5);
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
    /// Why this process should not be sent requests.
    pub(super) not_ready: Option<String>,
}

impl LatestStatus {
    /// The latest look, if there was one.
    pub(super) fn get(&self) -> Option<Observed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, observed: Observed) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(observed);
    }
}

async fn observe(store: Fleet, latest: Arc<LatestStatus>) {
    let mut ticks = interval(OBSERVE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match look(&store).await {
            Ok(observed) => {
                for host in &observed.status.hosts {
                    if let Err(reason) = &host.condition {
                        tracing::warn!(host = host.name, reason, "a host does not answer");
                    }
                }
                if let Some(reason) = &observed.not_ready {
                    tracing::warn!(reason, "not ready");
                }
                latest.set(observed);
            }
            Err(error) => tracing::warn!(%error, "could not look at the hosts"),
        }
    }
}

async fn look(store: &Fleet) -> Result<Observed> {
    let (status, not_ready) = tokio::try_join!(store.status(), store.not_ready())?;
    Ok(Observed { at: Instant::now(), status, not_ready })
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
