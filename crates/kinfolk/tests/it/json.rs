//! Every command that prints results prints JSON with `--json`: one document, or one in each line.

use crate::support::Sandbox;

/// Commands without results to print here: `serve` prints a line for people when it is ready, and the others need a fleet.
const WITHOUT: [&str; 3] = ["serve", "fleet", "shards"];

/// A line for each command, in an order in which they work. `$comment` and `$key` are the ids of the last ones.
const LINES: &[&str] = &[
    "follow 1 2",
    "follow 2 3",
    "check 1 2",
    "following 1",
    "followers 2",
    "friends 1",
    "counts 1",
    "counts 1 2",
    "common 1 2",
    "known-followers 1 3",
    "suggestions 1",
    "suggest",
    "dismiss 1 3",
    "unfollow 1 2",
    "post 2 --id 70",
    "posts 2",
    "feed 1",
    "comment 1 70 hello",
    "edit-comment 1 $comment 1 hi",
    "comments 70",
    "comments 70 --tree",
    "comments --by 1",
    "comment-history $comment",
    "lock-comments 70",
    "unlock-comments 70",
    "remove-comment $comment off-topic",
    "delete-comment 1 $comment",
    "purge-comment $comment",
    "delete-post 2 70",
    "changes",
    "apply",
    "import edges.csv",
    "export edges.parquet",
    "export -",
    "export --comments -",
    "generate made-up.csv --edges 20 --users 10",
    "generate - --edges 20 --users 10",
    "verify",
    "compact",
    "backup graph.backup",
    "restore graph.backup --data restored",
    "keys add service --scopes read --file keys.toml",
    "keys list --file keys.toml",
    "keys revoke $key --file keys.toml",
    "plan",
    "config",
    "config --reference",
    "demo --edges 1000 --once",
];

/// The commands that this help lists, with those within them.
fn commands(sandbox: &Sandbox, outer: &str) -> Vec<String> {
    let help = sandbox.ok(&format!("{outer} --help"));
    let Some(list) = help.split("\nCommands:\n").nth(1) else { return vec![outer.trim().to_owned()] };
    let names = list.lines().take_while(|line| line.starts_with("  "));
    let names =
        names.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.flat_map(|name| commands(sandbox, &format!("{outer} {name}"))).collect()
}

#[test]
fn every_command_prints_json() {
    let sandbox = Sandbox::new();
    sandbox.write("edges.csv", "5,6\n7,8\n");
    let all = commands(&sandbox, "");
    assert!(all.len() > 40, "{all:?}");
    for command in all.iter().filter(|command| !WITHOUT.iter().any(|without| command.starts_with(without))) {
        let has_line = |line: &&str| *line == command || line.starts_with(&format!("{command} "));
        assert!(LINES.iter().any(has_line), "{command} needs a line in this test");
    }

    let (mut comment, mut key) = (String::new(), String::new());
    for line in LINES {
        let line = line.replace("$comment", &comment).replace("$key", &key);
        let run = sandbox.run_with_input(&format!("{line} --json"), "follow 8 9\nunfollow 8 9\n");
        assert_eq!(run.status, 0, "{line}: {run:?}");
        let parsed = run.stdout.lines().map(serde_json::from_str::<serde_json::Value>);
        let documents = parsed.collect::<Result<Vec<_>, _>>();
        let documents = documents.unwrap_or_else(|error| panic!("{line}: {error}: {}", run.stdout));
        assert!(!documents.is_empty(), "{line} printed nothing");
        assert!(documents.iter().all(serde_json::Value::is_object), "{line}: {}", run.stdout);
        match line.split(' ').next().unwrap() {
            "comment" => comment = documents[0]["id"].as_str().unwrap().to_owned(),
            "keys" if line.contains("list") => {
                key = documents[0]["items"][0]["id"].as_str().unwrap().to_owned();
            }
            _ => {}
        }
    }
}

#[test]
fn refused_lines_are_documents_too() {
    let sandbox = Sandbox::new();
    let run = sandbox.run_with_input("apply --json", "follow 1 2\nfollow 1 1\nfollow 1 2\n");
    assert_eq!(run.status, 1);
    let documents: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(documents[0]["changed"], true);
    assert_eq!(documents[1]["error"]["code"], "self_follow");
    assert_eq!(documents[2]["changed"], false);
    assert!(documents[2]["token"].is_string());
}

#[test]
fn rows_on_standard_output_are_objects() {
    let sandbox = Sandbox::new();
    sandbox.write("edges.csv", "1,2,1970-01-01T00:00:00.005Z\n");
    sandbox.ok("import edges.csv");
    assert_eq!(
        sandbox.ok("export - --json"),
        "{\"follower\":\"1\",\"followee\":\"2\",\"since\":\"1970-01-01T00:00:00.005Z\"}\n"
    );
}
