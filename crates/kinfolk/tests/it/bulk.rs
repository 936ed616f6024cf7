//! Import into what is there, generate, export, verify, backup and restore.

use std::fs;

use crate::support::{Sandbox, entries, expected_export, stable};

#[test]
fn an_import_says_what_it_did() {
    let sandbox = Sandbox::new();
    sandbox.write("edges.csv", "1,2\n1,2\n3,3\n1,3\nbad\n2,1\n,\n");
    let run = sandbox.ok("import edges.csv --skip-invalid");
    let figures: Vec<(&str, &str)> = run.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    let figure =
        |name: &str| figures.iter().find(|(found, _)| found.trim() == name).map(|(_, figure)| *figure);
    for (name, expected) in [
        ("added", "3"),
        ("duplicates", "1"),
        ("self-follows", "1"),
        ("over the limit", "0"),
        ("invalid, skipped", "2"),
    ] {
        assert_eq!(figure(name), Some(expected), "{name} in {run}");
    }
    assert!(figure("seconds").is_some() && figure("edges/s").is_some() && figure("token").is_some());

    let again = sandbox.json("import edges.csv --skip-invalid");
    for (name, expected) in
        [("added", 0), ("duplicates", 4), ("self_follows", 1), ("over_limit", 0), ("invalid", 2)]
    {
        assert_eq!(again[name], expected, "{name} in {again}");
    }
    assert!(again["seconds"].is_number() && again["edges_per_second"].is_number());
    assert!(again["token"].as_str().unwrap().len() > 30);
}

#[test]
fn an_import_merges_into_what_is_there() {
    let sandbox = Sandbox::new();
    let (old, new) = ("2026-01-01T00:00:00.000Z", "2026-02-02T00:00:00.000Z");
    sandbox.write("first.csv", format!("1,2,{old}\n1,3,{old}\n2,1,{old}\n"));
    sandbox.write("second.csv", format!("1,3,{new}\n1,4,{new}\n9,1,{new}\n"));
    sandbox.ok("import first.csv");
    sandbox.ok("unfollow 1 2");
    let report = sandbox.json("import second.csv");
    assert_eq!((&report["added"], &report["duplicates"]), (&2.into(), &1.into()));
    let expected = [(1, 3, old), (1, 4, new), (2, 1, old), (9, 1, new)];
    assert_eq!(sandbox.export("kinfolk-data"), expected_export(&expected));
    assert_eq!(sandbox.json("counts 1"), serde_json::json!({"id": "1", "following": 2, "followers": 2}));
    assert_eq!(sandbox.json("friends 1")["items"].as_array().unwrap().len(), 0);
    assert_eq!(sandbox.json("followers 1")["items"][0]["id"], "9", "the newest first");
    assert_eq!(sandbox.json("verify")["difference_count"], 0);
    sandbox.ok("follow 1 2");
    sandbox.ok("unfollow 1 3");
    assert_eq!(sandbox.json("counts 1")["following"], 2);
    assert_eq!(sandbox.json("verify")["difference_count"], 0);
}

#[test]
fn several_files_are_one_import() {
    let sandbox = Sandbox::new();
    sandbox.write("a.csv", "1,2\n");
    sandbox.write("b.tsv", "follower\tfollowee\n1\t3\n");
    let run = sandbox.run_with_input("import a.csv - b.tsv --json", "1 4\n");
    assert_eq!(run.status, 0, "{run:?}");
    assert_eq!(sandbox.json("counts 1")["following"], 3);
    assert_eq!(sandbox.json("changes")["items"].as_array().unwrap().len(), 1);
}

#[test]
fn limits_of_an_import() {
    let sandbox = Sandbox::new();
    let lines: String = (2..=31).map(|id| format!("1,{id},{id}\n")).collect();
    sandbox.write("edges.csv", lines);
    for (options, added, over) in [("--limit 10", 10, 20), ("--no-limit", 30, 0), ("", 30, 0)] {
        let data = format!("data{added}{over}{}", options.len());
        let report = sandbox.json(&format!("import edges.csv {options} --data {data}"));
        assert_eq!((&report["added"], &report["over_limit"]), (&added.into(), &over.into()), "{options}");
        assert_eq!(sandbox.json(&format!("counts 1 --data {data}"))["following"], added);
    }
    let many: String = (2..=10_101).map(|id| format!("1,{id}\n")).collect();
    sandbox.write("many.csv", many);
    let report = sandbox.json("import many.csv --data default");
    assert_eq!((&report["added"], &report["over_limit"]), (&10_000.into(), &100.into()));
    let report = sandbox.json("import many.csv --data default --no-limit");
    assert_eq!((&report["added"], &report["over_limit"]), (&100.into(), &0.into()));
}

#[test]
fn an_edge_without_since_gets_the_time_of_the_import() {
    let sandbox = Sandbox::new();
    sandbox.write("edges.csv", "1,2\n3,4\n5,6,1000\n");
    sandbox.ok("import edges.csv");
    let since = |pair: &str| sandbox.json(&format!("check {pair}"))["since"].as_str().unwrap().to_owned();
    assert_eq!(since("1 2"), since("3 4"));
    assert!(since("1 2").as_str() > "2026");
    assert_eq!(since("5 6"), "1970-01-01T00:00:01.000Z");
}

#[test]
fn generated_files_are_the_same_for_ever() {
    let sandbox = Sandbox::new();
    let arguments = "--edges 2000 --users 300 --seed 9 --large 2";
    let report = sandbox.json(&format!("generate a.csv {arguments}"));
    assert_eq!((&report["edges"], &report["users"]), (&2_000.into(), &351.into()));
    sandbox.ok(&format!("generate b.csv.zst {arguments}"));
    let plain = fs::read(sandbox.path("a.csv")).unwrap();
    let compressed = fs::read(sandbox.path("b.csv.zst")).unwrap();
    assert_eq!(zstd::decode_all(&compressed[..]).unwrap(), plain);
    assert_eq!(sandbox.ok(&format!("generate - {arguments}")).as_bytes(), plain);
    assert_eq!(plain.iter().filter(|&&byte| byte == b'\n').count(), 2_001);

    for file in ["a.csv", "b.csv.zst"] {
        let report = sandbox.json(&format!("import {file} --data from-{file}"));
        assert_eq!((&report["added"], &report["duplicates"]), (&2_000.into(), &0.into()));
        let counts = sandbox.json(&format!("counts 1 2 --data from-{file}"));
        assert_eq!(
            (&counts["items"][0]["followers"], &counts["items"][1]["followers"]),
            (&200.into(), &100.into())
        );
    }
    insta::assert_snapshot!(stable(&sandbox.ok("generate - --edges 5 --users 4 --seed 1")), @r"
    follower,followee
    1,2
    2,3
    2,4
    3,4
    4,2
    ");
    insta::assert_snapshot!(sandbox.ok("generate - --edges 3 --users 4 --seed 1 --sparse"), @r"
    follower,followee
    7263896241887491809,5304420444772724162
    5304420444772724162,3795457087241191669
    5304420444772724162,7648004201468780527
    ");
}

#[test]
fn an_export_appears_whole_or_not_at_all() {
    let sandbox = Sandbox::new();
    sandbox.ok("follow 1 2");
    sandbox.write("out.csv", "old");
    let figures = sandbox.ok("export out.csv");
    assert!(figures.starts_with("edges"), "{figures}");
    assert_eq!(sandbox.json("export out.csv")["edges"], 1);
    assert_eq!(fs::read_to_string(sandbox.path("out.csv")).unwrap(), sandbox.export("kinfolk-data"));
    assert!(sandbox.fails("export missing/out.csv", 1).contains("could not write missing/out.csv"));
    assert!(sandbox.fails("export kinfolk-data", 1).contains("could not write kinfolk-data"));
    assert_eq!(entries(&sandbox.path("")), ["kinfolk-data", "out.csv"]);
    sandbox.ok("export /dev/null");
}

#[test]
fn verify_finds_nothing_wrong() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate edges.csv --edges 5000 --users 500");
    sandbox.ok("import edges.csv");
    insta::assert_snapshot!(sandbox.ok("verify"), @r"
    edges        5,000
    users          751
    differences      0
    ");
    insta::assert_snapshot!(sandbox.ok("verify --repair --json"), @r#"{"edges":5000,"users":751,"difference_count":0,"differences":[],"repaired":false}"#);
}

#[test]
fn a_backup_restores_to_the_same_graph() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate edges.csv --edges 20000 --users 2000");
    sandbox.ok("import edges.csv");
    sandbox.ok("follow 1 5");
    let token = sandbox.json("unfollow 1 5")["token"].as_str().unwrap().to_owned();
    let report = sandbox.json("backup graph.backup");
    let size = fs::metadata(sandbox.path("graph.backup")).unwrap().len();
    assert_eq!((&report["edges"], &report["bytes"]), (&20_000.into(), &size.into()));
    assert!(sandbox.fails("backup graph.backup", 1).contains("exists already"));

    let restored = sandbox.json("restore graph.backup --data restored");
    assert_eq!(restored["edges"], 20_000);
    assert_eq!(sandbox.export("restored"), sandbox.export("kinfolk-data"));
    assert_eq!(sandbox.json("verify --data restored")["difference_count"], 0);
    assert!(sandbox.fails("restore graph.backup --data restored", 1).contains("already holds a store"));
    let message = sandbox.fails(&format!("changes --after {token} --data restored"), 2);
    assert!(message.contains("token"), "{message}");
    sandbox.ok("follow 1 5 --data restored");
}

#[test]
fn a_damaged_backup_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate edges.csv --edges 3000 --users 300");
    sandbox.ok("import edges.csv");
    sandbox.ok("backup good");
    let good = fs::read(sandbox.path("good")).unwrap();
    let mut damaged: Vec<Vec<u8>> = [0, 7, 8, 20, 43, 44, good.len() / 2, good.len() - 20, good.len() - 1]
        .map(|at| good[..at].to_vec())
        .into();
    for at in [0, 9, 13, 30, 45, 60, good.len() / 2, good.len() - 1] {
        let mut flipped = good.clone();
        flipped[at] ^= 0x10;
        damaged.push(flipped);
    }
    damaged.push([good.clone(), vec![0]].concat());
    for (number, bytes) in damaged.iter().enumerate() {
        sandbox.write("bad", bytes);
        let message = sandbox.fails("restore bad --data restored", 1);
        assert!(message.contains("bad"), "{number}: {message}");
        let names = fs::read_dir(sandbox.path("restored")).map_or(0, |entries| {
            entries.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name() != "LOCK")).count()
        });
        assert_eq!(names, 0, "{number}: nothing is left behind");
        sandbox.fails("check 1 2 --data restored", 1);
    }
    sandbox.fails("restore missing --data restored", 1);
    sandbox.ok("restore good --data restored");
    assert_eq!(sandbox.export("restored"), sandbox.export("kinfolk-data"));
}

#[test]
fn progress_is_told_in_plain_lines() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate edges.csv --edges 100000 --users 9000 --quiet");
    let run = sandbox.run("import edges.csv --progress-every 0");
    assert!(run.stderr.lines().all(|line| line.starts_with("kinfolk: ")), "{run:?}");
    assert!(run.stderr.contains("reading: "), "{run:?}");
    assert_eq!(sandbox.run("import edges.csv --progress-every 0 --quiet").stderr, "");
    assert_eq!(sandbox.run("export out.csv").stderr, "", "short work says nothing");
}
