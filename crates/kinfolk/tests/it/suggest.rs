//! Overlaps and suggestions on a folder: what is printed, what is refused, and that a stopped run goes on.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

use serde_json::Value;

use crate::support::{Run, Sandbox, stable};

/// User 1 follows 2, 3 and 4, who follow others: 10 and 11 in common, 12 and 13 each alone.
pub const EDGES: &str = "\
1,2,1000\n1,3,2000\n1,4,3000\n\
2,10,1000\n2,11,1000\n2,12,1000\n2,1,1000\n\
3,10,1000\n3,11,1000\n3,13,1000\n\
4,10,1000\n4,2,1000\n\
99,10,1000\n";

/// A sandbox with the graph of [`EDGES`].
pub fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("edges.csv", EDGES);
    sandbox.ok("import edges.csv");
    sandbox
}

#[test]
fn overlaps_are_by_id_with_their_count() {
    let sandbox = sandbox();
    let run = sandbox.run("common 2 3");
    assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (0, "10\n11\n", "2 in all\n"));
    insta::assert_snapshot!(sandbox.ok("common 2 3 4 --json"), @r#"{"count":1,"items":[{"id":"10"}]}"#);
    insta::assert_snapshot!(sandbox.ok("common 2 77 --json"), @r#"{"count":0,"items":[]}"#);
    insta::assert_snapshot!(sandbox.ok("known-followers 1 10 --json"), @r#"{"count":3,"items":[{"id":"2"},{"id":"3"},{"id":"4"}]}"#);
    assert_eq!(sandbox.ok("known-followers 1 11 --quiet"), "2\n3\n");
    assert_eq!(sandbox.ok("known-followers 10 1"), "");

    let run = sandbox.run("known-followers 1 10 --limit 2");
    assert_eq!(stable(&run.stderr), "3 in all; more with --cursor OPAQUE\n");
    let page = sandbox.json("known-followers 1 10 --limit 2");
    let next = page["next"].as_str().unwrap();
    let last = sandbox.json(&format!("known-followers 1 10 --limit 2 --cursor {next}"));
    assert_eq!(last.to_string(), r#"{"count":3,"items":[{"id":"4"}]}"#);
    let refused = sandbox.fails(&format!("known-followers 1 11 --cursor {next}"), 2);
    assert!(refused.contains("cursor is not valid"), "{refused}");
}

#[test]
fn all_pages_of_an_overlap_are_walked() {
    let sandbox = Sandbox::new();
    let lines: String = (10..=1_511).map(|id| format!("1,{id}\n2,{id}\n")).collect();
    sandbox.write("edges.csv", lines);
    sandbox.ok("import edges.csv");
    let ids: String = (10..=1_511).map(|id| format!("{id}\n")).collect();
    assert_eq!(sandbox.ok("common 1 2 --all"), ids);
    let whole = sandbox.json("common 2 1 --all");
    assert_eq!((&whole["count"], whole["items"].as_array().unwrap().len()), (&Value::from(1_502), 1_502));
    assert!(whole.get("next").is_none());
}

#[test]
fn suggestions_walk_until_they_were_computed_for_everyone() {
    let sandbox = sandbox();
    insta::assert_snapshot!(sandbox.ok("suggestions 1"), @r"
    id  mutual  score  jaccard  via
    10       3  2.190    0.750  4 3 2
    11       2  1.279    0.667  3 2
    13       1  0.721    0.333  3
    12       1  0.558    0.333  2
    ");
    insta::assert_snapshot!(sandbox.ok("suggestions 1 --limit 1 --json"), @r#"{"items":[{"id":"10","mutual_count":3,"score":2.1896973736584187,"jaccard":0.75,"via":["4","3","2"]}]}"#);
    insta::assert_snapshot!(stable(&sandbox.ok("dismiss 1 11")), @r"
    11 is not suggested to 1 any more
    token OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("dismiss 1 11")), @r"
    11 was dismissed by 1 already
    token OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("dismiss 1 12 --json")), @r#"{"changed":true,"token":"OPAQUE"}"#);
    let report = sandbox.json("suggest");
    assert_eq!((&report["complete"], &report["resumed"]), (&Value::from(true), &Value::from(0)));
    insta::assert_snapshot!(stable(&sandbox.ok("suggestions 1")), @r"
    id  mutual  score  jaccard  via
    10       3  2.190    0.750  4 3 2
    13       1  0.721    0.333  3
    computed at TIME
    ");
    sandbox.ok("follow 1 10");
    insta::assert_snapshot!(stable(&sandbox.ok("suggestions 1 --json")), @r#"{"items":[{"id":"13","mutual_count":1,"score":0.7213475203607231,"jaccard":0.3333333333333333,"via":["3"]}],"computed_at":"TIME"}"#);
    assert_eq!(sandbox.ok("suggestions 77"), "nobody\n");
    assert_eq!(sandbox.ok("suggestions 77 --json"), "{\"items\":[]}\n");
    insta::assert_snapshot!(stable(&sandbox.ok("changes --limit 3")), @r"
    0-1  TIME  imported  13 edges
    0-2  TIME  dismiss   1 11
    0-3  TIME  dismiss   1 12
    next OPAQUE
    ");
}

#[test]
fn what_is_wrong_is_told() {
    let sandbox = sandbox();
    for (line, status, part) in [
        ("common 1", 2, "2 values required"),
        ("common 1 2 3 4 5 6 7 8 9 10 11", 2, "no more were expected"),
        ("common 1 x", 2, "an id is an integer"),
        ("common 1 00000000-0000-0000-0000-000000000001", 2, "this deployment uses integer ids"),
        ("common 1 2 --cursor forged", 2, "cursor is not valid"),
        ("common 1 2 --all --limit 3", 2, "cannot be used with"),
        ("known-followers 1", 2, "not provided"),
        ("known-followers 1 2 --limit 0", 2, "0 is not in 1..=1000"),
        ("suggestions", 2, "not provided"),
        ("suggestions 1 --limit 101", 2, "101 is not in 1..=100"),
        ("dismiss 1", 2, "not provided"),
        ("dismiss 1 1", 2, "never suggested to itself"),
        ("suggest --ranking fame", 2, "count, jaccard, adamic-adar"),
        ("suggest --keep 0", 2, "0 is not in 1..=1000"),
        ("suggest --threads 0", 2, "0 is not in 1..=256"),
        ("suggest --per-node many", 2, "invalid"),
        ("suggest --data missing", 1, "there is no store in missing"),
    ] {
        let message = sandbox.fails(line, status);
        assert!(message.contains(part), "{line}: {message}");
    }
}

#[test]
fn the_ranking_is_what_was_asked_for() {
    let sandbox = Sandbox::new();
    // Two lead to 10, whom many follow; one to 11, whom nobody else follows.
    let fans: String = (100..140).map(|id| format!("{id},10\n")).collect();
    sandbox.write("edges.csv", format!("1,2\n1,3\n2,10\n3,10\n3,11\n{fans}"));
    sandbox.ok("import edges.csv");
    for (ranking, best) in [("count", "10"), ("jaccard", "11"), ("adamic-adar", "10")] {
        sandbox.ok(&format!("suggest --ranking {ranking} --keep 1"));
        let found = sandbox.json("suggestions 1");
        assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
        assert_eq!(found["items"][0]["id"], best, "{ranking}");
    }
    // The most recent one that user 1 follows is 3 by its id: all times are the same.
    sandbox.ok("suggest --per-node 1");
    assert_eq!(sandbox.json("suggestions 1")["items"][0]["id"], "11");
    sandbox.write("kinfolk.toml", "[suggest]\nkeep = 1\nranking = \"jaccard\"\n");
    sandbox.ok("suggest");
    let found = sandbox.json("suggestions 1");
    assert_eq!((found["items"].as_array().unwrap().len(), &found["items"][0]["id"]), (1, &Value::from("11")));
}

/// Runs `suggest` and stops it once it has said how far it is.
fn suggest_and_stop(sandbox: &Sandbox, line: &str, signal: &str) -> Run {
    let mut child: Child = sandbox.spawn(&format!("{line} --progress-every 0"));
    let mut progress = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    progress.read_line(&mut said).unwrap();
    assert!(said.starts_with("kinfolk: suggesting: "), "{said}");
    let id = child.id().to_string();
    assert!(Command::new("kill").args([format!("-{signal}"), id]).status().unwrap().success());
    // What it says has to be read, or it would wait.
    let rest = std::thread::spawn(move || progress.lines().map_while(Result::ok).count());
    let run = Run::from(child.wait_with_output().unwrap());
    rest.join().unwrap();
    run
}

/// As [`suggest_and_stop`]; if it was done before it could be stopped, once more.
fn stopped_half_way(sandbox: &Sandbox, line: &str, signal: &str) -> Run {
    let runs = (0..20).map(|_| suggest_and_stop(sandbox, &format!("{line} --afresh"), signal));
    let status = if signal == "TERM" { 143 } else { 130 };
    runs.into_iter().find(|run| run.status == status).expect("it can be stopped half-way")
}

#[test]
fn a_stopped_run_goes_on_and_ends_as_if_nothing_had_happened() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate edges.csv --edges 400000 --users 30000 --seed 3");
    for data in ["whole", "stopped"] {
        sandbox.ok(&format!("import edges.csv --data {data}"));
    }
    let whole = sandbox.json("suggest --data whole --keep 10");
    assert_eq!((&whole["complete"], &whole["resumed"]), (&Value::from(true), &Value::from(0)));

    let line = "suggest --data stopped --keep 10 --threads 1 --json";
    let read = |run: Run| -> Value { serde_json::from_str(&run.stdout).unwrap() };
    let stopped = read(stopped_half_way(&sandbox, line, "TERM"));
    assert_eq!(stopped["complete"], false, "{stopped}");
    let again = read(suggest_and_stop(&sandbox, line, "INT"));
    assert_eq!(again["resumed"], stopped["users"], "{again}");
    let mut parts = vec![stopped, again];
    // It may have been done before it could be stopped a second time.
    if parts[1]["complete"] == false {
        parts.push(read(sandbox.run(line)));
    }
    assert_eq!(parts.last().unwrap()["complete"], true, "{parts:?}");
    for name in ["users", "suggested"] {
        let sum: u64 = parts.iter().map(|part| part[name].as_u64().unwrap()).sum();
        assert_eq!(sum, whole[name].as_u64().unwrap(), "{name}: {parts:?}");
    }
    for user in (1..30_000).step_by(1_500) {
        let items = |data: &str| {
            let found = sandbox.json(&format!("suggestions {user} --data {data}"));
            assert!(found["computed_at"].is_string() || found["items"] == serde_json::json!([]), "{found}");
            found["items"].clone()
        };
        assert_eq!(items("stopped"), items("whole"), "{user}");
    }
}

#[test]
fn another_wish_starts_over() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate edges.csv --edges 400000 --users 30000");
    sandbox.ok("import edges.csv");
    let run = stopped_half_way(&sandbox, "suggest --threads 1", "TERM");
    assert!(run.stdout.ends_with("stopped half-way; the next run goes on from here\n"), "{run:?}");
    assert_eq!(sandbox.json("suggest --ranking jaccard")["resumed"], 0);
    stopped_half_way(&sandbox, "suggest --threads 1", "TERM");
    assert_eq!(sandbox.json("suggest --afresh")["resumed"], 0);
}
