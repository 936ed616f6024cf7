//! Commands about comments say the same whether they ask a server or open its folder.

use std::fs;

use serde_json::{Value, json};

use super::running::Running;
use crate::support::{Run, Sandbox, stable};

/// Where lines are run, and which comments they have made.
struct Side<'a> {
    sandbox: &'a Sandbox,
    url: String,
    made: Vec<String>,
}

impl<'a> Side<'a> {
    fn new(sandbox: &'a Sandbox, server: Option<&Running>) -> Self {
        Self { sandbox, url: server.map(Running::url).unwrap_or_default(), made: Vec::new() }
    }

    /// Runs a line in which `$1` is the first comment that was made here, and `_` a blank.
    fn run(&mut self, line: &str) -> (i32, String, String) {
        let mut words: Vec<String> =
            format!("{line} {}", self.url).split_whitespace().map(|word| word.replace('_', " ")).collect();
        for (number, id) in self.made.iter().enumerate().rev() {
            words.iter_mut().for_each(|word| *word = word.replace(&format!("${}", number + 1), id));
        }
        let run = Run::from(self.sandbox.command(&words).output().unwrap());
        if line.starts_with("comment ") && run.status == 0 {
            let id = run.stdout.split([' ', '"']).find(|word| word.len() == 36).unwrap().to_owned();
            if !self.made.contains(&id) {
                self.made.push(id);
            }
        }
        (run.status, stable(&run.stdout), stable(&run.stderr))
    }
}

#[test]
fn the_answers_are_the_same() {
    let (here, there) = (Sandbox::new(), Sandbox::new());
    let server = Running::start(&there, "");
    let (mut here, mut there) = (Side::new(&here, None), Side::new(&there, Some(&server)));
    for line in [
        "post 2 --id 70",
        "post 2 --id 71",
        "comment 1 70 One_text",
        "comment 1 70 One_text --json",
        "comment 2 70 A_reply --reply-to $1 --key k",
        "comment 2 70 A_reply --reply-to $1 --key k",
        "comment 2 70 A_reply --reply-to $1 --key k --json",
        "comment 2 70 Another --key k",
        "comment 3 70 Below --reply-to $3",
        "comment 3 71 Below --reply-to $3",
        "comment 3 99 Nowhere",
        "comment 3 70 _",
        "comment 3 x Nowhere",
        "edit-comment 1 $1 1 Second_thoughts",
        "edit-comment 1 $1 1 Third_thoughts",
        "edit-comment 1 $1 2 Third_thoughts --json",
        "edit-comment 2 $1 3 Not_mine",
        "comment-history $1",
        "comment-history $1 --json",
        "comment-history $1 --limit 2",
        "comment-history 00000000-0000-7000-8000-000000000000",
        "comments 70",
        "comments 70 --json",
        "comments 70 --order newest --limit 2",
        "comments 70 --order newest --limit 2 --json",
        "comments 70 --all",
        "comments 70 --cursor forged",
        "comments 71",
        "comments 99",
        "comments 70 --tree",
        "comments 70 --tree --json",
        "comments 70 --tree --depth 0",
        "comments 70 --tree --depth 1 --replies 1 --json",
        "comments 70 --tree --limit 1",
        "comments --by 2",
        "comments --by 2 --json",
        "comments --by 99",
        "delete-comment 1 $2",
        "delete-comment 1 $2 --json",
        "delete-comment 2 $1",
        "delete-comment 1 00000000-0000-7000-8000-000000000000",
        "edit-comment 1 $2 1 Too_late",
        "remove-comment $3 Off_topic",
        "remove-comment $3 Off_topic --json",
        "remove-comment $3 _",
        "comment 2 70 A_reply --reply-to $1 --key k --json",
        "purge-comment $4 --moderator 8",
        "purge-comment $4 --json",
        "comment-history $4",
        "comment-history $3 --json",
        "comments 70",
        "comments 70 --json",
        "comments 70 --tree",
        "lock-comments 70",
        "lock-comments 70 --json",
        "comment 1 70 Locked_out",
        "unlock-comments 70",
        "unlock-comments 70",
        "lock-comments 99",
        "changes",
        "changes --json",
        "verify",
        "export --comments -",
        "delete-post 2 70",
        "comments 70",
        "comments --by 2",
    ] {
        let (local, asked) = (here.run(line), there.run(line));
        assert_eq!(asked, local, "{line}");
    }
    assert_eq!(here.made.len(), 4);
    for side in [&mut here, &mut there] {
        let (status, compacted, _) = side.run("compact --json");
        assert_eq!((status, &compacted[..12]), (0, "{\"erased\":1,"));
    }
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn the_deepest_tree_is_read_whole() {
    let sandbox = Sandbox::new();
    sandbox.ok("post 2 --id 70");
    let server = Running::start(&sandbox, "");
    let mut above: Option<String> = None;
    for depth in 0..=51 {
        let mut body = json!({ "body": format!("{depth} up") });
        if let Some(above) = &above {
            body["reply_to"] = above.as_str().into();
        }
        let key = depth.to_string();
        let headers = [("Idempotency-Key", key.as_str())];
        let answer =
            server.ask("POST", "/v1/posts/70/comments", Some("1"), &headers, Some(&body.to_string()));
        assert_eq!(answer.status, if depth > 50 { 422 } else { 201 }, "{}", answer.body);
        above = answer.json()["id"].as_str().map(str::to_owned);
    }
    let line = "comments 70 --tree --depth 50 --json";
    let tree = sandbox.run(&format!("{line} {}", server.url()));
    server.end("TERM");
    assert_eq!((tree.status, &tree.stdout), (0, &sandbox.ok(line)));
    let page: Value = serde_json::from_str(&tree.stdout).unwrap();
    let mut node = &page["items"][0];
    while let Some(reply) = node["replies"].get(0) {
        node = reply;
    }
    assert_eq!((&node["body"], &node["depth"]), (&json!("50 up"), &json!(50)));
}

#[test]
fn exports_are_the_same_in_every_format() {
    let sandbox = Sandbox::new();
    sandbox.ok("post 2 --id 70");
    let server = Running::start(&sandbox, "");
    for number in 0..300 {
        let key = number.to_string();
        let text = json!({ "body": format!("{number}, \"quoted\"\n{}", "é".repeat(number)) }).to_string();
        let headers = [("Idempotency-Key", key.as_str())];
        let answer = server.ask("POST", "/v1/posts/70/comments", Some("1"), &headers, Some(&text));
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    let files = ["comments.csv", "comments.csv.gz", "comments.parquet"];
    for file in files {
        let run = sandbox.run(&format!("export --comments {file} --json {}", server.url()));
        assert!(run.stdout.contains("\"comments\":300"), "{run:?}");
    }
    assert_eq!(server.end("TERM").0, 0);
    for file in files {
        sandbox.ok(&format!("export --comments here-{file}"));
        let read = |name: &str| fs::read(sandbox.path(name)).unwrap();
        assert!(read(file) == read(&format!("here-{file}")), "{file}");
    }
}

#[test]
fn whoever_is_no_moderator_sees_tombstones_and_may_not_moderate() {
    let sandbox = Sandbox::new();
    let key = |scopes: &str, name: &str| {
        let made = sandbox.ok(&format!("keys add {name} --scopes {scopes} --file keys.toml"));
        sandbox.write(name, made.lines().next().unwrap());
    };
    key("read,write", "writer");
    key("read,write,moderate,admin", "moderator");
    sandbox.ok("post 2 --id 70");
    let server = Running::start(&sandbox, "--auth-keys keys.toml");
    let run = |line: &str, who: &str| sandbox.run(&format!("{line} --api-key-file {who} {}", server.url()));
    let made: Value = serde_json::from_str(&run("comment 1 70 spam --json", "writer").stdout).unwrap();
    let id = made["id"].as_str().unwrap();
    let refused = run(&format!("remove-comment {id} no"), "writer").failure(1);
    assert!(refused.contains("moderate"), "{refused}");
    assert!(run("compact", "writer").failure(1).contains("admin"));
    assert_eq!(run(&format!("remove-comment {id} advertising"), "moderator").status, 0);
    let seen = |who: &str| stable(&run("comments 70", who).stdout);
    assert_eq!(seen("writer"), "TIME  ID1  1  [removed]\n");
    assert_eq!(seen("moderator"), "TIME  ID1  1  [removed by key:moderator: advertising] spam\n");
    assert_eq!(run("compact", "moderator").status, 0);
    // More than a few comments a minute are refused, with authentication on.
    let statuses: Vec<i32> = (0..40)
        .map(|_| run("comment 9 70 again", "writer").status)
        .take_while(|&status| status == 0)
        .collect();
    assert!((20..40).contains(&statuses.len()), "{}", statuses.len());
}
