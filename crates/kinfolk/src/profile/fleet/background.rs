//! What a process of a fleet does beside requests: it observes the hosts and judges whether it is ready; in the role relay it sends
//! the changes to Kafka; in the role project it keeps the follower side and the cache up to date and trims the logs; in the
//! role reconcile it compares the follower side with the truth; a process that serves keeps its filters, and exchanges what its callers spend with the others.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use kinfolk_fleet::{
    CacheFeed, ChangeSource, Filtering, Fleet, FleetStatus, LogSource, Projection, Reconciler, Relay,
    RelayCondition, Retention, ShardStatus, TopicSource, Trimmed,
};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::FleetProfile;
use super::budgets::exchange_budgets;
use crate::settings::Role;

/// The interval between two looks at the hosts.
const OBSERVE_EVERY: Duration = Duration::from_secs(5);
/// The interval between two judgements of readiness, which ask no host.
const JUDGE_EVERY: Duration = Duration::from_millis(500);
/// The interval between two runs of retention.
const TRIM_EVERY: Duration = Duration::from_secs(60);

/// The background work of a process. Dropping it ends the work at once.
pub(crate) struct Background {
    relay: Option<Relay>,
    _projection: Option<Projecting>,
    _reconciler: Option<Reconciler>,
    filtering: Option<Filtering>,
    _loops: JoinSet<()>,
}

impl Background {
    /// Starts the work, in a tokio runtime.
    pub(super) async fn start(store: &Fleet, profile: &FleetProfile) -> Result<Self> {
        let relay = match profile.relays_to() {
            Some(kafka) => Some(Relay::start(store, kafka).await?),
            None => None,
        };
        let mut loops = JoinSet::new();
        loops.spawn(observe(store.clone(), Arc::clone(&profile.status)));
        if let Some(budgets) = &profile.budgets {
            loops.spawn(exchange_budgets(store.clone(), Arc::clone(budgets)));
        }
        let projection = if profile.projects() {
            loops.spawn(trim(store.clone(), profile.retention));
            Some(match &profile.kafka {
                Some(kafka) => Projecting::start(store, profile, TopicSource::start(store, kafka).await?),
                None => Projecting::start(store, profile, LogSource::new(store)),
            })
        } else {
            None
        };
        let reconciler = profile.reconciles().then(|| Reconciler::start(store, profile.reconciling));
        let filtering = match (profile.filters(), &profile.kafka) {
            (None, _) => None,
            (Some(filters), Some(kafka)) => {
                let source = TopicSource::start_whole(store, kafka).await?;
                Some(Filtering::start(store, &Arc::new(source), filters.clone()))
            }
            (Some(filters), None) => {
                Some(Filtering::start(store, &Arc::new(LogSource::new(store)), filters.clone()))
            }
        };
        store.wait_until_warm().await?;
        // Kafka may be away for everybody. A process that also serves is not taken out because of it.
        let condition = relay.as_ref().filter(|_| profile.role == Role::Relay).map(Relay::condition);
        let condition = condition.unwrap_or_default();
        judge(store, &condition, &profile.readiness, None).await;
        loops.spawn(judge_readiness(store.clone(), condition, Arc::clone(&profile.readiness)));
        Ok(Self { relay, _projection: projection, _reconciler: reconciler, filtering, _loops: loops })
    }

    /// Ends the work, once others can take over from the relay, and saves the filters.
    pub(super) async fn stop(self) {
        let Self { relay, filtering, .. } = self;
        let save = async {
            if let Some(filtering) = filtering {
                // It fails only if saving has panicked, which was said then.
                _ = tokio::task::spawn_blocking(|| filtering.stop()).await;
            }
        };
        let relay = async {
            if let Some(relay) = relay {
                // It fails only if a task of it has panicked, which was said then.
                _ = relay.stop().await;
            }
        };
        tokio::join!(save, relay);
    }
}

/// What brings changes to the follower sides of the hosts, and to the cache.
struct Projecting {
    _projection: Projection,
    _cache: Option<CacheFeed>,
}

impl Projecting {
    fn start<S: ChangeSource>(store: &Fleet, profile: &FleetProfile, source: S) -> Self {
        let source = Arc::new(source);
        let cache = profile.has_cache().then(|| CacheFeed::start(store, &source));
        Self { _projection: Projection::start(store, &source), _cache: cache }
    }
}

/// What a loop has found out last, if anything.
pub(super) struct Latest<T>(Mutex<Option<T>>);

/// The state of the fleet when it was last looked at.
pub(super) type LatestStatus = Latest<Observed>;

/// Why this process should not be sent requests, if there was a reason when it was last judged.
pub(super) type Readiness = Latest<String>;

impl Readiness {
    /// Of a process that starts.
    pub(super) fn starting() -> Self {
        Self(Mutex::new(Some("this process has just started, and does not know its hosts yet".to_owned())))
    }
}

/// A look at the fleet.
#[derive(Clone)]
pub(super) struct Observed {
    pub(super) at: Instant,
    pub(super) status: FleetStatus,
}

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Clone> Latest<T> {
    pub(super) fn get(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, found: Option<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }
}

async fn observe(store: Fleet, latest: Arc<LatestStatus>) {
    let mut ticks = interval(OBSERVE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut alarm = RelayAlarm::default();
    loop {
        ticks.tick().await;
        match store.status().await {
            Ok(status) => {
                for host in &status.hosts {
                    if let Err(reason) = &host.condition {
                        tracing::warn!(host = host.name, reason, "a host does not answer");
                    }
                }
                alarm.judge(&status.shards);
                latest.set(Some(Observed { at: Instant::now(), status }));
            }
            Err(error) => tracing::warn!(%error, "could not look at the hosts"),
        }
    }
}

/// Changes that wait for Kafka, on all shards together.
pub(crate) fn relay_behind(shards: &[ShardStatus]) -> Option<u64> {
    let behind = || shards.iter().filter_map(ShardStatus::relay_behind);
    behind().next().is_some().then(|| behind().sum())
}

/// More changes than this wait for Kafka: the log grows, and in the end writes are refused.
pub(super) const RELAY_ALARM: u64 = 100_000;

/// Says once that the relay is late, and once that it has caught up.
#[derive(Default)]
struct RelayAlarm {
    is_on: bool,
}

impl RelayAlarm {
    fn judge(&mut self, shards: &[ShardStatus]) {
        let behind = relay_behind(shards).unwrap_or(0);
        let is_on = behind >= RELAY_ALARM;
        // Nobody knows how far a host is behind that does not answer.
        if !is_on && shards.iter().any(|shard| shard.newest.is_none()) {
            return;
        }
        match (self.is_on, is_on) {
            (false, true) => tracing::error!(behind, "the relay is late: the logs of the shards grow"),
            (true, false) => tracing::info!(behind, "the relay has caught up"),
            _ => {}
        }
        self.is_on = is_on;
    }
}

async fn judge_readiness(store: Fleet, relay: RelayCondition, readiness: Arc<Readiness>) {
    let mut ticks = interval(JUDGE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        judge(&store, &relay, &readiness, readiness.get()).await;
    }
}

/// Judges, and says what has changed since `before`.
async fn judge(store: &Fleet, relay: &RelayCondition, readiness: &Readiness, before: Option<String>) {
    // It fails only while the store is being closed.
    let reason = store.not_ready().await.unwrap_or_default().or_else(|| relay.problem());
    match (&reason, before) {
        (Some(reason), None) => tracing::warn!(reason, "not ready"),
        (None, Some(_)) => tracing::info!("ready again"),
        _ => {}
    }
    readiness.set(reason);
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
