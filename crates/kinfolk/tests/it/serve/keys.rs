//! API keys: made, listed and revoked by the command line, seen by a running server.

use std::fs;

use super::running::Running;
use crate::support::Sandbox;

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
    server.line_with("read again");
    assert!(sandbox.fails(&format!("check 1 2 {url} --api-key-file reader-key"), 1).contains("key"));
    let (status, said) = server.end("TERM");
    assert_eq!(status, 0);
    assert!(!said.iter().any(|line| line.contains(admin.rsplit('_').next().unwrap())), "no secrets in logs");
    assert!(sandbox.fails("keys revoke nobody --file keys.toml", 1).contains("no key"));
    assert!(sandbox.fails("keys list", 2).contains("--file"));
}
