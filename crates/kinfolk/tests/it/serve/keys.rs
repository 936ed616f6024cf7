//! API keys: made, listed and revoked by the command line, seen by a running server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::running::Running;
use crate::support::{Sandbox, entries};

#[test]
fn a_key_is_shown_once_and_lets_its_holder_in() {
    let sandbox = Sandbox::new();
    let admin = sandbox.ok("keys add tool --scopes read,write,admin --file keys.toml").trim().to_owned();
    let reader = sandbox.ok("keys add reader --scopes read --file keys.toml").trim().to_owned();
    let stored = fs::read_to_string(sandbox.path("keys.toml")).unwrap();
    for key in [&admin, &reader] {
        let secret = key.rsplit('_').next().unwrap();
        assert!(!stored.contains(secret), "only hashes are stored");
    }
    let listed = sandbox.json("keys list --file keys.toml");
    assert_eq!(listed["items"][1]["name"], "reader");
    assert_eq!(listed["items"][0]["scopes"].as_array().unwrap().len(), 3);

    let server = Running::start(&sandbox, "--auth-keys keys.toml --log-level debug");
    assert!(!server.ready.contains("authentication is off"), "{}", server.ready);
    sandbox.write("admin-key", &admin);
    sandbox.write("reader-key", format!("{reader}\n"));
    let url = server.url();
    assert!(sandbox.fails(&format!("check 1 2 {url}"), 1).contains("credential"));
    sandbox.ok(&format!("follow 1 2 {url} --api-key-file admin-key"));
    sandbox.ok(&format!("check 1 2 {url} --api-key-file reader-key"));
    assert!(sandbox.fails(&format!("follow 1 3 {url} --api-key-file reader-key"), 1).contains("scope write"));
    assert!(sandbox.fails(&format!("verify {url} --api-key-file reader-key"), 1).contains("scope admin"));
    assert!(server.redis("SISMEMBER following:1 2").starts_with("-NOAUTH"));
    let mut command = sandbox.command(format!("check 1 2 {url}").split_whitespace());
    assert!(command.env("KINFOLK_API_KEY", &reader).status().unwrap().success());

    let id = listed["items"][1]["id"].as_str().unwrap();
    sandbox.ok(&format!("keys revoke {id} --file keys.toml"));
    server.signal("HUP");
    server.line_with("reloaded");
    assert!(sandbox.fails(&format!("check 1 2 {url} --api-key-file reader-key"), 1).contains("key"));
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0);
    assert!(!said.iter().any(|line| line.contains(admin.rsplit('_').next().unwrap())), "no secrets in logs");
    assert!(sandbox.fails("keys revoke nobody --file keys.toml", 1).contains("no key"));
    assert!(sandbox.fails("keys list", 2).contains("--file"));
}

#[test]
fn keys_in_the_data_folder_of_a_running_server_are_added_and_revoked() {
    let sandbox = Sandbox::new();
    sandbox.ok("follow 1 2");
    sandbox.ok("keys add tool --scopes read --file kinfolk-data/keys.toml");
    let server = Running::start(&sandbox, "--auth-keys kinfolk-data/keys.toml --log-level debug");
    let key = sandbox.ok("keys add reader --scopes read --file kinfolk-data/keys.toml").trim().to_owned();
    sandbox.write("reader-key", &key);
    server.signal("HUP");
    server.line_with("reloaded");
    let check = format!("check 1 2 {} --api-key-file reader-key", server.url());
    sandbox.ok(&check);
    let id = key.split('_').nth(1).unwrap();
    sandbox.ok(&format!("keys revoke {id} --file kinfolk-data/keys.toml"));
    server.signal("HUP");
    server.line_with("reloaded");
    assert!(sandbox.fails(&check, 1).contains("key"));
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn keys_that_are_added_and_revoked_at_the_same_moment_are_all_there() {
    let sandbox = Sandbox::new();
    let old: Vec<String> =
        (0..8).map(|_| sandbox.ok("keys add old --scopes read --file keys.toml")).collect();
    let adds = (0..16).map(|number| format!("keys add new-{number} --scopes read --file keys.toml"));
    let ids = old.iter().map(|key| key.split('_').nth(1).unwrap());
    let revocations = ids.map(|id| format!("keys revoke {id} --file keys.toml"));
    let lines: Vec<String> = adds.chain(revocations).collect();
    let running: Vec<_> = lines.iter().map(|line| (line, sandbox.spawn(line))).collect();
    for (line, child) in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    }
    let mut listed: Vec<String> = sandbox.json("keys list --file keys.toml")["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["name"].as_str().unwrap().to_owned())
        .collect();
    listed.sort();
    let mut expected: Vec<String> = (0..16).map(|number| format!("new-{number}")).collect();
    expected.sort();
    assert_eq!(listed, expected);
    assert_eq!(entries(&sandbox.path("")), ["keys.toml"]);
}

#[test]
fn files_with_keys_are_for_their_owner_whatever_the_umask() {
    let sandbox = Sandbox::new();
    let mode = |name: &str| fs::metadata(sandbox.path(name)).unwrap().permissions().mode() & 0o777;
    for line in [
        "follow 1 2",
        "backup graph.backup",
        "restore graph.backup --data restored",
        "keys add x --scopes read --file keys.toml",
    ] {
        let command = sandbox.command(line.split(' '));
        let mut shell = Command::new("sh");
        shell.args(["-c", "umask 0; exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
        shell.current_dir(sandbox.path("")).env("KINFOLK_DATA", "./kinfolk-data").stdout(Stdio::null());
        assert!(shell.status().unwrap().success(), "{line}");
    }
    // A restored graph gets keys when it is first opened, at the latest.
    sandbox.ok("check 1 2 --data restored");
    assert_eq!(["kinfolk-data/keys", "restored/keys", "keys.toml"].map(mode), [0o600; 3]);
}
