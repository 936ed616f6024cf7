//! Commands say the same whether they ask a server or open its folder.

use std::fs;

use super::running::Running;
use crate::support::{Run, Sandbox, gzip, stable};

/// Runs a line on a server.
fn remote(sandbox: &Sandbox, server: &Running, line: &str) -> Run {
    sandbox.run(&format!("{line} {}", server.url()))
}

fn outcome(run: &Run) -> (i32, String, String) {
    (run.status, stable(&run.stdout), stable(&run.stderr))
}

/// Commands about the graph alone, which every profile has.
pub const GRAPH_LINES: &[&str] = &[
    "follow 1 2",
    "follow 1 2",
    "follow 1 3 --json",
    "follow 2 1",
    "follow 1 1",
    "follow 1 x",
    "check 1 2",
    "check 1 2 --json",
    "check 3 1",
    "check 3 1 --json",
    "following 1",
    "following 1 --limit 1",
    "following 1 --limit 1 --json",
    "following 1 --all --json",
    "followers 1",
    "friends 1 --json",
    "followers 99",
    "followers 1 --cursor forged",
    "counts 1",
    "counts 1 --json",
    "counts 1 2 3",
    "counts 1 2 3 --json",
    "follow 2 7",
    "follow 3 7",
    "follow 3 8",
    "common 2 3",
    "common 2 3 1 --json",
    "common 1 2 --cursor forged",
    "common 1",
    "known-followers 1 7",
    "known-followers 1 7 --limit 1",
    "known-followers 1 7 --json",
    "suggestions 1",
    "suggestions 1 --json",
    "suggestions 1 --limit 1",
    "suggestions 99",
    "dismiss 1 8",
    "dismiss 1 8 --json",
    "dismiss 1 1",
    "suggestions 1 --json",
];

#[test]
fn the_answers_are_the_same() {
    let (here, there) = (Sandbox::new(), Sandbox::new());
    let server = Running::start(&there, "--limit-changes none");
    for line in GRAPH_LINES.iter().copied().chain([
        "post 2 --id 70 --at 2026-01-01T00:00:00Z --payload {\"a\":[1,2.10]}",
        "post 2 --id 70 --at 1767225600000 --payload {\"a\":[1,2.10]} --json",
        "post 2 --id 71 --key once",
        "post 2 --id 71 --key once --json",
        "post 2 --key once --payload 1",
        "post 3 --id 70",
        "post 3 --id 72 --payload {",
        "post 3 --id 72 --at 2999-01-01T00:00:00Z",
        "post 3 --id x",
        "posts 2",
        "posts 2 --json",
        "posts 2 --limit 1",
        "posts 2 --all --json",
        "posts 99",
        "feed 1",
        "feed 1 --json",
        "feed 1 --limit 1 --json",
        "feed 1 --cursor forged",
        "feed 99 --json",
        "delete-post 1 70",
        "delete-post 2 70",
        "delete-post 2 70 --json",
        "delete-post 2 99",
        "post 2 --id 70",
        "feed 1 --json",
        "unfollow 1 2",
        "unfollow 1 2",
        "unfollow 1 3 --json",
        "changes",
        "changes --json",
        "changes --limit 2",
        "changes --after forged",
        "verify",
        "verify --json",
        "import missing.csv",
    ]) {
        let (local, asked) = (here.run(line), remote(&there, &server, line));
        assert_eq!(outcome(&asked), outcome(&local), "{line}");
    }
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn pages_and_tokens_lead_on() {
    let sandbox = Sandbox::new();
    let lines: String = (2..=1_203).map(|id| format!("{id},1\n")).collect();
    sandbox.write("edges.csv", lines);
    sandbox.ok("import edges.csv");
    let local = sandbox.ok("followers 1 --all");
    let server = Running::start(&sandbox, "");
    assert_eq!(remote(&sandbox, &server, "followers 1 --all").stdout, local);
    let page = remote(&sandbox, &server, "followers 1 --limit 500 --json").stdout;
    let page: serde_json::Value = serde_json::from_str(&page).unwrap();
    let next = page["next"].as_str().unwrap();
    let rest = remote(&sandbox, &server, &format!("followers 1 --limit 1000 --cursor {next}"));
    assert_eq!(rest.stdout.lines().count(), 702);
    let many: String = (0..250).map(|id| format!(" {id}")).collect();
    assert_eq!(remote(&sandbox, &server, &format!("counts{many}")).stdout.lines().count(), 251);
    let written = remote(&sandbox, &server, "follow 7 8 --json").stdout;
    let token: serde_json::Value = serde_json::from_str(&written).unwrap();
    let after = format!("changes --after {}", token["token"].as_str().unwrap());
    assert_eq!(
        remote(&sandbox, &server, &after).stdout.lines().count(),
        1,
        "only the token of what comes next"
    );
    let fresh = |command: &str, token: &str| remote(&sandbox, &server, &format!("{command} --token={token}"));
    assert_eq!(fresh("check 7 8", token["token"].as_str().unwrap()).status, 0);
    assert_eq!(fresh("check 7 8", "made-up").status, 2);
    for write in ["follow 7 9", "unfollow 7 8", "dismiss 7 9", "post 7 --id 5", "comment 7 5 Hello"] {
        let run = fresh(write, "made-up");
        assert!(run.status == 2 && run.stderr.contains("consistency token"), "{write}: {run:?}");
    }
    assert_eq!(remote(&sandbox, &server, "following 7").stdout.lines().count(), 2, "1 and 8");
}

#[test]
fn imports_exports_and_backups_go_round() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate made-up.csv --edges 20000 --users 2000");
    sandbox.ok("import made-up.csv --data local");
    // The same times, so that both graphs are equal to the byte.
    sandbox.ok("export edges.parquet --data local");
    let text = sandbox.export("local");
    sandbox.write("edges.csv", &text);
    sandbox.write("edges.csv.gz", gzip(text.as_bytes()));
    let server = Running::start(&sandbox, "--data served");
    for (file, added) in [("edges.parquet", 20_000), ("edges.csv", 0), ("edges.csv.gz", 0)] {
        let run = remote(&sandbox, &server, &format!("import {file} --json"));
        let imported: serde_json::Value =
            serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
        assert_eq!(imported["added"], added, "{file}");
        assert_eq!(imported["duplicates"], 20_000 - added, "{file}");
        assert!(imported["token"].as_str().is_some_and(|token| token.len() > 20), "{run:?}");
    }
    assert_eq!(remote(&sandbox, &server, "export -").stdout, text);
    for file in ["out.csv", "out.csv.zst", "out.parquet"] {
        let run = remote(&sandbox, &server, &format!("export {file} --json"));
        assert!(run.stdout.contains("\"edges\":20000"), "{run:?}");
        sandbox.ok(&format!("import {file} --data again-{file}"));
        assert_eq!(sandbox.export(&format!("again-{file}")), text);
    }
    let backup = remote(&sandbox, &server, "backup graph.backup --json");
    assert!(backup.stdout.contains("\"edges\":20000"), "{backup:?}");
    let again = remote(&sandbox, &server, "backup graph.backup");
    assert!(again.failure(1).contains("exists already"));
    assert_eq!(server.end("TERM").0, 0);
    sandbox.ok("restore graph.backup --data restored");
    assert_eq!(sandbox.export("restored"), text);
    assert_eq!(sandbox.export("served"), text);
    let left = fs::read_dir(sandbox.path("served")).unwrap().flatten();
    assert!(left.map(|entry| entry.file_name()).all(|name| !name.to_string_lossy().starts_with(".backup-")));
}

#[test]
fn what_is_malformed_is_told_by_file_and_line_and_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("good.csv", "1,2\n3,4\n");
    sandbox.write("bad.csv", "5,6\n7,x\n");
    sandbox.write("bad.parquet", "no");
    sandbox.ok("import good.csv");
    let here = sandbox.fails("import bad.csv", 1);
    let before = sandbox.export("kinfolk-data");
    let server = Running::start(&sandbox, "");
    assert_eq!(remote(&sandbox, &server, "import bad.csv").failure(1), here);
    assert!(here.starts_with("bad.csv:2: "), "{here}");
    let parquet = remote(&sandbox, &server, "import bad.parquet").failure(1);
    assert!(parquet.starts_with("bad.parquet: not a Parquet file"), "{parquet}");
    let skipped = remote(&sandbox, &server, "import bad.csv --skip-invalid --json").stdout;
    assert!(skipped.contains("\"invalid\":1") && skipped.contains("\"added\":1"), "{skipped}");
    let refused = remote(&sandbox, &server, "import good.csv --limit 5").failure(2);
    assert!(refused.contains("need a folder"), "{refused}");
    remote(&sandbox, &server, "unfollow 5 6");
    assert_eq!(remote(&sandbox, &server, "export -").stdout, before);
}

#[test]
fn without_a_server_both_ways_are_told() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(["check", "1", "2", "--url", "http://127.0.0.1:1"]);
    let message = Run::from(command.env_remove("KINFOLK_DATA").output().unwrap()).failure(1);
    assert!(message.contains("no server answers at http://127.0.0.1:1"), "{message}");
    assert!(message.contains("'kinfolk serve'") && message.contains("--data DIR"), "{message}");
    let message = sandbox.fails("check 1 2 --url nonsense", 1);
    assert!(message.contains("nonsense"), "{message}");
}
