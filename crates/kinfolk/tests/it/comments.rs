//! Comment threads on a folder: what is printed, what is refused, what is exported.

use serde_json::Value;

use crate::support::{Run, Sandbox, stable};

/// User 2 has made post 70.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.ok("post 2 --id 70");
    sandbox
}

/// Writes a comment of one word; its id.
fn comment(sandbox: &Sandbox, line: &str) -> String {
    sandbox.json(&format!("comment {line}"))["id"].as_str().unwrap().to_owned()
}

/// Runs a command with arguments that have blanks in them.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    Run::from(sandbox.command(arguments).output().unwrap())
}

fn field<'a>(page: &'a Value, name: &str) -> Vec<&'a str> {
    page["items"].as_array().unwrap().iter().map(|item| item[name].as_str().unwrap_or_default()).collect()
}

#[test]
fn a_comment_is_printed_as_it_is_stored() {
    let sandbox = sandbox();
    let said = run(&sandbox, &["comment", "1", "70", "What a\nview!", "--key", "once"]);
    insta::assert_snapshot!(stable(&said.stdout), @r"
    TIME  ID1  1  What a view!
    token OPAQUE
    ");
    let again = run(&sandbox, &["comment", "1", "70", "What a\nview!", "--key", "once", "--json"]);
    insta::assert_snapshot!(stable(&again.stdout), @r#"{"changed":false,"token":"OPAQUE","id":"ID1","post":"70","author":"1","body":"What a\nview!","version":1,"created_at":"TIME","status":"active","depth":0,"reply_count":0}"#);
    let id = serde_json::from_str::<Value>(&again.stdout).unwrap()["id"].as_str().unwrap().to_owned();
    let read = sandbox.run_with_input(&format!("edit-comment 1 {id} 1 -"), "Read from\nstandard input\n");
    insta::assert_snapshot!(stable(&read.stdout), @r"
    TIME  ID1  1  Read from standard input (version 2)
    token OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok(&format!("comment-history {id}"))), @r"
    version 1, TIME
        What a
        view!
    version 2, TIME
        Read from
        standard input
    ");
    let same = run(&sandbox, &["comment", "1", "70", "What a\nview!", "--key", "once", "--json"]);
    assert_eq!(
        serde_json::from_str::<Value>(&same.stdout).unwrap()["body"],
        "What a\nview!",
        "a retry shows what was written first"
    );
}

#[test]
fn a_thread_is_read_in_both_orders_and_as_a_tree() {
    let sandbox = sandbox();
    let top = comment(&sandbox, "1 70 first");
    let reply = comment(&sandbox, &format!("2 70 second --reply-to {top}"));
    comment(&sandbox, &format!("3 70 third --reply-to {reply}"));
    comment(&sandbox, "4 70 fourth");
    comment(&sandbox, &format!("5 70 fifth --reply-to {top}"));
    insta::assert_snapshot!(stable(&sandbox.ok("comments 70")), @r"
    TIME  ID1  1  first
    TIME  ID2  2  second
    TIME  ID3  3  third
    TIME  ID4  4  fourth
    TIME  ID5  5  fifth
    ");
    let newest = sandbox.json("comments 70 --order newest --limit 2");
    let rest = format!("comments 70 --order newest --cursor {}", newest["next"].as_str().unwrap());
    assert_eq!(field(&newest, "body"), ["fifth", "fourth"]);
    assert_eq!(field(&sandbox.json(&rest), "body"), ["third", "second", "first"]);
    insta::assert_snapshot!(stable(&sandbox.ok("comments 70 --tree")), @r"
    TIME  ID1  1  first
    TIME  ID2    2  second
    TIME  ID3      3  third
    TIME  ID4    5  fifth
    TIME  ID5  4  fourth
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("comments 70 --tree --depth 1 --replies 1")), @r"
    TIME  ID1  1  first
    TIME  ID2    2  second
                                                                        … more with --cursor OPAQUE
                                                                      … more with --cursor OPAQUE
    TIME  ID3  4  fourth
    ");
    let tree = sandbox.json("comments 70 --tree --depth 1 --replies 1");
    let branch = tree["items"][0]["next"].as_str().unwrap();
    let on = sandbox.json(&format!("comments 70 --tree --cursor {branch}"));
    assert_eq!(field(&on, "body"), ["fifth"]);
    insta::assert_snapshot!(stable(&sandbox.ok("comments --by 3")), @"TIME  ID1  post 70  third");
    assert_eq!(sandbox.ok("comments --by 99"), "");
    assert_eq!(field(&sandbox.json("comments --by 2 --all"), "body"), ["second"]);
}

#[test]
fn what_is_taken_back_keeps_its_place() {
    let sandbox = sandbox();
    let ids: Vec<String> =
        ["one", "two", "three"].iter().map(|text| comment(&sandbox, &format!("1 70 {text}"))).collect();
    comment(&sandbox, &format!("2 70 reply --reply-to {}", ids[1]));
    insta::assert_snapshot!(stable(&sandbox.ok(&format!("delete-comment 1 {}", ids[0]))), @r"
    comment ID1 is deleted
    token OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok(&format!("delete-comment 1 {}", ids[0]))), @r"
    comment ID1 was gone before
    token OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok(&format!("remove-comment {} spam", ids[1]))), @r"
    comment ID1 is removed
    token OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok(&format!("purge-comment {} --moderator 8", ids[2]))), @r"
    comment ID1 is purged
    token OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("comments 70 --tree")), @r"
    TIME  ID1  1  [deleted] one
    TIME  ID2  1  [removed: spam] two
    TIME  ID3    2  reply
    TIME  ID4  1  [purged by user:8]
    ");
    let purged = &sandbox.json("comments 70")["items"][2];
    assert_eq!((&purged["status"], purged.get("body")), (&Value::from("purged"), None));
    assert_eq!(purged["removed_by"], "user:8");
    insta::assert_snapshot!(stable(&sandbox.ok("lock-comments 70")), @r"
    the thread of post 70 is locked
    token OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("lock-comments 70")), @r"
    the thread of post 70 was already locked
    token OPAQUE
    ");
    let refused = sandbox.fails("comment 1 70 late", 1);
    assert!(refused.contains("locked"), "{refused}");
    insta::assert_snapshot!(stable(&sandbox.ok("unlock-comments 70")), @r"
    the thread of post 70 is open
    token OPAQUE
    ");
    comment(&sandbox, "1 70 late");
    insta::assert_snapshot!(stable(&sandbox.ok("changes")), @r"
     0-1  TIME  post               70 by 2
     0-2  TIME  comment            ID1 by 1 on post 70
     0-3  TIME  comment            ID2 by 1 on post 70
     0-4  TIME  comment            ID3 by 1 on post 70
     0-5  TIME  comment            ID4 by 2 on post 70
     0-6  TIME  comment_deleted    ID1 by 1 on post 70
     0-7  TIME  comment_removed    ID2 by 1 on post 70
     0-8  TIME  comment_purged     ID3 by 1 on post 70, moderated by user:8
     0-9  TIME  comments_locked    post 70
    0-10  TIME  comments_unlocked  post 70
    0-11  TIME  comment            ID5 by 1 on post 70
    next OPAQUE
    ");
    assert_eq!(sandbox.json("compact")["erased"], 1);
    assert_eq!(sandbox.json("compact")["erased"], 0);
    assert_eq!(sandbox.json("verify")["difference_count"], 0);
}

#[test]
fn refusals_say_why() {
    let sandbox = sandbox();
    let id = comment(&sandbox, "1 70 text");
    let gone = comment(&sandbox, "1 70 gone");
    let purged = comment(&sandbox, "1 70 purged");
    comment(&sandbox, "1 70 once --key once");
    sandbox.ok("post 2 --id 71");
    sandbox.ok(&format!("delete-comment 1 {gone}"));
    sandbox.ok(&format!("purge-comment {purged}"));
    let unknown = "00000000-0000-7000-8000-000000000000";
    for (line, status, reason) in [
        ("comment 1 99 text".to_owned(), 1, "no post 99"),
        ("comment 1 70 other --key once".to_owned(), 1, "key"),
        (format!("comment 1 70 text --reply-to {unknown}"), 1, "no such comment in this thread"),
        (format!("comment 1 71 text --reply-to {id}"), 1, "no such comment in this thread"),
        (format!("comment 1 70 text --reply-to {gone}"), 1, "cannot reply to"),
        (format!("edit-comment 1 {id} 2 text"), 1, "version"),
        (format!("edit-comment 2 {id} 1 text"), 1, "only its author may edit"),
        (format!("edit-comment 1 {gone} 1 text"), 1, "deleted"),
        (format!("edit-comment 1 {unknown} 1 text"), 1, "there is no comment"),
        (format!("delete-comment 2 {id}"), 1, "only its author may delete"),
        (format!("remove-comment {unknown} spam"), 1, "no comment"),
        (format!("comment-history {purged}"), 1, "deleted"),
        ("comments 99".to_owned(), 1, "no post 99"),
        ("lock-comments 99".to_owned(), 1, "no post 99"),
        ("comments 70 --cursor forged".to_owned(), 2, "cursor"),
        ("comments 70 --data nowhere".to_owned(), 1, "there is no store in nowhere"),
        ("compact --data nowhere".to_owned(), 1, "there is no store in nowhere"),
    ] {
        let said = sandbox.fails(&line, status);
        assert!(said.contains(reason), "{line}: {said}");
    }
    for line in [
        "comment 1 70",
        "comment 1 70 text --reply-to 7",
        "comment 1 70 text --key é",
        "edit-comment 1 7 1 text",
        "delete-comment 1",
        "purge-comment 70",
        "comments",
        "comments 70 --by 1",
        "comments 70 --order first",
        "comments 70 --order newest --tree",
        "comments 70 --depth 2",
        "comments 70 --tree --depth 51",
        "comments 70 --tree --replies 0",
    ] {
        assert_eq!(sandbox.run(line).status, 2, "{line}");
    }
    assert_eq!(sandbox.run(&format!("edit-comment 1 {id} 0 text")).status, 2);
    for text in [" ", "\r\n\t", "a\u{7}b", "a\u{1b}[31m", "\u{200b}\u{7f}"] {
        let said = run(&sandbox, &["comment", "1", "70", text]).failure(2);
        assert!(said.starts_with("a comment "), "{said}");
    }
    let long = sandbox.run_with_input("comment 1 70 -", "é".repeat(10_001)).failure(2);
    assert!(long.contains("at most 10000 characters"), "{long}");
    assert_eq!(sandbox.run_with_input("comment 1 70 -", "é".repeat(10_000)).status, 0);
}

/// Lines are for people and have no control characters; JSON and files that are piped on have every byte.
#[test]
fn odd_texts_are_kept_and_printed_harmlessly() {
    let sandbox = sandbox();
    let written = run(&sandbox, &["comment", "1", "70", "one\r\ntwo \u{9b}31m\u{7f}\u{202e}é", "--json"]);
    let written: Value = serde_json::from_str(&written.stdout).unwrap();
    let kept = "one\ntwo \u{9b}31m\u{7f}\u{202e}é";
    assert_eq!(written["body"], kept);
    let id = written["id"].as_str().unwrap();
    for line in ["comments 70", "comments 70 --tree", "comments --by 1", &format!("comment-history {id}")] {
        let printed = sandbox.ok(line);
        assert!(!printed.chars().any(|letter| letter.is_control() && letter != '\n'), "{line}: {printed:?}");
        assert!(printed.contains("two \u{fffd}31m\u{fffd}\u{202e}é"), "{line}: {printed:?}");
        let json = sandbox.ok(&format!("{line} --json"));
        assert!(json.contains("two \u{9b}31m\u{7f}\u{202e}é"), "{line}: {json:?}");
    }
    assert!(sandbox.ok("export --comments -").contains(&format!("\"{kept}\"")));
    sandbox.ok("export --comments comments.parquet");
    assert_eq!(parquet_column(&sandbox, "body"), [kept]);
}

#[test]
fn settings_bound_texts_and_depth() {
    let sandbox = sandbox();
    sandbox.write("kinfolk.toml", "[comments]\nbody_chars_max = 5\ndepth_max = 1\n");
    let top = comment(&sandbox, "1 70 12345");
    assert!(sandbox.fails("comment 1 70 123456", 2).contains("at most 5 characters"));
    let reply = comment(&sandbox, &format!("1 70 below --reply-to {top}"));
    let refused = sandbox.fails(&format!("comment 1 70 below --reply-to {reply}"), 1);
    assert!(refused.contains("cannot reply to"), "{refused}");
    sandbox.write("kinfolk.toml", "[comments]\ndepth_max = 51\n");
    assert!(sandbox.fails("comments 70", 2).contains("from 0 to 50"));
}

#[test]
fn comments_are_exported_and_backed_up() {
    let sandbox = sandbox();
    sandbox.ok("post 3 --id 5");
    let first = run(&sandbox, &["comment", "1", "70", "said \"so\", twice\nand again", "--json"]);
    let first: Value = serde_json::from_str(&first.stdout).unwrap();
    let first = first["id"].as_str().unwrap();
    let gone = comment(&sandbox, &format!("2 70 gone --reply-to {first}"));
    comment(&sandbox, "3 5 elsewhere");
    let purged = comment(&sandbox, "3 5 secret");
    sandbox.ok(&format!("edit-comment 2 {gone} 1 changed"));
    sandbox.ok(&format!("remove-comment {gone} spam --moderator 8"));
    sandbox.ok(&format!("purge-comment {purged}"));
    let text = sandbox.ok("export --comments -");
    insta::assert_snapshot!(stable(&text).replace(first, "FIRST"), @r#"
    id,parent_kind,parent,author,reply_to,depth,created_at,version,edited_at,status,body,reason,removed_by
    ID1,post,5,3,,0,TIME,1,,active,elsewhere,,
    ID2,post,5,3,,0,TIME,1,,purged,,,
    ID3,post,70,1,,0,TIME,1,,active,"said ""so"", twice
    and again",,
    ID4,post,70,2,ID3,1,TIME,2,TIME,removed,changed,spam,user:8
    "#);
    assert_eq!(sandbox.json("export --comments comments.csv.zst")["comments"], 4);
    let unpacked = zstd::decode_all(std::fs::File::open(sandbox.path("comments.csv.zst")).unwrap()).unwrap();
    assert_eq!(String::from_utf8(unpacked).unwrap(), text);
    sandbox.ok("export comments.parquet --comments");
    assert_eq!(
        parquet_column(&sandbox, "body"),
        ["elsewhere", "", "said \"so\", twice\nand again", "changed"]
    );
    assert_eq!(parquet_column(&sandbox, "status"), ["active", "purged", "active", "removed"]);
    assert_eq!(parquet_column(&sandbox, "author"), ["3", "3", "1", "2"]);
    assert_eq!(parquet_column(&sandbox, "removed_by"), ["", "", "", "user:8"]);

    let backup = sandbox.json("backup graph.backup");
    assert_eq!((&backup["posts"], &backup["comments"]), (&Value::from(2), &Value::from(4)));
    sandbox.ok("restore graph.backup --data restored");
    assert_eq!(sandbox.ok("export --comments - --data restored"), text);
    assert_eq!(sandbox.json("verify --data restored")["difference_count"], 0);
}

#[test]
fn users_and_posts_may_have_uuids() {
    let sandbox = Sandbox::new();
    let [author, post] = ["a5b", "a5c"].map(|end| format!("0190a1b2-c3d4-4e5f-8a9b-0c1d2e3f4{end}"));
    sandbox.ok(&format!("post {author} --id {post} --ids uuid"));
    comment(&sandbox, &format!("{author} {post} text"));
    sandbox.ok("export --comments comments.parquet");
    assert_eq!(parquet_column(&sandbox, "author"), [author.as_str()]);
    assert_eq!(parquet_column(&sandbox, "parent"), [post.as_str()]);
    assert_eq!(field(&sandbox.json(&format!("comments --by {author}")), "post"), [post.as_str()]);
    let refused = sandbox.fails("comments 70", 2);
    assert!(refused.contains("uuid"), "{refused}");
}

/// The values of a column of `comments.parquet`, as text; what is missing is empty.
fn parquet_column(sandbox: &Sandbox, name: &str) -> Vec<String> {
    use parquet::file::reader::FileReader;
    use parquet::record::Field;
    let file = std::fs::File::open(sandbox.path("comments.parquet")).unwrap();
    let reader = parquet::file::serialized_reader::SerializedFileReader::new(file).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    let value = |row: parquet::record::Row| {
        let column = row.get_column_iter().find(|(column, _)| *column == name).unwrap();
        match column.1 {
            Field::Null => String::new(),
            Field::Str(text) => text.clone(),
            other => other.to_string(),
        }
    };
    rows.map(|row| value(row.unwrap())).collect()
}
