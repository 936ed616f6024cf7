//! The catalog: a small database that says what a deployment is made of.

mod init;
mod moves;
mod schema;
mod topology;

use std::time::Duration;

use kinfolk_core::{Clock, Epoch, Error, IdKind, Keyring, Result, SigningKey, SystemClock};
use tokio_postgres::Client;

pub use init::{Initialized, NewDeployment};
pub(crate) use moves::Move;
pub(crate) use topology::{Topology, connect_to_host};

use crate::Settings;
use crate::postgres::{Encryption, Target, connect};

/// The catalog of a deployment.
#[derive(Clone)]
pub struct Catalog {
    connection: String,
    pub(crate) encryption: Encryption,
    timeout: Duration,
}

/// Without the connection string, which may hold a password.
impl std::fmt::Debug for Catalog {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Catalog").finish_non_exhaustive()
    }
}

/// What the catalog says about a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) identity: i64,
    pub(crate) id_kind: IdKind,
    pub(crate) epoch: Epoch,
    /// Rises with every change of the hosts and of their shards.
    pub(crate) map_version: i64,
    /// All hosts, in order. One may hold no shard.
    pub(crate) hosts: Vec<String>,
    /// For each shard, its host's name and its term.
    pub(crate) shards: Vec<(String, i64)>,
}

impl Catalog {
    /// The catalog that the settings name.
    pub fn new(settings: &Settings) -> Result<Self> {
        Ok(Self {
            connection: settings.catalog.clone(),
            encryption: Encryption::new(settings.authorities.as_deref())?,
            timeout: settings.timeouts.connect,
        })
    }

    async fn client(&self) -> Result<Client> {
        let target = Target {
            what: "the catalog",
            connection: &self.connection,
            encryption: &self.encryption,
            schema: schema::CATALOG.name,
        };
        connect(target, self.timeout).await
    }

    /// Reads what the deployment is made of. A catalog of another version is refused.
    pub(crate) async fn describe(&self) -> Result<Description> {
        let client = self.client().await?;
        schema::CATALOG.require(&client).await?;
        // One statement, so that the map is of one moment.
        let ask = "SELECT identity, id_kind, epoch, shards,
                       array(SELECT name FROM hosts ORDER BY name),
                       array(SELECT host FROM shard_map ORDER BY shard),
                       array(SELECT term FROM shard_map ORDER BY shard),
                       map_version
                   FROM deployment";
        let row = client.query_opt(ask, &[]).await.map_err(|error| storage(&error))?;
        // An epoch of 0 is that of a creation that was interrupted.
        let row = row.filter(|row| row.get::<_, i64>(2) != 0).ok_or_else(|| Error::InvalidStore {
            detail: "the catalog has no complete deployment: run 'kinfolk fleet init'".into(),
        })?;
        let id_kind: String = row.get(1);
        let id_kind = IdKind::from_name(&id_kind).ok_or_else(|| Error::InvalidStore {
            detail: format!("the catalog has ids of kind {id_kind}"),
        })?;
        let (hosts, terms): (Vec<String>, Vec<i64>) = (row.get(5), row.get(6));
        let shards: Vec<_> = hosts.into_iter().zip(terms).collect();
        if shards.len() as i32 != row.get::<_, i32>(3) {
            return Err(Error::Corrupt { detail: "the catalog's map does not name every shard".into() });
        }
        Ok(Description {
            identity: row.get(0),
            id_kind,
            epoch: Epoch(row.get::<_, i64>(2) as u64),
            map_version: row.get(7),
            hosts: row.get(4),
            shards,
        })
    }

    /// Makes every process work in an epoch, once its hosts are ready for it.
    pub(crate) async fn publish_epoch(&self, epoch: Epoch) -> Result<()> {
        let client = self.client().await?;
        let changed = client.execute("UPDATE deployment SET epoch = $1", &[&(epoch.0 as i64)]).await;
        changed.map(drop).map_err(|error| storage(&error))
    }

    /// The keys that sign tokens and cursors: the newest signs, all of them verify.
    pub async fn keys(&self) -> Result<Keyring> {
        let client = self.client().await?;
        schema::CATALOG.require(&client).await?;
        let rows = client
            .query("SELECT secret FROM signing_keys ORDER BY number DESC", &[])
            .await
            .map_err(|error| storage(&error))?;
        let key = |row: &tokio_postgres::Row| -> Option<SigningKey> {
            Some(SigningKey::new(row.get::<_, &[u8]>(0).try_into().ok()?))
        };
        let mut keys = rows.iter().filter_map(key);
        let newest =
            keys.next().ok_or_else(|| Error::Corrupt { detail: "the catalog has no signing key".into() })?;
        Ok(Keyring::new(newest, keys))
    }
}

/// An epoch is the time of its beginning, in milliseconds, and later than the one before. Counting would not do: all databases may be
/// backups that do not know the latest one.
pub(crate) fn epoch_after(before: Epoch) -> Epoch {
    Epoch(SystemClock.now().millis().max(before.0 + 1))
}

fn storage(error: &tokio_postgres::Error) -> Error {
    let detail = error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string);
    Error::Storage { detail }
}
