//! Commands that a signal ends in the middle of their work: the status says so, nothing half done is left or visible, and the same
//! command run again does what it would have done.

use std::io::{BufRead, BufReader};
use std::process::Command;

use crate::support::{Run, Sandbox, entries};

/// Runs a command and sends a signal once it has said how far it is.
fn interrupt(sandbox: &Sandbox, line: &str, signal: &str) -> Run {
    let mut child = sandbox.spawn(&format!("{line} --progress-every 0"));
    let mut progress = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    progress.read_line(&mut first).unwrap();
    assert!(first.starts_with("kinfolk: "), "{line}: {first:?}");
    let id = child.id().to_string();
    assert!(Command::new("kill").args([format!("-{signal}"), id]).status().unwrap().success());
    // What it says has to be read, or it would wait.
    let rest = std::thread::spawn(move || progress.lines().map_while(Result::ok).last().unwrap_or_default());
    let mut run = Run::from(child.wait_with_output().unwrap());
    run.stderr = rest.join().unwrap();
    run
}

/// As [`interrupt`]; if it was done before the signal came, once more, after `undo`.
fn interrupted(sandbox: &Sandbox, line: &str, signal: &str, undo: impl Fn()) {
    for _ in 0..20 {
        let run = interrupt(sandbox, line, signal);
        if run.status == 0 {
            undo();
            continue;
        }
        let status = if signal == "TERM" { 143 } else { 130 };
        assert_eq!((run.status, run.stdout.as_str()), (status, ""), "{line}: {run:?}");
        let expected = format!("kinfolk: interrupted by SIG{signal} before it was done; run it again");
        assert_eq!(run.stderr, expected, "{line}");
        return;
    }
    panic!("{line} was always done before the signal came");
}

#[test]
fn files_are_whole_or_not_there() {
    let sandbox = Sandbox::new();
    let remove = |name: &str| drop(std::fs::remove_file(sandbox.path(name)));
    interrupted(&sandbox, "generate edges.csv --edges 800000 --users 40000", "TERM", || remove("edges.csv"));
    assert!(entries(&sandbox.path("")).is_empty());
    sandbox.ok("generate edges.csv --edges 800000 --users 40000 --quiet");
    sandbox.ok("import edges.csv --quiet");
    let before = entries(&sandbox.path(""));
    for (line, file, signal) in [
        ("export out.csv.gz", "out.csv.gz", "TERM"),
        ("export out.parquet", "out.parquet", "INT"),
        ("backup out.backup", "out.backup", "TERM"),
        ("backup out.backup", "out.backup", "INT"),
    ] {
        interrupted(&sandbox, line, signal, || remove(file));
        assert_eq!(entries(&sandbox.path("")), before, "{line}");
    }
    sandbox.write("out.csv.gz", "old");
    let is_old = || std::fs::read(sandbox.path("out.csv.gz")).unwrap() == b"old";
    interrupted(&sandbox, "export out.csv.gz", "TERM", || drop(sandbox.write("out.csv.gz", "old")));
    assert!(is_old(), "what was there stays");
    sandbox.ok("backup out.backup");
    sandbox.ok("restore out.backup --data restored --quiet");
    assert_eq!(sandbox.export("restored"), sandbox.export("kinfolk-data"));
}

#[test]
fn a_store_shows_nothing_half_done() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate new.csv --edges 800000 --users 40000 --quiet");
    sandbox.ok("import new.csv --data source --quiet");
    sandbox.ok("export edges.csv --data source");
    sandbox.ok("backup graph.backup --data source");
    let whole = sandbox.export("source");
    let remove = |name: &str| drop(std::fs::remove_dir_all(sandbox.path(name)));

    sandbox.ok("follow 1 999999999 --data imported");
    let before = sandbox.export("imported");
    interrupted(&sandbox, "import edges.csv --memory 1 --data imported", "TERM", || {
        remove("imported");
        sandbox.ok("follow 1 999999999 --data imported");
    });
    // All of it, if the signal came late.
    let found = sandbox.export("imported").lines().count();
    assert!(found == before.lines().count() || found == whole.lines().count() + 1, "{found} lines");
    sandbox.ok("import edges.csv --memory 1 --data imported --quiet");
    sandbox.ok("unfollow 1 999999999 --data imported");
    assert_eq!(sandbox.export("imported"), whole);

    interrupted(&sandbox, "restore graph.backup --data restored", "TERM", || remove("restored"));
    assert!(sandbox.fails("check 1 2 --data restored", 1).contains("run 'kinfolk restore' again"));
    sandbox.ok("restore graph.backup --data restored --quiet");
    assert_eq!(sandbox.export("restored"), whole);

    interrupted(&sandbox, "verify --repair --data restored", "INT", || {});
    assert_eq!(sandbox.json("verify --data restored --quiet")["difference_count"], 0);
    assert_eq!(sandbox.export("restored"), whole);
}
