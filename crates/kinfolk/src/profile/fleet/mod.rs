//! The fleet profile: databases that many processes share. Only this module uses the fleet store.

mod administration;
mod background;
mod budgets;
mod hot;
mod layers;
mod reconciler;
pub(crate) mod report;

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::Arc;

use anyhow::Result;
use kinfolk_core::bulk::{ImportOptions, ImportReport, Progress, SuggestionRun};
use kinfolk_core::comments::Comment;
use kinfolk_core::graph::Edge;
use kinfolk_core::suggestions::SuggestionRunRequest;
use kinfolk_core::{Deployment, EdgeKind, Epoch, Error, IdKind, Keyring, Shard, Timestamp};
use kinfolk_fleet::{
    FilterSettings, Fleet, Import, Kafka, NewDeployment, Reconciling, Redis, Retention, Sasl, Settings,
};
use kinfolk_server::{Administration, ServiceSettings, SharedBudgets};

pub(crate) use kinfolk_fleet::{
    CheckReport, FleetStatus, HostStatus, Initialized, MoveStatus, MoveStep, PlannedMove, ShardStatus,
    Warmed, plan_balance,
};

pub(crate) use self::background::relay_behind;

use self::administration::FleetAdministration;
use self::background::{Background, LatestStatus, Readiness};
use super::embedded::WallClock;
use super::{DatedEdge, EdgeImport, OpenStore, Profile};
use crate::context::Context;
use crate::failure::UsageError;
use crate::settings::{self, Role, Value};

/// A deployment of databases.
#[derive(Clone)]
pub(crate) struct FleetProfile {
    settings: Settings,
    /// The requested kind of ids.
    ids: Option<IdKind>,
    clock: WallClock,
    role: Role,
    retention: Retention,
    kafka: Option<Kafka>,
    service: ServiceSettings,
    sort_memory: usize,
    filters: FilterSettings,
    reconciling: Reconciling,
    status: Arc<LatestStatus>,
    readiness: Arc<Readiness>,
    /// What this process and the others may still admit, if it serves and there is a Redis to share that in.
    budgets: Option<Arc<SharedBudgets>>,
}

impl FleetProfile {
    /// The fleet that the configuration names, if it names one.
    pub(crate) fn of(context: &Context) -> Option<Self> {
        let configuration = &context.configuration;
        let fleet = &configuration.fleet;
        let catalog = fleet.catalog.as_ref()?;
        let hosts = fleet.hosts.0.iter().map(|(name, connection)| (name.clone(), connection.0.clone()));
        let role = configuration.server.role;
        let settings = Settings {
            role: role.text(),
            authorities: fleet.ca_file.clone(),
            read_connections: fleet.read_connections.0,
            write_connections: fleet.write_connections.0,
            threads: fleet.threads.0,
            log_changes_max: fleet.log_changes_max.0 as u64,
            redis: redis(&configuration.redis),
            ..Settings::new(catalog.0.clone(), hosts.collect())
        };
        Some(Self {
            settings,
            ids: configuration.data.ids,
            clock: context.folder.clock.clone(),
            role,
            retention: Retention { age: configuration.log.keep.0, entries_max: fleet.log_changes.0 as u64 },
            kafka: kafka(&configuration.kafka),
            service: context.folder.service,
            sort_memory: context.folder.settings.sort_memory,
            filters: FilterSettings { bytes_max: fleet.filter_memory.0, folder: fleet.filter_folder.clone() },
            reconciling: Reconciling::new(fleet.reconcile_rows),
            status: Arc::default(),
            readiness: Arc::new(Readiness::starting()),
            budgets: (role.serves_api() && !configuration.redis.nodes.0.is_empty()).then(Arc::default),
        })
    }

    /// The fleet that the configuration names, for a command that needs one.
    pub(crate) fn required(context: &Context) -> Result<Self> {
        let message =
            "no fleet is configured; set fleet.catalog and fleet.hosts in a file, and name it with --config";
        Self::of(context).ok_or_else(|| UsageError(message.to_owned()).into())
    }

    /// The names of its hosts.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.settings.hosts.keys().map(String::as_str)
    }

    /// Creates the deployment, or brings it up to date; returns the kind of ids that was asked for.
    pub(crate) fn init(&self, shards: NonZeroU16) -> kinfolk_core::Result<(Initialized, IdKind)> {
        let id_kind = self.ids.unwrap_or(IdKind::Integer);
        Ok((Fleet::init(&self.settings, NewDeployment { id_kind, shards })?, id_kind))
    }

    /// The state of the deployment, of hosts that do not answer, too.
    pub(crate) fn inspect(&self) -> kinfolk_core::Result<FleetStatus> {
        let status = Fleet::inspect(Settings { role: "status".to_owned(), ..self.settings.clone() })?;
        self.require_kind(status.id_kind)?;
        Ok(status)
    }

    /// Writes the following sets of all users to a file; returns how many.
    pub(crate) fn save_sets(
        &self,
        out: &mut (dyn Write + Send),
        progress: &dyn Fn(Progress),
    ) -> kinfolk_core::Result<u64> {
        self.open_for_tools()?.save_sets(out, progress)
    }

    /// Puts the sets of a file into Redis.
    pub(crate) fn warm(
        &self,
        input: &mut (dyn Read + Send),
        progress: &dyn Fn(Progress),
    ) -> kinfolk_core::Result<Warmed> {
        self.open_for_tools()?.warm(input, progress)
    }

    /// The state of the deployment, and the moves of its shards.
    pub(crate) fn shards(&self) -> kinfolk_core::Result<(FleetStatus, Vec<MoveStatus>)> {
        let store = self.open_for_tools()?;
        store.status_and_moves()
    }

    /// Moves a shard to another host.
    pub(crate) fn move_shard(
        &self,
        shard: u16,
        to: &str,
        progress: &dyn Fn(Progress),
    ) -> kinfolk_core::Result<()> {
        self.open_for_tools()?.move_shard(Shard(shard), to, progress)
    }

    /// Gives up the move of a shard.
    pub(crate) fn abort_move(&self, shard: u16) -> kinfolk_core::Result<()> {
        self.open_for_tools()?.abort_move(Shard(shard))
    }

    /// Begins a new epoch, after a restore.
    pub(crate) fn begin_epoch(&self) -> kinfolk_core::Result<Epoch> {
        self.open_for_tools()?.begin_epoch_and_wait()
    }

    fn open_for_tools(&self) -> kinfolk_core::Result<Fleet> {
        Fleet::open(Settings { role: "tool".to_owned(), ..self.settings.clone() })
    }

    /// A fleet keeps its kind of ids forever.
    fn require_kind(&self, kind: IdKind) -> kinfolk_core::Result<()> {
        if self.ids.is_none_or(|requested| requested == kind) {
            return Ok(());
        }
        let name = kind.name();
        let detail =
            format!("the fleet uses {name} ids, chosen when it was created; leave out data.ids and --ids");
        Err(Error::InvalidStore { detail })
    }

    fn projects(&self) -> bool {
        matches!(self.role, Role::All | Role::Project)
    }

    fn reconciles(&self) -> bool {
        matches!(self.role, Role::All | Role::Reconcile)
    }

    /// The settings of filters, if this process has any.
    fn filters(&self) -> Option<&FilterSettings> {
        let serves = matches!(self.role, Role::All | Role::Api);
        Some(&self.filters).filter(|filters| serves && filters.bytes_max > 0)
    }

    /// Whether there is a cache to bring changes to.
    fn has_cache(&self) -> bool {
        self.settings.redis.is_some()
    }

    /// The topic to relay to, if this process does.
    fn relays_to(&self) -> Option<&Kafka> {
        self.kafka.as_ref().filter(|_| matches!(self.role, Role::All | Role::Relay))
    }
}

/// The topic that the configuration names, if it names brokers.
fn kafka(settings: &settings::Kafka) -> Option<Kafka> {
    let sasl = settings.sasl.map(|mechanism| Sasl {
        mechanism: mechanism.text().to_uppercase(),
        username: settings.username.clone(),
        password: settings.password.0.clone(),
    });
    (!settings.brokers.0.is_empty()).then(|| Kafka {
        brokers: settings.brokers.text(),
        topic: settings.topic.clone(),
        replication: u16::try_from(settings.replication.0).unwrap_or(u16::MAX),
        authorities: settings.ca_file.clone(),
        sasl,
    })
}

/// The nodes of Redis that the configuration names, if it names any.
fn redis(settings: &settings::Redis) -> Option<Redis> {
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    (!settings.nodes.0.is_empty()).then(|| Redis {
        username: given(&settings.username),
        password: given(&settings.password.0),
        authorities: settings.ca_file.clone(),
        timeout: settings.timeout.0,
        keep: settings.keep.0,
        fills_per_second: u32::try_from(settings.fills.0).unwrap_or(u32::MAX),
        ..Redis::new(settings.nodes.0.iter().cloned())
    })
}

impl Profile for FleetProfile {
    type Store = Fleet;
    type Background = Background;

    fn location(&self) -> String {
        format!("a fleet on {}", self.hosts().collect::<Vec<_>>().join(", "))
    }

    fn require_role(&self, role: Role) -> Result<()> {
        if self.settings.log_changes_max <= self.retention.entries_max {
            let message =
                "fleet.log_changes_max must be above fleet.log_changes: writes would always be refused";
            return Err(UsageError(message.to_owned()).into());
        }
        match role {
            Role::Relay if self.kafka.is_none() => {
                Err(UsageError("the role relay needs kafka.brokers".to_owned()).into())
            }
            Role::All | Role::Api | Role::Project | Role::Relay | Role::Reconcile => Ok(()),
            Role::FanOut | Role::Suggest => Err(Error::NotAvailable { what: "this role" }.into()),
        }
    }

    /// A server creates no fleet: `kinfolk fleet init` does.
    fn open_or_create(&self) -> Result<Fleet> {
        let store = Fleet::open_with_clock(self.settings.clone(), Arc::new(self.clock.clone()))?;
        self.require_kind(store.id_kind())?;
        Ok(store)
    }

    fn service_settings(&self) -> ServiceSettings {
        self.service
    }

    fn everyone(&self) -> Option<SuggestionRunRequest> {
        None
    }

    fn administration(&self, store: &Fleet) -> Arc<dyn Administration> {
        Arc::new(FleetAdministration::new(store.clone(), self))
    }

    fn shared_budgets(&self) -> Option<Arc<SharedBudgets>> {
        self.budgets.clone()
    }

    async fn start_background(&self, store: &Fleet) -> Result<Background> {
        Background::start(store, self).await
    }

    async fn stop_background(background: Background) {
        background.stop().await;
    }
}

impl OpenStore for Fleet {
    type Import = Import;

    fn keyring(&self) -> Keyring {
        Self::keyring(self)
    }

    fn now(&self) -> Timestamp {
        Self::now(self)
    }

    /// Counting would read every row.
    fn edge_count(&self, _kind: EdgeKind) -> Option<u64> {
        None
    }

    fn import(&self, options: &ImportOptions) -> kinfolk_core::Result<Import> {
        Self::import(&Arc::new(self.clone()), options)
    }

    fn edges(
        &self,
        kind: EdgeKind,
    ) -> kinfolk_core::Result<impl Iterator<Item = DatedEdge> + Send + 'static> {
        Self::edges(&Arc::new(self.clone()), kind)
    }

    fn all_comments(
        &self,
    ) -> kinfolk_core::Result<impl Iterator<Item = kinfolk_core::Result<Comment>> + Send + 'static> {
        Err::<std::iter::Empty<kinfolk_core::Result<Comment>>, _>(Error::NotAvailable { what: "commenting" })
    }

    fn suggestion_run(&self) -> Option<SuggestionRun> {
        None
    }

    /// Every acknowledged write is committed already.
    fn close(self) -> kinfolk_core::Result<()> {
        drop(self);
        Ok(())
    }
}

impl EdgeImport for Import {
    fn taken(&self) -> u64 {
        Self::taken(self)
    }

    fn push(&mut self, edge: Edge, since: Option<Timestamp>) -> kinfolk_core::Result<()> {
        Self::push(self, edge, since)
    }

    fn finish(self, progress: &dyn Fn(Progress)) -> kinfolk_core::Result<ImportReport> {
        Self::finish(self, progress)
    }

    fn abandon(self) -> kinfolk_core::Result<()> {
        Self::abandon(self)
    }
}
