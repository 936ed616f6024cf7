//! Several files that are imported by a server are visible together, or not at all.

use serde_json::Value;

use super::running::Running;
use crate::support::{Run, Sandbox, gzip, zstd};

fn remote(sandbox: &Sandbox, server: &Running, line: &str) -> Run {
    sandbox.run(&format!("{line} {}", server.url()))
}

fn json(run: &Run) -> Value {
    assert_eq!(run.status, 0, "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

/// The types of all changes.
fn changes(sandbox: &Sandbox, server: &Running) -> Vec<String> {
    let changes = json(&remote(sandbox, server, "changes --json"));
    let items = changes["items"].as_array().unwrap().iter();
    items.map(|item| item["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_malformed_file_leaves_nothing_of_the_others() {
    let sandbox = Sandbox::new();
    // More than fits in the buffers between the reader and the server.
    let many: String = (0..300_000).map(|id| format!("{},{}\n", 1_000_000 + id, 2_000_000 + id)).collect();
    sandbox.write("many.csv.zst", zstd(many.as_bytes()));
    sandbox.write("good.csv", "follower,followee,since\n1,2,2026-01-01T00:00:00Z\n");
    sandbox.write("bad.tsv.gz", gzip(b"3\t4\n# a note\nx\ty\n"));
    let server = Running::start(&sandbox, "");
    for files in ["good.csv bad.tsv.gz", "many.csv.zst good.csv bad.tsv.gz", "bad.tsv.gz many.csv.zst"] {
        for form in ["", "--json"] {
            let message = remote(&sandbox, &server, &format!("import {files} {form}")).failure(1);
            assert!(message.starts_with("bad.tsv.gz:3: follower \"x\" is not an id"), "{message}");
        }
    }
    assert_eq!(changes(&sandbox, &server), [""; 0]);

    let imported = json(&remote(&sandbox, &server, "import good.csv bad.tsv.gz --skip-invalid --json"));
    assert_eq!((&imported["added"], &imported["invalid"]), (&2.into(), &1.into()));
    assert_eq!(changes(&sandbox, &server), ["imported"], "one import");
    let export = remote(&sandbox, &server, "export -").stdout;
    assert!(export.starts_with("follower,followee,since\n1,2,2026-01-01T00:00:00.000Z\n3,4,"), "{export}");
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn all_formats_can_be_mixed() {
    let sandbox = Sandbox::new();
    sandbox.write("first.csv", "1,2,2026-01-01T00:00:00Z\n1,3,2026-01-01T00:00:00Z\n");
    sandbox.ok("import first.csv");
    sandbox.ok("export first.parquet");
    sandbox.write("second.txt", "from to\n1 2\n1 1\n4 5");
    let server = Running::start(&sandbox, "--data elsewhere");
    let line = format!("import first.parquet second.txt - --json {}", server.url());
    let imported = json(&sandbox.run_with_input(&line, "6,7\n"));
    let figures =
        ["added", "duplicates", "self_follows", "over_limit", "invalid"].map(|name| imported[name].as_u64());
    assert_eq!(figures, [4, 1, 1, 0, 0].map(Some), "{imported}");
    assert_eq!(remote(&sandbox, &server, "export -").stdout.lines().count(), 5);
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn what_only_the_server_knows_is_reported_by_file() {
    let sandbox = Sandbox::new();
    sandbox.write("good.csv", "1,2\n3,4\n");
    sandbox.write("uuids.csv", "follower,followee\n5,6\n00000000-0000-0000-0000-00000000000c,7\n");
    sandbox.write("late.csv", "5,6,2999-01-01T00:00:00Z\n");
    let server = Running::start(&sandbox, "");
    let fails = |files: &str| remote(&sandbox, &server, &format!("import {files}")).failure(1);
    let message = fails("good.csv uuids.csv");
    assert!(message.starts_with("uuids.csv, edge 2: follower "), "{message}");
    assert!(message.contains("this deployment uses integer ids"), "{message}");
    let message = fails("late.csv good.csv");
    assert!(message.starts_with("late.csv, edge 1: since "), "{message}");
    assert!(fails("good.csv missing.csv").contains("could not read missing.csv"));
    assert_eq!(changes(&sandbox, &server), [""; 0]);

    // Settings of imports of folders do not get in the way of a server; flags do.
    sandbox.write("kinfolk.toml", "[import]\nmemory = 64\nlimit = 5\n");
    assert!(fails_with(&sandbox, &server, "import good.csv --memory 64").contains("need a folder"));
    assert_eq!(json(&remote(&sandbox, &server, "import good.csv --json"))["added"], 2);
    assert_eq!(server.end("TERM").0, 0);
}

fn fails_with(sandbox: &Sandbox, server: &Running, line: &str) -> String {
    remote(sandbox, server, line).failure(2)
}
