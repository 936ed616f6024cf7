//! Schemas and their versions: numbered SQL files, applied in order, and two numbers in the database.
//!
//! While a fleet is upgraded, processes of two versions work on one database. A step that older programs can work with, such as a new
//! table, leaves the number that they compare (`version`) as it is, and raises only the number of steps that were taken (`applied`).
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
    /// In order. A step that was released never changes.
    steps: &'static [Step],
}

/// A step of a schema.
pub(super) struct Step {
    sql: &'static str,
    /// Whether programs that do not know the step can use a database that has taken it.
    older_programs: OlderPrograms,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OlderPrograms {
    Work,
    AreRefused,
}

/// What a database says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// How many steps a program must know to use it. None of a database without the schema.
    needed: i32,
    /// How many steps were taken.
    applied: i32,
}

impl Version {
    /// Whether the database has the schema.
    pub(super) fn exists(self) -> bool {
        self.applied > 0
    }
}

/// The catalog.
pub(super) const CATALOG: Schema = Schema {
    name: "kinfolk_catalog",
    steps: &[
        Step::first(include_str!("../sql/schema/catalog_1.sql")),
        Step::compatible(include_str!("../sql/schema/catalog_2.sql")),
        Step::compatible(include_str!("../sql/schema/catalog_3.sql")),
    ],
};

/// A host.
pub(super) const HOST: Schema = Schema {
    name: "kinfolk",
    steps: &[
        Step::first(include_str!("../sql/schema/host_1.sql")),
        // Shards are moved only while no process of an older program is connected.
        Step::compatible(include_str!("../sql/schema/host_2.sql")),
    ],
};

impl Step {
    const fn first(sql: &'static str) -> Self {
        Self { sql, older_programs: OlderPrograms::AreRefused }
    }

    const fn compatible(sql: &'static str) -> Self {
        Self { sql, older_programs: OlderPrograms::Work }
    }
}

impl Schema {
    fn newest(&self) -> i32 {
        self.steps.len() as i32
    }

    /// How many steps a program must know to use a database that has taken all of them.
    fn needed(&self) -> i32 {
        let last = self.steps.iter().rposition(|step| step.older_programs == OlderPrograms::AreRefused);
        last.map_or(0, |last| last as i32 + 1)
    }

    /// The version of a database.
    pub(super) async fn version(&self, client: &Client) -> Result<Version> {
        let table = format!("{}.schema_version", self.name);
        let exists = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&table]).await;
        if !exists.map_err(|error| storage(&error))?.get::<_, bool>(0) {
            return Ok(Version::default());
        }
        // The first version had no column `applied`.
        let ask =
            format!("SELECT version, (to_jsonb(recorded) ->> 'applied')::integer FROM {table} AS recorded");
        let row = client.query_one(&ask, &[]).await.map_err(|error| storage(&error))?;
        let needed = row.get(0);
        Ok(Version { needed, applied: row.get::<_, Option<i32>>(1).unwrap_or(needed) })
    }

    /// Refuses a database that lacks steps, or has taken one that this program must know.
    pub(super) async fn require(&self, client: &Client) -> Result<()> {
        let (Version { needed, applied }, known, name) =
            (self.version(client).await?, self.newest(), self.name);
        let detail = if applied == 0 {
            format!("there is no schema {name} here: run 'kinfolk fleet init'")
        } else if applied < known {
            format!(
                "schema {name} has version {applied}, this program needs {known}: run 'kinfolk fleet init' of this program"
            )
        } else if needed > known {
            let newest = applied.max(needed);
            format!("schema {name} has version {newest}, this program knows {known}: use a newer program")
        } else {
            return Ok(());
        };
        Err(Error::InvalidStore { detail })
    }

    /// Takes the steps that a database lacks, in one transaction. Returns whether there were any; a database that this program can't use
    /// is refused.
    pub(super) async fn apply(&self, client: &mut Client, id_kind: IdKind) -> Result<bool> {
        let Self { name, .. } = self;
        let transaction = client.transaction().await.map_err(|error| storage(&error))?;
        // Two processes at once must not both take the same step.
        let lock = format!("SELECT pg_advisory_xact_lock(hashtext('{name}'))");
        transaction.batch_execute(&lock).await.map_err(|error| storage(&error))?;
        let found = self.version(transaction.client()).await?;
        if found.applied >= self.newest() {
            return self.require(transaction.client()).await.map(|()| false);
        }
        let mut script = String::new();
        if !found.exists() {
            script.push_str(&format!(
                "CREATE SCHEMA IF NOT EXISTS {name};
                 CREATE TABLE {name}.schema_version (version integer NOT NULL);
                 INSERT INTO {name}.schema_version VALUES (0);"
            ));
        }
        script.push_str(&format!("SET LOCAL search_path = {name};"));
        let missing = &self.steps[found.applied as usize..];
        missing.iter().for_each(|step| script.push_str(&for_id_kind(step.sql, id_kind)));
        script.push_str(&format!(
            "ALTER TABLE {name}.schema_version ADD COLUMN IF NOT EXISTS applied integer;
             UPDATE {name}.schema_version SET version = {}, applied = {};",
            self.needed(),
            self.newest()
        ));
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
    const FIRST: Step = Step::first("CREATE TABLE one (id {id});");
    const SECOND: &str = "CREATE TABLE two (id {id});";
    const OLD: Schema = Schema { name: NAME, steps: &[FIRST] };
    const COMPATIBLE: Schema = Schema { name: NAME, steps: &[FIRST, Step::compatible(SECOND)] };
    const BREAKING: Schema = Schema {
        name: NAME,
        steps: &[FIRST, Step::compatible(SECOND), Step::first("CREATE TABLE three (id {id});")],
    };

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
            // As the first program has left it.
            let before = format!("ALTER TABLE {NAME}.schema_version DROP COLUMN applied");
            client.batch_execute(&before).await.expect("a column");
            let refusal = COMPATIBLE.require(&client).await.expect_err("it is too old").to_string();
            assert!(refusal.contains("run 'kinfolk fleet init'"), "{refusal}");
            assert!(COMPATIBLE.apply(&mut client, IdKind::Integer).await.expect("the new version"));
            assert!(!COMPATIBLE.apply(&mut client, IdKind::Integer).await.expect("nothing to do"));
            COMPATIBLE.require(&client).await.expect("it fits");
            OLD.require(&client).await.expect("the older program works, too");
            assert!(!OLD.apply(&mut client, IdKind::Integer).await.expect("and leaves it as it is"));
            assert!(BREAKING.apply(&mut client, IdKind::Integer).await.expect("the newest version"));
            for older in [OLD, COMPATIBLE] {
                let refusal = older.require(&client).await.expect_err("it is too new").to_string();
                assert!(refusal.contains("use a newer program"), "{refusal}");
            }
            client.batch_execute(&clean).await.expect("no schema");
        });
    }
}
