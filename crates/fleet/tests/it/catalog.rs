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
    let shards: Vec<_> = status.iter().map(|host| (host.name.as_str(), host.shards)).collect();
    assert_eq!(shards, [("a", 3), ("b", 2)]);
    assert!(
        status.iter().all(|host| host.condition.as_ref().is_ok_and(|host| host.changes_behind == 0)),
        "{status:?}"
    );
    assert_eq!(databases.number(1, "SELECT count(*) FROM shards"), 3);
    assert_eq!(databases.number(2, "SELECT count(*) FROM shards"), 2);
    assert_eq!(databases.number(2, "SELECT count(*) FROM projected"), 5);
}

#[test]
fn an_interrupted_creation_is_completed() {
    let Some(servers) = servers() else { return };
    let databases = Databases::create(&servers);
    let settings = databases.settings();
    Fleet::init(&settings, NEW).unwrap();
    // As a stop before the last step leaves it.
    databases.execute(0, "DELETE FROM shard_map; DELETE FROM hosts; UPDATE deployment SET epoch = 0");
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
