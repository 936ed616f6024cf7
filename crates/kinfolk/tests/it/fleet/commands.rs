//! `kinfolk fleet init` and `kinfolk fleet status`.

use serde_json::json;

use super::databases::Databases;
use crate::serve::running::Running;
use crate::support::Sandbox;

/// What a server says that does not start.
fn refused(sandbox: &Sandbox, flags: &str) -> String {
    let Err(run) = Running::try_start(sandbox, flags) else { panic!("it started") };
    assert_eq!(run.status, 1, "{run:?}");
    run.stderr
}

#[test]
fn a_fleet_is_created_once_and_shown() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.sandbox();
    assert!(sandbox.fails("fleet status", 1).contains("run 'kinfolk fleet init'"));
    assert!(refused(&sandbox, "").contains("run 'kinfolk fleet init'"));
    let created = sandbox.ok("fleet init --shards 5 --ids uuid");
    assert_eq!(created, "created a fleet with 5 shards and uuid ids on a, b\n");
    assert!(sandbox.fails("fleet init --shards 5", 1).contains("has a deployment already"));
    let status = sandbox.json("fleet status");
    assert_eq!((&status["ids"], &status["shards"]), (&json!("uuid"), &json!(5)));
    for (host, (name, shards)) in [("a", 3), ("b", 2)].into_iter().enumerate() {
        let host = &status["hosts"][host];
        assert_eq!((&host["name"], &host["shards"]), (&json!(name), &json!(shards)));
        assert_eq!((&host["behind"], &host["problem"]), (&json!(0), &json!(null)));
    }
    assert_eq!(status["processes"], json!([]));
    let text = sandbox.ok("fleet status");
    let epoch = &status["epoch"];
    assert!(
        text.starts_with(&format!("5 shards, uuid ids, epoch {epoch}\n\nhost  shards  behind")),
        "{text}"
    );
    assert!(text.ends_with("\nno process is connected\n"), "{text}");
    assert!(refused(&sandbox, "--ids integer").contains("the fleet uses uuid ids"));
    assert!(sandbox.fails("fleet status --ids integer", 1).contains("the fleet uses uuid ids"));
    sandbox.ok("fleet status --ids uuid");
}

#[test]
fn a_fleet_has_as_many_shards_as_a_token_can_name() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.sandbox();
    let message = sandbox.fails("fleet init --shards 513", 1);
    assert!(message.contains("at most 512 shards") && message.contains("8,192 characters"), "{message}");
    assert!(sandbox.fails("fleet init --shards 0", 2).contains("--shards"));
    assert_eq!(sandbox.json("fleet init --shards 512")["shards"], 512);
}

#[test]
fn schemas_of_other_versions_are_refused() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    for (database, schema) in [(0, "kinfolk_catalog"), (1, "kinfolk")] {
        let set = |version| {
            let sql = format!("UPDATE {schema}.schema_version SET version = {version}");
            databases.execute(database, &sql);
        };
        let known = if schema == "kinfolk" { 2 } else { 3 };
        set(99);
        let message = refused(&sandbox, "");
        let expected =
            format!("schema {schema} has version 99, this program knows {known}: use a newer program");
        assert!(message.contains(&expected), "{message}");
        set(1);
    }
    // The status shows a host of another version beside the others.
    databases.execute(2, "UPDATE kinfolk.schema_version SET version = 99");
    let run = sandbox.run("fleet status --json");
    let status: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.status, &status["hosts"][0]["problem"]), (1, &json!(null)), "{status}");
    assert!(status["hosts"][1]["problem"].as_str().unwrap().contains("use a newer program"), "{status}");
}

#[test]
fn a_database_that_refuses_a_role_is_named_with_the_reason() {
    let Some(databases) = Databases::create() else { return };
    let role = format!("visitor_{}", std::process::id());
    databases.execute(0, &format!("CREATE ROLE {role} LOGIN"));
    let catalog = databases.url(0);
    for (connection, reason) in [
        (
            catalog.replace("postgres@", "nobody@"),
            "the catalog refuses the connection: FATAL: role \"nobody\" does not exist",
        ),
        (format!("{catalog}_2"), "_2\" does not exist; correct its connection string"),
        (catalog.replace("postgres@", &format!("{role}@")), "permission denied for database"),
    ] {
        let sandbox = Sandbox::configured(&databases.configuration().replace(&catalog, &connection));
        let message = sandbox.fails("fleet init", 1);
        assert!(message.contains(reason) && !message.contains("unreachable"), "{message}");
    }
    databases.execute(0, &format!("DROP ROLE {role}"));

    // A host that refuses is shown beside the others.
    databases.fleet();
    let stranger = databases.url(2).replace("postgres@", "nobody@");
    let sandbox = Sandbox::configured(&databases.configuration().replace(&databases.url(2), &stranger));
    let run = sandbox.run("fleet status");
    assert_eq!(run.status, 1, "{run:?}");
    assert!(run.stdout.contains("host b refuses the connection: FATAL: role \"nobody\""), "{run:?}");
    let message = refused(&sandbox, "");
    assert!(message.contains("host b refuses the connection"), "{message}");
}

#[test]
fn a_host_that_does_not_answer_is_shown() {
    let Some(databases) = Databases::create() else { return };
    databases.fleet();
    let configuration =
        databases.configuration().replace(&databases.url(2), "postgres://me:secret@127.0.0.1:1/b");
    let sandbox = Sandbox::configured(&configuration);
    let run = sandbox.run("fleet status");
    assert_eq!(run.status, 1, "{run:?}");
    assert!(run.stdout.contains("host b (") && run.stdout.contains("refused"), "{run:?}");
    assert!(!run.stdout.contains("secret"), "{run:?}");
    // Without any host there is nothing to serve.
    let nobody = configuration.replace(&databases.url(1), "postgres://me:secret@127.0.0.1:1/a");
    let message = refused(&Sandbox::configured(&nobody), "");
    assert!(message.contains("host a (") && message.contains("unreachable"), "{message}");
}
