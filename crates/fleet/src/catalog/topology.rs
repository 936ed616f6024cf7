//! Which host holds which shard, as this process knows it, with its connections to them.

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::sync::Arc;

use kinfolk_core::{Epoch, Error, Id, IdKind, Result, Shard};

use super::{Catalog, Description, schema};
use crate::Settings;
use crate::postgres::{Host, Target, connect};
use tokio_postgres::Client;

/// Where a shard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    /// The index of its host in the list of hosts.
    pub(crate) host: usize,
    /// The host has the same number, or the shard was moved since.
    pub(crate) term: i64,
}

/// The deployment as this process knows it.
pub(crate) struct Topology {
    /// Which deployment it is.
    pub(crate) identity: i64,
    pub(crate) id_kind: IdKind,
    pub(crate) epoch: Epoch,
    /// A host that was known to an earlier map of this process stays, at its place.
    pub(crate) hosts: Vec<Arc<Host>>,
    assignments: Vec<Assignment>,
    /// What it was made from.
    description: Description,
}

impl Topology {
    /// Reads the catalog and makes sure that every host is what the catalog says. A host that can't be reached is used as soon as it
    /// answers: what is read and written there names the epoch and term of its shards, which no other host has. One must be there.
    pub(crate) async fn open(catalog: &Catalog, settings: &Settings) -> Result<Self> {
        let (topology, refused) = Self::inspect(catalog, settings).await?;
        let is_away = |error: &Error| matches!(error, Error::Unavailable { .. });
        let are_all_away = refused.values().filter(|error| is_away(error)).count() == topology.hosts.len();
        for (host, error) in refused {
            if are_all_away || !is_away(&error) {
                return Err(error);
            }
            tracing::warn!(host, %error, "starting without a host");
        }
        Ok(topology)
    }

    /// Reads the catalog, and why hosts can't be used, by name.
    pub(crate) async fn inspect(
        catalog: &Catalog,
        settings: &Settings,
    ) -> Result<(Self, BTreeMap<String, Error>)> {
        let description = catalog.describe().await?;
        let mut refused = BTreeMap::new();
        for name in &description.hosts {
            address(settings, name)?;
            if let Err(error) = require_host(name, description.identity, catalog, settings).await {
                refused.insert(name.clone(), error);
            }
        }
        Ok((Self::new(description, catalog, settings, &[])?, refused))
    }

    /// Reads the catalog again, and keeps the connections to hosts that are known. None if nothing has changed.
    pub(crate) async fn reload(&self, catalog: &Catalog, settings: &Settings) -> Result<Option<Self>> {
        let newer = catalog.describe().await?;
        if newer == self.description {
            return Ok(None);
        }
        Self::new(newer, catalog, settings, &self.hosts).map(Some)
    }

    /// Hosts that are known keep their indexes, which tasks and queues go by.
    fn new(
        description: Description,
        catalog: &Catalog,
        settings: &Settings,
        known: &[Arc<Host>],
    ) -> Result<Self> {
        let mut hosts = known.to_vec();
        for name in description.hosts.iter().filter(|name| known.iter().all(|host| host.name != **name)) {
            let what = format!("host {name}");
            let target = target(&what, address(settings, name)?, catalog);
            hosts.push(Arc::new(Host::new(name, target, settings)?));
        }
        let assignment = |(name, term): &(String, i64)| {
            let host = hosts.iter().position(|host| host.name == *name);
            let unknown =
                || Error::Corrupt { detail: format!("the catalog's map names an unknown host: {name}") };
            host.map(|host| Assignment { host, term: *term }).ok_or_else(unknown)
        };
        Ok(Self {
            identity: description.identity,
            id_kind: description.id_kind,
            epoch: description.epoch,
            assignments: description.shards.iter().map(assignment).collect::<Result<_>>()?,
            hosts,
            description,
        })
    }

    /// Whether it was read later than another one.
    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        let moment = |of: &Self| (of.epoch.0, of.description.map_version);
        moment(self) > moment(other)
    }

    /// The shard of a user.
    pub(crate) fn shard_of(&self, id: Id) -> Shard {
        let count = u16::try_from(self.assignments.len()).ok().and_then(NonZeroU16::new);
        Shard::of(id, count.expect("a deployment has at least one shard, and fewer than 65,536"))
    }

    /// Every shard, in order.
    pub(crate) fn shards(&self) -> impl ExactSizeIterator<Item = Shard> + use<> {
        (0..self.assignments.len() as u16).map(Shard)
    }

    /// Where a shard is, if the deployment has it.
    pub(crate) fn assignment(&self, shard: Shard) -> Option<Assignment> {
        self.assignments.get(usize::from(shard.0)).copied()
    }

    /// The host of a shard.
    ///
    /// # Panics
    /// For a shard that the deployment does not have: callers have it from [`Topology::shard_of`] or [`Topology::shards`].
    pub(crate) fn host_of(&self, shard: Shard) -> usize {
        self.assignment(shard).expect("the deployment has this shard").host
    }

    /// The index of a host.
    pub(crate) fn host_named(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == name)
    }

    /// The shards that a host holds.
    pub(crate) fn shards_on(&self, host: usize) -> impl Iterator<Item = Shard> {
        self.shards().filter(move |&shard| self.host_of(shard) == host)
    }
}

/// The database of a host.
fn target<'a>(what: &'a str, connection: &'a str, catalog: &'a Catalog) -> Target<'a> {
    Target { what, connection, encryption: &catalog.encryption, schema: schema::HOST.name }
}

/// A connection to a host outside of its pools: for its schema, and for bulk work.
pub(crate) async fn connect_to_host(name: &str, catalog: &Catalog, settings: &Settings) -> Result<Client> {
    let what = format!("host {name}");
    connect(target(&what, address(settings, name)?, catalog), settings.timeouts.connect).await
}

/// Refuses a host that is not what the catalog says.
async fn require_host(name: &str, identity: i64, catalog: &Catalog, settings: &Settings) -> Result<()> {
    let client = connect_to_host(name, catalog, settings).await?;
    schema::HOST.require(&client).await?;
    match owner(&client).await? {
        Some(found) if found.identity == identity && found.name == name => Ok(()),
        _ => Err(foreign(name)),
    }
}

/// Which host of which deployment a database is.
pub(super) struct Owner {
    pub(super) identity: i64,
    pub(super) name: String,
}

/// Whose database it is, if it has the schema of a host and belongs to one.
pub(super) async fn owner(client: &Client) -> Result<Option<Owner>> {
    let row = client.query_opt("SELECT identity, name FROM host", &[]).await;
    let row = row.map_err(|error| super::storage(&error))?;
    Ok(row.map(|row| Owner { identity: row.get(0), name: row.get(1) }))
}

/// The error of a database that is not that of the host.
pub(super) fn foreign(name: &str) -> Error {
    let detail = format!(
        "the database of host {name} belongs to another host or deployment: correct its connection string"
    );
    Error::InvalidStore { detail }
}

fn address<'a>(settings: &'a Settings, name: &str) -> Result<&'a str> {
    settings.hosts.get(name).map(String::as_str).ok_or_else(|| Error::InvalidStore {
        detail: format!("the catalog names host {name}: add its connection string to the settings"),
    })
}
