//! A host: a PostgreSQL database that holds shards, and this process's connections to it.

use std::error::Error as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use kinfolk_core::{Clock, Error, Result};
use tokio_postgres::config::LoadBalanceHosts;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row, Statement};

use super::{Encryption, Failure, Query, Statements};
use crate::write::{BEGIN, COMMIT};
use crate::{ProcessStatus, Settings};

/// Written by every new connection for writes: a commit that waits for the standby, if there is one.
///
/// Without it a process that reconnects to a host that has restarted could trust a row that no standby has, and a promotion
/// would take back what was answered.
const FIRST_WRITE: &str = "
    BEGIN;
    SET LOCAL statement_timeout = 0;
    SELECT pg_logical_emit_message(true, 'kinfolk', 'connected');
    COMMIT";

/// Plans that do not depend on statistics: every statement reads by key, so that the index is always right. Tables that have
/// grown since they were last analysed would otherwise be scanned.
const PLANNER: &str = "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off \
                       -c enable_mergejoin=off -c enable_material=off -c enable_memoize=off \
                       -c enable_bitmapscan=off -c jit=off";

/// The connections that [`application_name`] has named.
const CONNECTED: &str = "
    SELECT DISTINCT application_name, coalesce(host(client_addr), 'local')
    FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'kinfolk %'";

/// What processes understand. Those of the first version did not say, and would lose changes of shards that are moved.
const GENERATION: u32 = 2;

/// Names the connections of this process, so that operators and [`Host::processes`] can see what it does.
fn application_name(role: &str) -> String {
    format!("kinfolk {role} {} {GENERATION}", std::process::id())
}

/// The process that has named a connection so.
pub(crate) fn process_of(name: &str, address: String) -> Option<ProcessStatus> {
    let mut words = name.split(' ').skip(1);
    let (role, process) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
    Some(ProcessStatus { role, process, address })
}

/// A connection that returns to its pool when it is dropped, unless it is in a transaction: a task may be ended at any await,
/// and the next user of its connection would continue its transaction.
pub(crate) struct Pooled {
    /// Not there only while it is dropped.
    object: Option<Object>,
    in_transaction: AtomicBool,
}

impl Pooled {
    fn object(&self) -> &Object {
        self.object.as_ref().expect("the connection is there until it is dropped")
    }

    /// The prepared statement, which costs a round trip the first time.
    pub(crate) async fn prepare(
        &self,
        statements: &Statements,
        query: Query,
    ) -> std::result::Result<Statement, tokio_postgres::Error> {
        self.object().prepare_cached(statements.text(query)).await
    }

    pub(crate) fn client(&self) -> &Client {
        self.object()
    }

    /// Begins a transaction. Until it is known to have ended, the connection is nobody else's.
    pub(crate) async fn begin(&self, statement: &str) -> std::result::Result<(), tokio_postgres::Error> {
        self.in_transaction.store(true, Ordering::Relaxed);
        self.client().batch_execute(statement).await
    }

    /// Ends a transaction.
    pub(crate) async fn end(&self, statement: &str) -> std::result::Result<(), tokio_postgres::Error> {
        self.client().batch_execute(statement).await?;
        self.in_transaction.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Closes the connection when it is dropped: after an error nobody knows what state it is in.
    pub(crate) fn discard(&self) {
        self.in_transaction.store(true, Ordering::Relaxed);
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(object) = self.object.take().filter(|_| self.in_transaction.load(Ordering::Relaxed)) {
            drop(Object::take(object));
        }
    }
}

/// A host and the connections to it.
pub(crate) struct Host {
    pub(crate) name: String,
    reads: Pool,
    writes: Pool,
    /// A host answers within its own timeouts; one that is silent for longer may never answer.
    silence_max: Duration,
}

impl Host {
    pub(crate) fn new(name: &str, target: Target<'_>, settings: &Settings) -> Result<Self> {
        let timeouts = settings.timeouts;
        let idle = timeouts.idle_in_transaction.as_millis();
        let lock = timeouts.lock.as_millis();
        let statement = timeouts.statement.as_millis();
        let options = format!(
            "{} {PLANNER} -c idle_in_transaction_session_timeout={idle} -c lock_timeout={lock} \
             -c statement_timeout={statement}",
            pool_options(target.schema),
        );
        let mut config = configured(target, &options, timeouts.connect)?;
        config.application_name(application_name(&settings.role));
        // Each server that is named may take its time to refuse.
        let create = timeouts.connect * server_count(&config).max(1);
        let pool = |size, hook: Option<Hook>| -> Result<Pool> {
            let manager = Manager::from_config(
                config.clone(),
                target.encryption.clone(),
                ManagerConfig { recycling_method: RecyclingMethod::Fast },
            );
            let builder = Pool::builder(manager)
                .max_size(size)
                .runtime(Runtime::Tokio1)
                .wait_timeout(Some(timeouts.statement))
                .create_timeout(Some(create));
            let builder = hook.into_iter().fold(builder, deadpool_postgres::PoolBuilder::post_create);
            builder.build().map_err(|error| Error::InvalidStore { detail: error.to_string() })
        };
        let first_write = Hook::async_fn(|client, _| {
            Box::pin(async move { client.batch_execute(FIRST_WRITE).await.map_err(HookError::Backend) })
        });
        Ok(Self {
            name: name.to_owned(),
            reads: pool(settings.read_connections, None)?,
            // A comparison reads by one of them what it compares under a lock that another holds. A relay keeps one, and a
            // reconciler another.
            writes: pool(settings.write_connections.max(2) + 2, Some(first_write))?,
            silence_max: timeouts.lock + timeouts.statement + Duration::from_secs(1),
        })
    }

    /// Closes the connections that nobody uses right now: they lead to an old primary.
    pub(crate) fn drop_connections(&self) {
        self.reads.retain(|_, _| false);
        self.writes.retain(|_, _| false);
    }

    /// A connection for statements of their own.
    pub(crate) async fn reader(&self) -> std::result::Result<Pooled, Failure> {
        self.connection(&self.reads).await
    }

    /// A connection for transactions. It has committed a write before it is used.
    pub(crate) async fn writer(&self) -> std::result::Result<Pooled, Failure> {
        self.connection(&self.writes).await
    }

    async fn connection(&self, pool: &Pool) -> std::result::Result<Pooled, Failure> {
        let object = pool.get().await.map_err(|error| Failure::of_pool(&self.name, &error))?;
        Ok(Pooled { object: Some(object), in_transaction: AtomicBool::new(false) })
    }

    /// Runs one statement that changes nothing.
    pub(crate) async fn query(
        &self,
        statements: &Statements,
        query: Query,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> std::result::Result<Vec<Row>, Failure> {
        self.query_by(&self.reader().await?, statements, query, parameters).await
    }

    /// As [`Host::query`], by a connection that has committed a write: what it shows is on the standby.
    pub(crate) async fn query_durable(
        &self,
        statements: &Statements,
        query: Query,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> std::result::Result<Vec<Row>, Failure> {
        self.query_by(&self.writer().await?, statements, query, parameters).await
    }

    /// Runs one statement by a connection.
    pub(crate) async fn query_by(
        &self,
        connection: &Pooled,
        statements: &Statements,
        query: Query,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> std::result::Result<Vec<Row>, Failure> {
        let rows = async {
            let statement = connection.prepare(statements, query).await?;
            connection.client().query(&statement, parameters).await
        };
        let rows = self.within_time(rows).await;
        rows.inspect_err(|_| connection.discard())
    }

    /// Waits for a reply for as long as one may come.
    async fn within_time<T>(
        &self,
        reply: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
    ) -> std::result::Result<T, Failure> {
        match tokio::time::timeout(self.silence_max, reply).await {
            Ok(reply) => reply.map_err(|error| Failure::of_statement(&self.name, &error)),
            Err(_) => Err(Failure::Transient(super::unavailable(&self.name, "it did not answer in time"))),
        }
    }
}

impl Host {
    /// Runs one statement as a transaction of its own, and returns how many rows it has changed. For changes that are harmless
    /// when their reply is lost.
    pub(crate) async fn execute(
        &self,
        statements: &Statements,
        query: Query,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> std::result::Result<u64, Failure> {
        let connection = self.writer().await?;
        let changed = async {
            let statement = connection.prepare(statements, query).await?;
            connection.client().execute(&statement, parameters).await
        };
        let changed = self.within_time(changed).await;
        changed.inspect_err(|_| connection.discard())
    }
}

impl Host {
    /// How far a clock is ahead of the host's.
    pub(crate) async fn clock_lead(&self, clock: &dyn Clock) -> std::result::Result<Duration, Failure> {
        let connection = self.reader().await?;
        let ask = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
        let answer = self.within_time(connection.client().query_one(ask, &[])).await;
        let row = answer.inspect_err(|_| connection.discard())?;
        Ok(Duration::from_millis(clock.now().millis().saturating_sub(row.get::<_, i64>(0) as u64)))
    }

    /// The processes of the fleet that are connected to the host, by the names of their connections.
    pub(crate) async fn processes(&self) -> std::result::Result<Vec<ProcessStatus>, Failure> {
        let rows = self.ask(CONNECTED).await?;
        Ok(rows.iter().filter_map(|row| process_of(row.get(0), row.get(1))).collect())
    }

    /// The processes of the fleet that are connected to the host and do not know that shards are moved.
    pub(crate) async fn processes_without_moves(&self) -> std::result::Result<Vec<ProcessStatus>, Failure> {
        let older = format!("{CONNECTED} AND split_part(application_name, ' ', 4) = ''");
        let rows = self.ask(&older).await?;
        Ok(rows.iter().filter_map(|row| process_of(row.get(0), row.get(1))).collect())
    }

    /// Runs work as a transaction of its own. If it fails, or takes longer than it may, nothing has changed, except where the reply to the
    /// commit was lost.
    pub(crate) async fn transaction<T>(
        &self,
        limit: Duration,
        work: impl AsyncFnOnce(&Pooled) -> std::result::Result<T, Failure>,
    ) -> std::result::Result<T, Failure> {
        let connection = self.writer().await?;
        let failed = |error: tokio_postgres::Error| Failure::of_statement(&self.name, &error);
        let whole = async {
            connection.begin(BEGIN).await.map_err(failed)?;
            let done = work(&connection).await?;
            connection.end(COMMIT).await.map_err(failed).map(|()| done)
        };
        let silent = || Failure::Transient(super::unavailable(&self.name, "it did not answer in time"));
        let outcome = tokio::time::timeout(limit, whole).await.unwrap_or_else(|_| Err(silent()));
        outcome.inspect_err(|_| connection.discard())
    }

    /// The rows of a statement about the host itself.
    pub(crate) async fn ask(&self, text: &str) -> std::result::Result<Vec<Row>, Failure> {
        self.ask_by(&self.reader().await?, text).await
    }

    /// As [`Host::ask`], by a connection.
    pub(crate) async fn ask_by(
        &self,
        connection: &Pooled,
        text: &str,
    ) -> std::result::Result<Vec<Row>, Failure> {
        let rows = self.within_time(connection.client().query(text, &[])).await;
        rows.inspect_err(|_| connection.discard())
    }

    /// As [`Host::ask`], by a connection that has committed a write: what it shows is on the standby.
    pub(crate) async fn ask_durable(&self, text: &str) -> std::result::Result<Vec<Row>, Failure> {
        let connection = self.writer().await?;
        let rows = self.within_time(connection.client().query(text, &[])).await;
        rows.inspect_err(|_| connection.discard())
    }

    /// Runs a statement of an operator's command as a transaction of its own, and returns how many rows it has changed.
    pub(crate) async fn change(&self, text: &str) -> std::result::Result<u64, Failure> {
        let connection = self.writer().await?;
        let changed = self.within_time(connection.client().execute(text, &[])).await;
        changed.inspect_err(|_| connection.discard())
    }

    /// The plan of a statement, as every connection of this store makes it.
    pub(crate) async fn explain(&self, text: &str) -> std::result::Result<String, Failure> {
        let connection = self.reader().await?;
        let plan = async {
            let client = connection.client();
            let parameters = client.prepare(text).await?.params().len();
            let nothing = match parameters {
                0 => String::new(),
                some => format!("({})", vec!["NULL"; some].join(", ")),
            };
            client.batch_execute(&format!("PREPARE explained AS {text}")).await?;
            client.query(&format!("EXPLAIN EXECUTE explained {nothing}"), &[]).await
        };
        let plan = plan.await;
        connection.discard();
        let rows = plan.map_err(|error| Failure::of_statement(&self.name, &error))?;
        let lines: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
        Ok(lines.join("\n"))
    }
}

/// The options that every connection has: the schema that its tables are in.
fn pool_options(schema: &str) -> String {
    format!("-c search_path={schema} -c client_min_messages=warning")
}

/// A database to connect to.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    /// What it is, for messages.
    pub(crate) what: &'a str,
    pub(crate) connection: &'a str,
    pub(crate) encryption: &'a Encryption,
    /// The schema that its tables are in.
    pub(crate) schema: &'static str,
}

fn configured(target: Target<'_>, options: &str, connect: Duration) -> Result<Config> {
    let mut config: Config = target.connection.parse().map_err(|error: tokio_postgres::Error| {
        // Other reasons quote the string, and with it a password that has a space.
        let reason =
            error.source().map(ToString::to_string).filter(|why| why.starts_with("invalid value for"));
        let expected = "expected a URL, or KEY=VALUE with single quotes around a value with spaces";
        let reason = reason.unwrap_or_else(|| expected.to_owned());
        Error::InvalidStore {
            detail: format!("the connection string of {} is invalid: {reason}", target.what),
        }
    })?;
    target.encryption.apply(target.what, &mut config)?;
    let options = match config.get_options() {
        Some(own) => format!("{own} {options}"),
        None => options.to_owned(),
    };
    config.options(options).application_name("kinfolk").connect_timeout(connect);
    if server_count(&config) > 1 {
        // The first one named may be silent, as an old primary is whose machine has failed: it must not be the first to be tried
        // every time.
        config.load_balance_hosts(LoadBalanceHosts::Random);
    }
    // A connection whose other end has vanished is closed about as fast as a statement times out.
    config.tcp_user_timeout(connect + Duration::from_secs(1));
    Ok(config)
}

/// How many servers a connection string names.
fn server_count(config: &Config) -> u32 {
    config.get_hosts().len().max(config.get_hostaddrs().len()) as u32
}

/// A connection outside of any pool, for the catalog and for creating schemas. Its errors say why: they go to operators.
pub(crate) async fn connect(target: Target<'_>, timeout: Duration) -> Result<Client> {
    let config = configured(target, &pool_options(target.schema), timeout)?;
    let limit = timeout * server_count(&config).max(1);
    let connected = tokio::time::timeout(limit, config.connect(target.encryption.clone())).await;
    let because = |reason: &str| super::unavailable(&format!("{} ({reason})", target.what), reason);
    let (client, driver) = connected.map_err(|_| because("the connection timed out"))?.map_err(|error| {
        let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
        match Failure::of_statement(target.what, &error) {
            Failure::Final(_) => Error::InvalidStore {
                detail: format!(
                    "{} refuses the connection: {reason}; correct its connection string or the role's rights",
                    target.what
                ),
            },
            _ => because(&reason),
        }
    })?;
    tokio::spawn(async move {
        if let Err(error) = driver.await {
            tracing::debug!(%error, "a connection ended");
        }
    });
    Ok(client)
}
