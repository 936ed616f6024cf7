//! TLS between a fleet's processes and its databases. Runs where `KINFOLK_TEST_POSTGRES_CA` names the servers' authority.

use super::databases::Databases;
use crate::serve::running::Running;
use crate::support::Sandbox;

/// The databases, and the file of their authority.
fn databases() -> Option<(Databases, String)> {
    let databases = Databases::create()?;
    let authority = std::env::var("KINFOLK_TEST_POSTGRES_CA").ok();
    let is_required = std::env::var_os("KINFOLK_REQUIRE_POSTGRES").is_some();
    assert!(authority.is_some() || !is_required, "set KINFOLK_TEST_POSTGRES_CA to the servers' authority");
    Some((databases, authority?))
}

/// A sandbox whose configuration names an authority, and databases by a changed configuration.
fn sandbox(databases: &Databases, authority: &str, change: impl Fn(&str) -> String) -> Sandbox {
    Sandbox::configured(&format!("{}ca_file = \"{authority}\"\n", change(&databases.configuration())))
}

#[test]
fn all_connections_are_encrypted() {
    let Some((databases, authority)) = databases() else { return };
    let sandbox = sandbox(&databases, &authority, str::to_owned);
    sandbox.ok("fleet init --shards 4");
    let server = Running::start(&sandbox, "");
    assert!(server.redis("FOLLOW 1 2").starts_with('$'));
    let encrypted =
        "SELECT count(*) FILTER (WHERE ssl), count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                     WHERE datname = current_database() AND application_name LIKE 'kinfolk%'";
    for host in [1, 2] {
        let [encrypted, all] = databases.numbers(host, encrypted);
        assert!(encrypted == all && all > 0, "{encrypted} of {all} connections are encrypted");
    }
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn a_server_that_can_not_be_verified_is_refused() {
    let Some((databases, authority)) = databases() else { return };
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let files = Sandbox::configured("");
    let stranger = files.write("other.pem", other.cert.pem()).display().to_string();
    let same = str::to_owned;
    let renamed = |text: &str| text.replace("127.0.0.1", "localhost");
    for (sandbox, part) in [
        (sandbox(&databases, &stranger, same), "the catalog (invalid peer certificate"),
        (sandbox(&databases, &authority, renamed), "the catalog (invalid peer certificate"),
        (sandbox(&databases, "missing.pem", same), "missing.pem has no certificates of authorities"),
        (sandbox(&databases, "kinfolk.toml", same), "kinfolk.toml has no certificates of authorities"),
    ] {
        let message = sandbox.fails("fleet init", 1);
        assert!(message.contains(part), "{message}");
    }
    let required = databases.configuration().replace("_catalog\"", "_catalog?sslmode=require\"");
    let message = Sandbox::configured(&required).fails("fleet init", 1);
    assert!(message.contains("the catalog requires TLS") && message.contains("fleet.ca_file"), "{message}");
    // Who says so gets a connection that is not encrypted.
    let disabled = |text: &str| {
        ["_catalog\"", "_a\"", "_b\""].iter().fold(text.to_owned(), |text, end| {
            text.replace(end, &format!("{}?sslmode=disable\"", end.trim_end_matches('"')))
        })
    };
    sandbox(&databases, &stranger, disabled).ok("fleet init");
}
