//! Creating a deployment: schemas on every host first, the catalog's row last, so that an interrupted run can be repeated. The same
//! brings the schemas of a deployment to the newest version, and adds hosts to it.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use kinfolk_core::{Epoch, Error, IdKind, Result};
use tokio_postgres::Client;

use super::topology::{connect_to_host, foreign, owner};
use super::{Catalog, epoch_after, schema, storage};
use crate::Settings;

/// The most shards of a deployment. A token may name every shard, and servers refuse tokens above 8,192 characters.
const SHARDS_MAX: u16 = 512;

/// What a new deployment is made of. The shards are spread over the hosts of the settings, in turn.
#[derive(Clone, Copy, Debug)]
pub struct NewDeployment {
    /// The kind of all ids.
    pub id_kind: IdKind,
    /// The number of logical shards, which never changes.
    pub shards: NonZeroU16,
}

/// What [`Catalog::init`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initialized {
    /// It has created a deployment.
    Created,
    /// It has brought schemas up to date, or added hosts to a deployment that was there.
    Updated,
}

impl Catalog {
    /// Creates a deployment; what an interrupted run has left is completed. Where there is a deployment already, its schemas are
    /// brought to the newest version, and hosts that it does not have yet are added, without shards. If there is nothing to do, or if a
    /// database belongs to others, it is refused, and nothing is changed.
    pub async fn init(settings: &Settings, new: NewDeployment) -> Result<Initialized> {
        let shards = new.shards.get();
        if shards > SHARDS_MAX {
            let detail = format!(
                "a deployment has at most {SHARDS_MAX} shards, not {shards}: a token names every shard, and tokens above \
                 8,192 characters are refused"
            );
            return Err(Error::InvalidStore { detail });
        }
        if settings.hosts.is_empty() {
            return Err(Error::InvalidStore { detail: "name at least one host".into() });
        }
        let catalog = Self::new(settings)?;
        let mut client = catalog.client().await?;
        let deployed = deployed(&client).await?;
        let mut hosts = own_hosts(&catalog, settings, deployed.as_ref()).await?;
        if let Some(Deployed { identity, id_kind, is_complete: true }) = deployed {
            let was_older = migrate(&mut client, &mut hosts, id_kind).await?;
            let named = settings.hosts.keys().map(String::as_str).zip(&mut hosts).collect();
            let has_added = add_hosts(&client, identity, named).await?;
            let detail = "the catalog has a deployment already: see 'kinfolk fleet status'".into();
            let is_new = was_older || has_added;
            return if is_new { Ok(Initialized::Updated) } else { Err(Error::InvalidStore { detail }) };
        }
        schema::CATALOG.apply(&mut client, new.id_kind).await?;
        let identity = prepare_identity(&client, new).await?;
        let names: Vec<&str> = settings.hosts.keys().map(String::as_str).collect();
        let epoch = epoch_after(Epoch(0)).0 as i64;
        for (index, (name, host)) in names.iter().zip(&mut hosts).enumerate() {
            let held: Vec<i16> =
                (0..shards as i16).filter(|&shard| shard as usize % names.len() == index).collect();
            schema::HOST.apply(host, new.id_kind).await?;
            prepare_host(host, (identity, name), epoch, &held, shards).await?;
        }
        publish(&mut client, epoch, &names, shards).await.map(|()| Initialized::Created)
    }
}

/// The deployment of a catalog.
struct Deployed {
    identity: i64,
    id_kind: IdKind,
    /// Not while it is being created.
    is_complete: bool,
}

async fn deployed(client: &Client) -> Result<Option<Deployed>> {
    if !schema::CATALOG.version(client).await?.exists() {
        return Ok(None);
    }
    let row = client.query_opt("SELECT identity, id_kind, epoch FROM deployment", &[]).await;
    let Some(row) = row.map_err(|error| storage(&error))? else { return Ok(None) };
    let unknown = || Error::Corrupt { detail: "the catalog has an unknown kind of ids".into() };
    Ok(Some(Deployed {
        identity: row.get(0),
        id_kind: IdKind::from_name(row.get(1)).ok_or_else(unknown)?,
        is_complete: row.get::<_, i64>(2) != 0,
    }))
}

/// Connections to the hosts of the settings, in order. None of them belongs to another host or deployment.
async fn own_hosts(
    catalog: &Catalog,
    settings: &Settings,
    deployed: Option<&Deployed>,
) -> Result<Vec<Client>> {
    let mut hosts = Vec::new();
    for name in settings.hosts.keys() {
        let client = connect_to_host(name, catalog, settings).await?;
        if schema::HOST.version(&client).await?.exists()
            && let Some(owner) = owner(&client).await?
            && (owner.name != *name || deployed.is_none_or(|deployed| deployed.identity != owner.identity))
        {
            return Err(foreign(name));
        }
        hosts.push(client);
    }
    Ok(hosts)
}

/// Brings the schemas of a deployment to the newest version. Returns whether one was older.
async fn migrate(catalog: &mut Client, hosts: &mut [Client], id_kind: IdKind) -> Result<bool> {
    let mut was_older = schema::CATALOG.apply(catalog, id_kind).await?;
    for host in hosts {
        was_older |= schema::HOST.apply(host, id_kind).await?;
    }
    Ok(was_older)
}

/// Adds the hosts that the catalog does not name yet. Returns whether there were any.
///
/// The follower side of a host without shards has no rows, whatever it claims to show. It begins where the host that is furthest behind
/// is: from the moment that the catalog names it, no log is trimmed past its marks, and before that, none is trimmed past the others'.
async fn add_hosts(catalog: &Client, identity: i64, hosts: Vec<(&str, &mut Client)>) -> Result<bool> {
    let failed = |error: tokio_postgres::Error| storage(&error);
    let row = catalog.query_one("SELECT epoch, array(SELECT name FROM hosts) FROM deployment", &[]).await;
    let row = row.map_err(failed)?;
    let (epoch, known): (i64, Vec<String>) = (row.get(0), row.get(1));
    let (old, new): (Vec<_>, Vec<_>) =
        hosts.into_iter().partition(|(name, _)| known.iter().any(|own| own == name));
    let (mut has_added, mut sources, mut without_marks) = (false, Vec::new(), new);
    for (name, client) in old {
        // An interrupted run may have named a host, and no more.
        let marks = client.query_one("SELECT EXISTS (SELECT FROM projected)", &[]).await.map_err(failed)?;
        if marks.get(0) { sources.push(client) } else { without_marks.push((name, client)) }
    }
    for (name, client) in without_marks {
        claim(client, identity, name).await?;
        let publish = "WITH added AS (INSERT INTO hosts (name) VALUES ($1) ON CONFLICT DO NOTHING)
                       UPDATE deployment SET map_version = map_version + 1";
        catalog.execute(publish, &[&name]).await.map_err(failed)?;
        let mut lowest: BTreeMap<i16, i64> = BTreeMap::new();
        for host in &sources {
            let marks =
                host.query("SELECT source, sequence FROM projected WHERE epoch = $1", &[&epoch]).await;
            for row in marks.map_err(failed)? {
                let sequence: i64 = row.get(1);
                lowest
                    .entry(row.get(0))
                    .and_modify(|least| *least = sequence.min(*least))
                    .or_insert(sequence);
            }
        }
        let (numbers, sequences): (Vec<i16>, Vec<i64>) = lowest.into_iter().unzip();
        let begin = "INSERT INTO projected (source, epoch, sequence)
                     SELECT source, $1, sequence FROM unnest($2::smallint[], $3::bigint[]) AS lowest (source, sequence)
                     ON CONFLICT DO NOTHING";
        client.execute(begin, &[&epoch, &numbers, &sequences]).await.map_err(failed)?;
        has_added = true;
    }
    Ok(has_added)
}

/// Makes a database that of a host.
async fn claim(client: &Client, identity: i64, name: &str) -> Result<()> {
    let claim = "INSERT INTO host (identity, name) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    client.execute(claim, &[&identity, &name]).await.map_err(|error| storage(&error))?;
    let owner = owner(client).await?;
    if owner.is_none_or(|owner| owner.identity != identity || owner.name != name) {
        return Err(foreign(name));
    }
    Ok(())
}

/// The identity of the deployment that is being created. A first run writes it, with an epoch of 0 that says that it is not
/// complete.
async fn prepare_identity(client: &Client, new: NewDeployment) -> Result<i64> {
    let shards = i32::from(new.shards.get());
    let begin = "INSERT INTO deployment (identity, id_kind, shards, epoch, map_version)
                 VALUES ($1, $2, $3, 0, 0) ON CONFLICT DO NOTHING";
    client
        .execute(begin, &[&random()?, &new.id_kind.name(), &shards])
        .await
        .map_err(|error| storage(&error))?;
    let row = client.query_one("SELECT identity, id_kind, shards, epoch FROM deployment", &[]).await;
    let row = row.map_err(|error| storage(&error))?;
    if row.get::<_, i64>(3) != 0 {
        return Err(Error::InvalidStore {
            detail: "another run has created the deployment meanwhile".into(),
        });
    }
    if (row.get::<_, &str>(1), row.get::<_, i32>(2)) != (new.id_kind.name(), shards) {
        let detail =
            "an interrupted run has begun a deployment with another id kind or number of shards".into();
        return Err(Error::InvalidStore { detail });
    }
    Ok(row.get(0))
}

/// Writes the rows of a host's shards, and a mark for every source of the deployment.
async fn prepare_host(
    client: &mut Client,
    (identity, name): (i64, &str),
    epoch: i64,
    held: &[i16],
    shards: u16,
) -> Result<()> {
    let transaction = client.transaction().await.map_err(|error| storage(&error))?;
    claim(transaction.client(), identity, name).await?;
    let statements = [
        "INSERT INTO shards (shard, epoch, term, state) SELECT unnest($2::smallint[]), $1, 1, 'open'
         ON CONFLICT (shard) DO UPDATE SET epoch = EXCLUDED.epoch",
        "INSERT INTO projected (source, epoch, sequence) SELECT unnest($2::smallint[]), $1, 0
         ON CONFLICT (source) DO UPDATE SET epoch = EXCLUDED.epoch",
    ];
    let sources: Vec<i16> = (0..shards as i16).collect();
    for (statement, shards) in statements.into_iter().zip([held, &sources]) {
        transaction.execute(statement, &[&epoch, &shards]).await.map_err(|error| storage(&error))?;
    }
    transaction.commit().await.map_err(|error| storage(&error))
}

/// Makes the deployment complete.
async fn publish(client: &mut Client, epoch: i64, hosts: &[&str], shards: u16) -> Result<()> {
    let transaction = client.transaction().await.map_err(|error| storage(&error))?;
    let (numbers, owners): (Vec<i16>, Vec<&str>) =
        (0..shards).map(|shard| (shard as i16, hosts[usize::from(shard) % hosts.len()])).unzip();
    let secret: Vec<u8> = random_bytes::<32>()?.to_vec();
    let name_hosts = "INSERT INTO hosts (name) SELECT unnest($1::text[])";
    let map = "INSERT INTO shard_map (shard, host, term) SELECT shard, host, 1
               FROM unnest($1::smallint[], $2::text[]) AS map (shard, host)";
    let complete = "UPDATE deployment SET epoch = $1, map_version = 1";
    transaction.execute(name_hosts, &[&hosts]).await.map_err(|error| storage(&error))?;
    transaction.execute(map, &[&numbers, &owners]).await.map_err(|error| storage(&error))?;
    transaction
        .execute("INSERT INTO signing_keys (secret) VALUES ($1)", &[&secret])
        .await
        .map_err(|error| storage(&error))?;
    transaction.execute(complete, &[&epoch]).await.map_err(|error| storage(&error))?;
    transaction.commit().await.map_err(|error| storage(&error))
}

fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::Storage { detail: format!("the system has no randomness: {error}") })?;
    Ok(bytes)
}

/// A random number from 1 on: 0 means that there is none yet.
fn random() -> Result<i64> {
    Ok((i64::from_be_bytes(random_bytes()?) & i64::MAX).max(1))
}
