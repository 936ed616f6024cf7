//! Creating deployments, and refusing those that do not fit.

use std::num::NonZeroU16;

use kinfolk_conformance::block_on;
use kinfolk_core::{Error, IdKind};
use kinfolk_fleet::{Fleet, NewDeployment};

use crate::deployments::{Databases, servers};

const NEW: NewDeployment = NewDeployment { id_kind: IdKind::Uuid, shards: NonZeroU16::new(5).unwrap() };

fn refusal<T>(result: kinfolk_core::Result<T>) -> String {
    match result {
        Err(Error::InvalidStore { detail }) => detail,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is not refused"),
    }
}

#[test]
fn a_deployment_is_created_once() {
    let Some(servers) = servers() else { return };
    let databases = Databases::create(&servers);
    let settings = databases.settings();
    assert!(refusal(Fleet::open(settings.clone())).contains("fleet init"));
    Fleet::init(&settings, NEW).unwrap();
    assert!(refusal(Fleet::init(&settings, NEW)).contains("already"));
    let store = Fleet::open(settings).unwrap();
    let status = block_on(store.status()).unwrap();
    let shards: Vec<_> = status.hosts.iter().map(|host| (host.name.as_str(), host.shards)).collect();
    assert_eq!(shards, [("a", 3), ("b", 2)]);
    assert!(
        status
            .hosts
            .iter()
            .all(|host| host.condition.as_ref().is_ok_and(|host| host.changes_behind == Some(0))),
        "{status:?}"
    );
    let own = status.processes.iter().find(|process| process.process == std::process::id());
    assert_eq!(own.map(|process| process.role.as_str()), Some("all"), "{status:?}");
    assert_eq!(databases.number(1, "SELECT count(*) FROM shards"), 3);
    assert_eq!(databases.number(2, "SELECT count(*) FROM shards"), 2);
    assert_eq!(databases.number(2, "SELECT count(*) FROM projected"), 5);
}

#[test]
fn more_shards_than_a_token_can_name_are_refused() {
    let Some(servers) = servers() else { return };
    let databases = Databases::create(&servers);
    let many = NewDeployment { shards: NonZeroU16::new(513).unwrap(), ..NEW };
    let detail = refusal(Fleet::init(&databases.settings(), many));
    assert!(detail.contains("at most 512 shards") && detail.contains("8,192 characters"), "{detail}");
}

#[test]
fn a_host_that_does_not_answer_is_shown() {
    let Some(servers) = servers() else { return };
    let databases = Databases::create(&servers);
    let mut settings = databases.settings();
    Fleet::init(&settings, NEW).unwrap();
    // Nobody listens there.
    let nowhere = "postgres://postgres@127.0.0.1:1/nothing";
    settings.hosts.insert("b".into(), nowhere.into());
    let store = Fleet::open(settings.clone()).unwrap();
    assert!(block_on(store.status()).unwrap().hosts[1].condition.is_err());
    let mut without_any = settings.clone();
    without_any.hosts.insert("a".into(), nowhere.into());
    let Err(Error::Unavailable { what, .. }) = Fleet::open(without_any) else {
        panic!("a store was opened without any host");
    };
    assert!(what.starts_with("host a (") && what.contains("refused"), "{what}");
    let status = Fleet::inspect(settings).unwrap();
    let [a, b] = &status.hosts[..] else { panic!("{status:?}") };
    assert_eq!(a.condition.as_ref().unwrap().changes_behind, None, "nobody knows what host b has");
    assert!(b.condition.as_ref().is_err_and(|reason| reason.contains("refused")), "{status:?}");
}

#[test]
fn an_interrupted_creation_is_completed() {
    let Some(servers) = servers() else { return };
    let databases = Databases::create(&servers);
    let settings = databases.settings();
    Fleet::init(&settings, NEW).unwrap();
    // As a stop before the last step leaves it.
    databases.execute(0, "DELETE FROM shard_map; DELETE FROM hosts; UPDATE deployment SET epoch = 0");
    assert!(refusal(Fleet::open(settings.clone())).contains("no complete deployment"));
    let other = NewDeployment { id_kind: IdKind::Integer, ..NEW };
    assert!(refusal(Fleet::init(&settings, other)).contains("interrupted"));
    Fleet::init(&settings, NEW).unwrap();
    Fleet::open(settings).unwrap();
}

#[test]
fn schemas_of_other_versions_are_refused() {
    let Some(servers) = servers() else { return };
    let databases = Databases::create(&servers);
    let settings = databases.settings();
    Fleet::init(&settings, NEW).unwrap();
    for (database, schema) in [(0, "kinfolk_catalog"), (1, "kinfolk")] {
        databases.execute(database, &format!("UPDATE {schema}.schema_version SET version = 99"));
        let detail = refusal(Fleet::open(settings.clone()));
        assert!(detail.contains("has version 99") && detail.contains("use a newer program"), "{detail}");
        databases.execute(database, &format!("UPDATE {schema}.schema_version SET version = 1"));
    }
    Fleet::open(settings).unwrap();
}

#[test]
fn a_creation_in_the_database_of_a_live_host_leaves_nothing_behind() {
    let Some(servers) = servers() else { return };
    let databases = Databases::create(&servers);
    let settings = databases.settings();
    Fleet::init(&settings, NEW).unwrap();
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'kinfolk_catalog'";
    assert_eq!(databases.number(1, schemas), 0);
    let mut mistaken = settings.clone();
    mistaken.catalog = settings.hosts["a"].clone();
    let detail = refusal(Fleet::init(&mistaken, NEW));
    assert!(detail.contains("belongs to another") && detail.contains("connection string"), "{detail}");
    assert_eq!(databases.number(1, schemas), 0);
    Fleet::open(settings).unwrap();
}

#[test]
fn a_host_of_another_deployment_is_refused() {
    let Some(servers) = servers() else { return };
    let databases = Databases::create(&servers);
    let mut settings = databases.settings();
    Fleet::init(&settings, NEW).unwrap();
    let b = settings.hosts["b"].clone();
    settings.hosts.insert("a".into(), b);
    assert!(refusal(Fleet::open(settings.clone())).contains("belongs to another"));
    settings.hosts.remove("a");
    assert!(refusal(Fleet::open(settings)).contains("add its connection string"));
}
