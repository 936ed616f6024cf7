//! Files go into a fleet and come out again through its servers.

use super::databases::Databases;
use crate::serve::running::Running;

#[test]
fn imports_exports_and_verification_go_round() {
    let Some(databases) = Databases::create() else { return };
    let sandbox = databases.fleet();
    sandbox.ok("generate edges.csv --edges 3000 --users 300");
    let [one, other] = ["--role api", "--role all"].map(|role| Running::start(&sandbox, role));
    let imported = sandbox.json(&format!("import edges.csv {}", one.url()));
    assert_eq!(imported["added"], 3_000, "{imported}");
    let token = imported["token"].as_str().unwrap();
    // As fresh as the import: the other process has projected it.
    let counts = sandbox.json(&format!("counts 1 --token={token} {}", other.url()));
    assert!(counts["followers"].as_u64().unwrap() > 0, "{counts}");
    let exported = sandbox.ok(&format!("export - {}", other.url()));
    assert_eq!(exported.lines().count(), 3_001, "a header and all edges");
    sandbox.write("again.csv", &exported);
    let again = sandbox.json(&format!("import again.csv {}", other.url()));
    assert_eq!((&again["added"], &again["duplicates"]), (&0.into(), &3_000.into()), "{again}");
    assert_eq!(sandbox.ok(&format!("export - {}", one.url())), exported);
    let verified = sandbox.json(&format!("verify {}", one.url()));
    assert_eq!((&verified["edges"], &verified["difference_count"]), (&3_000.into(), &0.into()), "{verified}");
    for server in [one, other] {
        assert_eq!(server.end("TERM").0, 0);
    }
}
