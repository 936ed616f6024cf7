//! Moving a shard to another host while it is read and written.
//!
//! The log is what makes it simple: the rows of the shard are copied page by page while they change, and then all changes since the
//! beginning are applied to the copy, until it is as the shard is at its newest change. Its follower side follows the logs of all sources
//! in the same way. Neither needs a long snapshot or a replication slot, so that a promotion of either host costs nothing.
//!
//! | step | old host | new host | catalog |
//! |---|---|---|---|
//! | copy and follow | open | incoming | names the old host |
//! | close | closing: read, not written | incoming, up to the last change | |
//! | hand over | closed | incoming | |
//! | open | closed | open, with the next term | |
//! | publish | closed | open | names the new host |
//! | clean up | gone | open | |
//!
//! At every moment at most one host accepts writes, and a host that accepts reads has every acknowledged change. A process with an
//! old map is refused, because the host compares its term; it reads the catalog and tries again. Every step is a transaction that names
//! the process that moves: one that was stopped, and has been replaced since, changes nothing any more.

mod abort;
mod balance;
mod copy;
mod cutover;
mod erase;
mod follow;
mod status;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::bulk::Progress;
use kinfolk_core::{Error, Result, Shard};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};
use tokio_postgres::Client;

pub use self::balance::{PlannedMove, plan_balance};
pub(crate) use self::erase::erase;
pub use self::status::{MoveStatus, MoveStep};

use crate::Fleet;
use crate::background::Background;
use crate::bulk::OWNER;
use crate::catalog::{Move, Topology, connect_to_host};
use crate::fleet::Shared;
use crate::postgres::{Failure, Host};
use crate::write::LOCK_CLASS;

/// The class of the lock that the sessions of a move have for its shard, on both hosts.
const MOVES: i32 = 0x6b6a;

const CLAIM_OLD: &str = "INSERT INTO outgoing (shard, mover) VALUES ($1, $2)
                         ON CONFLICT (shard) DO UPDATE SET mover = EXCLUDED.mover";

const CLAIM_NEW: &str = "UPDATE incoming SET mover = $2 WHERE shard = $1";

/// A host ends a session that is silent for longer: its process was stopped, or has died.
const SILENCE_MAX: &str = "5s";

const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// A move waits so long for a host that does not answer. It can be resumed.
const PATIENCE: Duration = Duration::from_secs(60);

const AFTER_FAILURE: Duration = Duration::from_millis(200);

/// How long a transaction of a move may take.
const TRANSACTION_MAX: Duration = Duration::from_secs(15);

impl Fleet {
    /// Moves a shard to another host, or goes on with a move that was interrupted.
    ///
    /// It waits for the hosts and must not be called on a thread of an async runtime.
    pub fn move_shard(&self, shard: Shard, to: &str, progress: &dyn Fn(Progress)) -> Result<()> {
        self.handle().block_on(async {
            let mover = Mover::begin(&self.shared, shard, to, progress).await?;
            mover.run().await.map_err(Failure::into_error)
        })
    }

    /// Gives up the move of a shard that has not been opened on its new host yet. The shard stays where it is.
    ///
    /// It waits for the hosts and must not be called on a thread of an async runtime.
    pub fn abort_move(&self, shard: Shard) -> Result<()> {
        self.handle().block_on(async {
            let moves = self.shared.catalog().moves().await?;
            let found = moves.into_iter().find(|one| one.shard == shard);
            let missing = || Error::InvalidInput { detail: format!("shard {} is not being moved", shard.0) };
            let mover = Mover::take(&self.shared, found.ok_or_else(missing)?, &|_| {}).await?;
            mover.abort().await.map_err(Failure::into_error)
        })
    }
}

/// A process that moves a shard.
struct Mover<'a> {
    shared: &'a Arc<Shared>,
    topology: Arc<Topology>,
    moved: Move,
    from: Arc<Host>,
    to: Arc<Host>,
    /// Names this attempt in every transaction.
    number: Cell<i64>,
    progress: &'a dyn Fn(Progress),
    /// Hold the locks that keep imports and other moves of the shard away.
    _sessions: Vec<Background>,
}

impl<'a> Mover<'a> {
    /// Begins a move, or takes over the one of the shard that has begun.
    async fn begin(
        shared: &'a Arc<Shared>,
        shard: Shard,
        to: &str,
        progress: &'a dyn Fn(Progress),
    ) -> Result<Self> {
        shared.reload_topology().await.map_err(Failure::into_error)?;
        let topology = shared.topology();
        if topology.host_named(to).is_none() {
            let known: Vec<&str> = topology.hosts.iter().map(|host| host.name.as_str()).collect();
            let detail = format!(
                "the fleet has no host {to}, only {}: add it to the configuration and run 'kinfolk fleet init'",
                known.join(", ")
            );
            return Err(Error::InvalidInput { detail });
        }
        require_generation(&topology).await?;
        shared.catalog().assignment(shard).await?;
        let moved = shared.catalog().begin_move(shard, to).await?;
        if moved.to != to {
            let detail =
                format!("shard {} is being moved to host {}: abort that move first", shard.0, moved.to);
            return Err(Error::InvalidInput { detail });
        }
        Self::take(shared, moved, progress).await
    }

    /// Takes a move over from whatever process was at it before.
    async fn take(shared: &'a Arc<Shared>, moved: Move, progress: &'a dyn Fn(Progress)) -> Result<Self> {
        let topology = shared.topology();
        let host = |name: &str| {
            let index = topology.host_named(name);
            let unknown = || Error::InvalidStore { detail: format!("the settings have no host {name}") };
            index.map(|index| Arc::clone(&topology.hosts[index])).ok_or_else(unknown)
        };
        let (from, to) = (host(&moved.from)?, host(&moved.to)?);
        let number = random_number()?;
        let lock = format!("SELECT pg_try_advisory_lock({MOVES}, {})", moved.shard.0);
        let mut sessions = Vec::new();
        // The old host first: the shard is open there if it can be, even if the new one does not answer.
        for host in [&from, &to] {
            let client = session(shared, &moved, host).await?;
            let failed =
                |error: tokio_postgres::Error| Failure::of_statement(&host.name, &error).into_error();
            let is_own = client.query_one(&lock, &[]).await.map_err(failed)?.get::<_, bool>(0);
            // Under the lock: a move that is over must not be claimed, nor one that another process has taken over since the first host.
            let earlier = (!sessions.is_empty()).then_some(number);
            let is_there = is_own && shared.catalog().claim_move(&moved, earlier, number).await?;
            if !is_there {
                let reason = if is_own { "has just ended the move of" } else { "is moving" };
                let detail = format!("another process {reason} shard {}", moved.shard.0);
                return Err(Error::InUse { detail });
            }
            // By the session that has the lock, which is gone if this process was stopped for long: every earlier process of this move
            // changes nothing from now on.
            let (shard, claims) = (moved.shard.0 as i16, Arc::ptr_eq(host, &from));
            let claim = if claims { CLAIM_OLD } else { CLAIM_NEW };
            client.execute(claim, &[&shard, &number]).await.map_err(failed)?;
            if claims {
                client.execute(cutover::OPEN_CLOSING, &[&shard, &moved.term]).await.map_err(failed)?;
            }
            sessions.push(keep_alive(client));
        }
        let number = Cell::new(number);
        Ok(Self { shared, topology, moved, from, to, number, progress, _sessions: sessions })
    }

    fn number_of_shard(&self) -> i16 {
        self.moved.shard.0 as i16
    }

    /// Goes on from wherever the move is.
    async fn run(&self) -> std::result::Result<(), Failure> {
        let (_, term) = self.shared.catalog().assignment(self.moved.shard).await.map_err(Failure::Final)?;
        if term == self.moved.term {
            if !self.is_open_at_new_host().await? {
                self.copy().await?;
                self.hand_over().await?;
            }
            let publish = async || {
                let published = self.shared.catalog().publish_move(&self.moved, self.number.get()).await;
                published.map_err(Failure::Transient)
            };
            if !self.patiently(publish).await? {
                return Err(self.replaced());
            }
            // Only this process needs to be told: others find out when they are refused.
            _ = self.shared.reload_topology().await;
        }
        self.report("cleaning up", 0, None);
        self.patiently(|| self.clean_up(&self.from)).await?;
        self.shared.catalog().end_move(&self.moved, self.number.get()).await.map_err(Failure::Transient)
    }

    /// Tries something again while it fails for a reason that may pass, for as long as an operator would wait: a host restarts, or its
    /// standby is promoted.
    async fn patiently<T>(
        &self,
        attempt: impl AsyncFn() -> std::result::Result<T, Failure>,
    ) -> std::result::Result<T, Failure> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match attempt().await {
                Err(Failure::Transient(error)) if Instant::now() < deadline => {
                    tracing::debug!(shard = self.moved.shard.0, %error, "a step of a move is tried again");
                    sleep(AFTER_FAILURE).await;
                }
                outcome => return outcome,
            }
        }
    }

    fn report(&self, stage: &'static str, done: u64, total: Option<u64>) {
        (self.progress)(Progress { stage, done, total });
    }

    /// What the rows of the shard on a host say: its epoch, term and state.
    async fn state_on(&self, host: &Host) -> std::result::Result<Option<(i64, i64, String)>, Failure> {
        let shard = self.number_of_shard();
        let ask = format!("SELECT epoch, term, state FROM shards WHERE shard = {shard}");
        let rows = host.ask_durable(&ask).await?;
        Ok(rows.first().map(|row| (row.get(0), row.get(1), row.get(2))))
    }

    async fn is_open_at_new_host(&self) -> std::result::Result<bool, Failure> {
        let found = self.state_on(&self.to).await?;
        Ok(found.is_some_and(|(_, term, _)| term == self.moved.term + 1))
    }

    /// The error of a process that was replaced.
    fn replaced(&self) -> Failure {
        let detail = format!("another process has taken over the move of shard {}", self.moved.shard.0);
        Failure::Final(Error::InUse { detail })
    }
}

/// A number that names an attempt to move a shard.
fn random_number() -> Result<i64> {
    let random = getrandom::u64().map_err(|error| Error::Storage { detail: error.to_string() })?;
    Ok((random >> 1) as i64)
}

/// Refuses to move anything while processes are connected that would lose changes of it.
async fn require_generation(topology: &Topology) -> Result<()> {
    for host in &topology.hosts {
        let older = host.processes_without_moves().await.map_err(Failure::into_error)?;
        if let Some(process) = older.first() {
            let detail = format!(
                "process {} ({}) at {} is of a version that does not know moved shards: restart it with this version first",
                process.process, process.role, process.address
            );
            return Err(Error::InvalidInput { detail });
        }
    }
    Ok(())
}

/// A session on a host that keeps imports away for as long as it lives.
async fn session(shared: &Shared, moved: &Move, host: &Host) -> Result<Client> {
    let client = connect_to_host(&host.name, shared.catalog(), &shared.settings).await?;
    let failed = |error: tokio_postgres::Error| Failure::of_statement(&host.name, &error).into_error();
    let limit = format!("SET idle_session_timeout = '{SILENCE_MAX}'");
    client.batch_execute(&limit).await.map_err(failed)?;
    let ask =
        format!("SELECT pg_try_advisory_lock_shared({LOCK_CLASS}, {OWNER}), EXISTS (SELECT FROM import)");
    let row = client.query_one(&ask, &[]).await.map_err(failed)?;
    if row.get::<_, bool>(0) && !row.get::<_, bool>(1) {
        return Ok(client);
    }
    let detail = format!(
        "host {} has an import that is not done: run the same import again until it is, then move shard {}",
        host.name, moved.shard.0
    );
    Err(Error::InUse { detail })
}

/// Keeps a session alive until it is dropped. What a move does without it is refused if another process has taken over.
fn keep_alive(session: Client) -> Background {
    let session = Arc::new(session);
    Background::start(&Handle::current(), "session of a move", move || {
        let session = Arc::clone(&session);
        async move {
            while session.batch_execute("SELECT").await.is_ok() {
                sleep(ALIVE_EVERY).await;
            }
        }
    })
}
