//! The small commands, in both forms, with their exit status.

use crate::support::{Sandbox, copy_folder, stable};

#[test]
fn follow_check_unfollow() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(stable(&sandbox.ok("follow 1 2")), @r"
    1 now follows 2
    token OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("follow 1 2")), @r"
    1 already follows 2
    token OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("follow 1 3 --json")), @r#"{"changed":true,"token":"OPAQUE"}"#);
    insta::assert_snapshot!(stable(&sandbox.ok("check 1 2")), @"yes, since TIME");
    insta::assert_snapshot!(stable(&sandbox.ok("check 1 2 --json")), @r#"{"following":true,"since":"TIME"}"#);
    insta::assert_snapshot!(stable(&sandbox.ok("unfollow 1 2")), @r"
    1 no longer follows 2
    token OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("unfollow 1 2")), @r"
    1 did not follow 2
    token OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("unfollow 1 2 --json")), @r#"{"changed":false,"token":"OPAQUE"}"#);

    let run = sandbox.run("check 1 2");
    assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (1, "no\n", ""));
    let run = sandbox.run("check 1 2 --json");
    assert_eq!((run.status, run.stdout.as_str()), (1, "{\"following\":false}\n"));
}

#[test]
fn a_repeated_follow_keeps_its_time_and_a_new_one_gets_another() {
    let sandbox = Sandbox::new();
    sandbox.ok("follow 1 2");
    let first = sandbox.json("check 1 2")["since"].clone();
    sandbox.ok("follow 1 2");
    assert_eq!(sandbox.json("check 1 2")["since"], first);
    sandbox.ok("unfollow 1 2");
    sandbox.ok("follow 1 2");
    assert!(sandbox.json("check 1 2")["since"].as_str() > first.as_str());
}

#[test]
fn lists_run_from_new_to_old() {
    let sandbox = Sandbox::new();
    for (follower, followee) in [(1, 2), (1, 3), (1, 4), (2, 1), (4, 1), (5, 1)] {
        sandbox.ok(&format!("follow {follower} {followee}"));
    }
    insta::assert_snapshot!(stable(&sandbox.ok("following 1")), @r"
    TIME  4
    TIME  3
    TIME  2
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("followers 1")), @r"
    TIME  5
    TIME  4
    TIME  2
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("friends 1")), @r"
    TIME  4
    TIME  2
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("followers 1 --json")), @r#"{"items":[{"id":"5","since":"TIME"},{"id":"4","since":"TIME"},{"id":"2","since":"TIME"}]}"#);
    assert_eq!(sandbox.ok("following 99"), "");
    assert_eq!(sandbox.ok("friends 99 --json"), "{\"items\":[]}\n");
}

#[test]
fn a_walk_of_pages_is_the_whole_list() {
    let sandbox = Sandbox::new();
    let lines: String = (2..=1_203).map(|id| format!("{id},1\n1,{id}\n")).collect();
    sandbox.write("edges.csv", lines);
    sandbox.ok("import edges.csv");
    for list in ["following", "followers", "friends"] {
        let whole = sandbox.json(&format!("{list} 1 --all"));
        let ids: Vec<u64> = ids(&whole);
        assert_eq!(ids.len(), 1_202, "{list}");
        assert!(ids.is_sorted_by(|a, b| a > b), "one time, so by id from high to low");
        assert!(whole.get("next").is_none());

        let mut walked = Vec::new();
        let mut page = sandbox.json(&format!("{list} 1 --limit 500"));
        loop {
            walked.extend(self::ids(&page));
            let Some(next) = page.get("next").and_then(|next| next.as_str()).map(str::to_owned) else {
                break;
            };
            page = sandbox.json(&format!("{list} 1 --limit 500 --cursor {next}"));
        }
        assert_eq!(walked, ids, "{list}");
        assert_eq!(sandbox.ok(&format!("{list} 1 --all")).lines().count(), 1_202);
    }

    let run = sandbox.run("followers 1 --limit 1");
    assert_eq!(stable(&run.stdout), "TIME  1203\n");
    assert_eq!(stable(&run.stderr), "more with --cursor OPAQUE\n");
    assert_eq!(sandbox.run("followers 1 --limit 1 --quiet").stderr, "");
    assert_eq!(ids(&sandbox.json("followers 1")).len(), 50, "the default");
}

fn ids(page: &serde_json::Value) -> Vec<u64> {
    let items = page["items"].as_array().unwrap();
    items.iter().map(|item| item["id"].as_str().unwrap().parse().unwrap()).collect()
}

#[test]
fn cursors_belong_to_their_list() {
    let sandbox = Sandbox::new();
    for followee in 2..5 {
        sandbox.ok(&format!("follow 1 {followee}"));
    }
    let page = sandbox.json("following 1 --limit 1");
    let cursor = page["next"].as_str().unwrap();
    sandbox.ok(&format!("following 1 --limit 1 --cursor {cursor}"));
    for list in ["following 2", "followers 1", "friends 1"] {
        let message = sandbox.fails(&format!("{list} --cursor {cursor}"), 2);
        assert!(message.contains("cursor is not valid"), "{message}");
    }
    for forged in ["forged", "-forged"] {
        let message = sandbox.fails(&format!("following 1 --cursor {forged}"), 2);
        assert!(message.contains("cursor is not valid"), "{message}");
    }
}

#[test]
fn counts_of_one_and_of_many() {
    let sandbox = Sandbox::new();
    for (follower, followee) in [(1, 20), (3, 20), (20, 1)] {
        sandbox.ok(&format!("follow {follower} {followee}"));
    }
    insta::assert_snapshot!(sandbox.ok("counts 1 20 999"), @r"
    id   following  followers
    1            1          1
    20           1          2
    999          0          0
    ");
    insta::assert_snapshot!(sandbox.ok("counts 20 --json"), @r#"{"id":"20","following":1,"followers":2}"#);
    insta::assert_snapshot!(sandbox.ok("counts 20 7 --json"), @r#"{"items":[{"id":"20","following":1,"followers":2},{"id":"7","following":0,"followers":0}]}"#);
    let many: String = (0..250).map(|id| format!(" {id}")).collect();
    assert_eq!(sandbox.json(&format!("counts{many}"))["items"].as_array().unwrap().len(), 250);
}

#[test]
fn changes_are_told_in_order() {
    let sandbox = Sandbox::new();
    sandbox.ok("follow 1 2");
    let token = sandbox.json("unfollow 1 2")["token"].as_str().unwrap().to_owned();
    sandbox.write("edges.csv", "5,6\n7,8\n");
    sandbox.ok("import edges.csv");
    insta::assert_snapshot!(stable(&sandbox.ok("changes")), @r"
    0-1  TIME  follow    1 2
    0-2  TIME  unfollow  1 2
    0-3  TIME  imported  2 edges
    next OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("changes --json")), @r#"{"items":[{"position":"0-1","type":"follow","at":"TIME","follower":"1","followee":"2"},{"position":"0-2","type":"unfollow","at":"TIME","follower":"1","followee":"2","since":"TIME"},{"position":"0-3","type":"imported","at":"TIME","edges":2}],"next":"OPAQUE"}"#);

    let later = sandbox.json(&format!("changes --after {token}"));
    assert_eq!(later["items"].as_array().unwrap().len(), 1);
    assert_eq!(later["items"][0]["type"], "imported");
    let next = later["next"].as_str().unwrap();
    assert_eq!(sandbox.json(&format!("changes --after {next}"))["items"].as_array().unwrap().len(), 0);
    assert_eq!(sandbox.json("changes --limit 1")["items"].as_array().unwrap().len(), 1);
    for forged in ["forged", "-forged"] {
        let message = sandbox.fails(&format!("changes --after {forged}"), 2);
        assert!(message.contains("token was not issued"), "{message}");
    }
}

#[test]
fn tokens_are_joined_and_make_reads_wait() {
    let sandbox = Sandbox::new();
    let follow = |followee: u64, options: &str| {
        let written = sandbox.json(&format!("follow 1 {followee} {options}"));
        written["token"].as_str().unwrap().to_owned()
    };
    follow(2, "");
    copy_folder(&sandbox.path("kinfolk-data"), &sandbox.path("copy"));
    follow(3, "");
    let token = follow(4, "");
    sandbox.ok(&format!("check 1 4 --token={token}"));
    // The copy has not got so far: reads say so, and a write returns a token that covers both.
    let line = |command: &str, token: &str| format!("{command} --data copy --token={token}");
    for read in
        ["check 1 2", "followers 2", "following 1", "counts 1", "common 1 2", "suggestions 1", "feed 1"]
    {
        let error = sandbox.fails(&line(read, &token), 1);
        assert!(error.contains("not visible yet"), "{read}: {error}");
    }
    let joined = follow(5, &format!("--data copy --token={token}"));
    sandbox.fails(&line("check 1 5", &joined), 1);
    let applied = sandbox.run_with_input(&line("apply", &token), "unfollow 1 5\n");
    let last = applied.stdout.trim().rsplit(' ').next().unwrap().to_owned();
    sandbox.ok(&line("check 1 2", &last));
    assert!(sandbox.fails("followers 1 --token=made-up", 2).contains("token"));
}

#[test]
fn refusals() {
    let sandbox = Sandbox::new();
    sandbox.ok("follow 1 2");
    let before = sandbox.export("kinfolk-data");
    for (line, status, part) in [
        ("follow 1 1", 1, "cannot follow itself"),
        ("follow 1 x", 2, "an id is an integer"),
        ("follow 1 9223372036854775808", 2, "an id is an integer"),
        ("follow 1 00000000-0000-0000-0000-000000000001", 2, "this deployment uses integer ids"),
        ("check 1 00000000-0000-0000-0000-000000000001", 2, "this deployment uses integer ids"),
        ("counts 00000000-0000-0000-0000-000000000001", 2, "this deployment uses integer ids"),
        ("followers 00000000-0000-0000-0000-000000000001", 2, "this deployment uses integer ids"),
        ("follow 1", 2, "not provided"),
        ("follow 1 2 3", 2, "unexpected argument '3'"),
        ("followers 1 --limit 0", 2, "0 is not in 1..=1000"),
        ("followers 1 --limit 1001", 2, "1001 is not in 1..=1000"),
        ("followers 1 --limit x", 2, "invalid value 'x' for '--limit <N>': expected a whole number"),
        ("comments", 2, "the post is missing; name it, or a user with --by USER"),
        ("followers 1 --all --limit 3", 2, "cannot be used with"),
        ("changes --limit 1001", 2, "1001 is not in 1..=1000"),
        ("counts", 2, "not provided"),
        ("nonsense", 2, "unrecognized subcommand 'nonsense'"),
        ("follow 3 4 --ids words", 2, "expected integer or uuid"),
        ("check 1 2 --ids uuid", 1, "uses integer ids, chosen when it was created"),
        ("check 1 2 --data x --url http://127.0.0.1:7400", 2, "--data and --url cannot be used together"),
        ("apply --url http://127.0.0.1:7400", 2, "name it with --data DIR"),
        ("restore x --url http://127.0.0.1:7400", 2, "name it with --data DIR"),
        ("import missing.csv", 1, "could not read missing.csv"),
        ("import", 2, "not provided"),
        ("import - -", 2, "only once"),
        ("import . ", 1, "is a folder"),
        ("import x --limit 5 --no-limit", 2, "cannot be used with"),
        ("generate g.csv --edges 100 --users 3", 2, "use more users"),
        ("generate g.csv --edges 1", 2, "--users <M>"),
        ("generate g.csv --edges 1 --users 9 --large 17", 2, "17 is not in 0..=16"),
    ] {
        let message = sandbox.fails(line, status);
        assert!(message.contains(part), "{line}: {message}");
    }
    assert_eq!(sandbox.export("kinfolk-data"), before);
}

#[test]
fn the_following_limit_holds() {
    let sandbox = Sandbox::new();
    let lines: String = (2..=10_001).map(|id| format!("1,{id}\n")).collect();
    sandbox.write("edges.csv", lines);
    sandbox.ok("import edges.csv");
    assert!(sandbox.fails("follow 1 20000", 1).contains("already follows 10000"));
    sandbox.ok("unfollow 1 2");
    sandbox.ok("follow 1 20000");
}

#[test]
fn help_and_version() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.ok("--version"), format!("kinfolk {}\n", env!("CARGO_PKG_VERSION")));
    let help = sandbox.ok("--help");
    let commands = [
        "follow",
        "unfollow",
        "check",
        "following",
        "followers",
        "friends",
        "counts",
        "common",
        "known-followers",
        "suggestions",
        "dismiss",
        "suggest",
        "post",
        "delete-post",
        "posts",
        "feed",
        "comment",
        "edit-comment",
        "comments",
        "comment-history",
        "delete-comment",
        "remove-comment",
        "purge-comment",
        "lock-comments",
        "unlock-comments",
        "changes",
        "apply",
        "import",
        "export",
        "generate",
        "verify",
        "compact",
        "backup",
        "restore",
        "serve",
        "demo",
        "config",
        "keys",
        "plan",
        "fleet",
        "shards",
    ];
    for command in commands {
        assert!(help.contains(&format!("  {command} ")), "{command}");
        assert!(sandbox.ok(&format!("{command} --help")).contains("Usage:"), "{command}");
    }
    let run = sandbox.run("");
    assert_eq!(run.status, 2);
    assert!(run.stderr.contains("Usage:"));
}

#[test]
fn the_environment_sets_defaults() {
    let sandbox = Sandbox::new();
    let run = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        let output = command.env("KINFOLK_DATA", "elsewhere").env("KINFOLK_JSON", "1").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(run(&["follow", "1", "2"]).contains("\"changed\":true"));
    assert!(sandbox.path("elsewhere").join("FORMAT").exists());
    assert!(run(&["check", "1", "2", "--data", "elsewhere"]).contains("\"following\":true"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let sandbox = Sandbox::new();
    sandbox.ok("generate edges.csv --edges 50000 --users 5000");
    sandbox.ok("import edges.csv");
    let mut child = sandbox.spawn("export -");
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
