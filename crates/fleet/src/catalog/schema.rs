//! Schemas and their versions: numbered SQL files, applied in order, and a number in the database.
//!
//! Not a migration crate: refinery would have doubled the build time and the dependencies of this crate.

use kinfolk_core::{Error, IdKind, Result};
use tokio_postgres::Client;

use super::storage;
use crate::postgres::for_id_kind;

/// A schema of a database, as this binary knows it.
pub(super) struct Schema {
    /// PostgreSQL's schema, which has to differ: a small deployment has its catalog and a host in one database.
    pub(super) name: &'static str,
    /// The step to version 1, to version 2 and so on. A step that was released never changes.
    steps: &'static [&'static str],
}

/// The catalog.
pub(super) const CATALOG: Schema =
    Schema { name: "kinfolk_catalog", steps: &[include_str!("../sql/schema/catalog_1.sql")] };

/// A host.
pub(super) const HOST: Schema =
    Schema { name: "kinfolk", steps: &[include_str!("../sql/schema/host_1.sql")] };

impl Schema {
    fn newest(&self) -> i32 {
        self.steps.len() as i32
    }

    /// The version of a database, or 0.
    pub(super) async fn version(&self, client: &Client) -> Result<i32> {
        let table = format!("{}.schema_version", self.name);
        let exists = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&table]).await;
        if !exists.map_err(|error| storage(&error))?.get::<_, bool>(0) {
            return Ok(0);
        }
        let row = client.query_one(&format!("SELECT version FROM {table}"), &[]).await;
        Ok(row.map_err(|error| storage(&error))?.get(0))
    }

    /// Refuses a database that another version of the program has prepared, or none.
    pub(super) async fn require(&self, client: &Client) -> Result<()> {
        let (found, known) = (self.version(client).await?, self.newest());
        let detail = match found {
            0 => format!("there is no schema {} here: run 'kinfolk fleet init'", self.name),
            _ if found < known => {
                format!(
                    "schema {} has version {found}, this program needs {known}: run 'kinfolk fleet init' of this program",
                    self.name
                )
            }
            _ if found > known => {
                format!(
                    "schema {} has version {found}, this program knows {known}: use a newer program",
                    self.name
                )
            }
            _ => return Ok(()),
        };
        Err(Error::InvalidStore { detail })
    }

    /// Brings a database to the newest version, in one transaction. Returns whether it was older; a database that is newer is
    /// refused.
    pub(super) async fn apply(&self, client: &mut Client, id_kind: IdKind) -> Result<bool> {
        let Self { name, .. } = self;
        let transaction = client.transaction().await.map_err(|error| storage(&error))?;
        // Two processes at once must not both take the same step.
        let lock = format!("SELECT pg_advisory_xact_lock(hashtext('{name}'))");
        transaction.batch_execute(&lock).await.map_err(|error| storage(&error))?;
        let found = self.version(transaction.client()).await?;
        if found >= self.newest() {
            return self.require(transaction.client()).await.map(|()| false);
        }
        let mut script = String::new();
        if found == 0 {
            script.push_str(&format!(
                "CREATE SCHEMA IF NOT EXISTS {name};
                 CREATE TABLE {name}.schema_version (version integer NOT NULL);
                 INSERT INTO {name}.schema_version VALUES (0);"
            ));
        }
        script.push_str(&format!("SET LOCAL search_path = {name};"));
        self.steps[found as usize..].iter().for_each(|step| script.push_str(&for_id_kind(step, id_kind)));
        script.push_str(&format!("UPDATE {name}.schema_version SET version = {};", self.newest()));
        transaction.batch_execute(&script).await.map_err(|error| storage(&error))?;
        transaction.commit().await.map_err(|error| storage(&error))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::NoTls;

    use super::*;

    const NAME: &str = "kinfolk_migration_test";
    const FIRST: &str = "CREATE TABLE one (id {id});";
    const OLD: Schema = Schema { name: NAME, steps: &[FIRST] };
    const NEW: Schema = Schema { name: NAME, steps: &[FIRST, "CREATE TABLE two (id {id});"] };

    #[test]
    fn an_older_database_is_brought_to_the_newest_version() {
        let Ok(servers) = std::env::var("KINFOLK_TEST_POSTGRES") else { return };
        let server = servers.split(',').next().expect("a server");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (mut client, connection) =
                tokio_postgres::connect(server, NoTls).await.expect("a connection");
            tokio::spawn(connection);
            let clean = format!("DROP SCHEMA IF EXISTS {NAME} CASCADE");
            client.batch_execute(&clean).await.expect("no schema");
            assert!(OLD.apply(&mut client, IdKind::Integer).await.expect("the old version"));
            let refusal = NEW.require(&client).await.expect_err("it is too old").to_string();
            assert!(refusal.contains("run 'kinfolk fleet init'"), "{refusal}");
            assert!(NEW.apply(&mut client, IdKind::Integer).await.expect("the new version"));
            assert!(!NEW.apply(&mut client, IdKind::Integer).await.expect("nothing to do"));
            NEW.require(&client).await.expect("it fits");
            let refusal = OLD.require(&client).await.expect_err("it is too new").to_string();
            assert!(refusal.contains("use a newer program"), "{refusal}");
            client.batch_execute(&clean).await.expect("no schema");
        });
    }
}
