//! Posts and feeds on a folder: what is printed, and what is refused.

use serde_json::Value;

use crate::support::{Sandbox, stable};

/// User 1 follows 2 and 3, who have posted.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    for line in [
        "post 2 --id 20 --at 2026-01-01T00:00:00Z",
        "post 3 --id 30 --at 2026-01-02T00:00:00Z --payload {\"title\":\"three\"}",
        "post 2 --id 21 --at 2026-01-03T00:00:00Z",
        "post 4 --id 40 --at 2026-01-04T00:00:00Z",
        "follow 1 2",
        "follow 1 3",
    ] {
        sandbox.ok(line);
    }
    sandbox
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[test]
fn a_post_is_printed_as_it_is_stored() {
    let sandbox = Sandbox::new();
    insta::assert_snapshot!(stable(&sandbox.ok("post 1 --id 7 --at 5 --payload {\"a\":1.10}")), @r#"
    TIME  7  1  {"a":1.10}
    token OPAQUE
    "#);
    insta::assert_snapshot!(stable(&sandbox.ok("post 1 --id 7 --payload {\"a\":1.10}")), @r#"
    there already: TIME  7  1  {"a":1.10}
    token OPAQUE
    "#);
    insta::assert_snapshot!(stable(&sandbox.ok("post 1 --id 8 --json")), @r#"{"changed":true,"token":"OPAQUE","id":"8","author":"1","created_at":"TIME"}"#);
    let made = sandbox.json("post 1 --key once");
    let again = sandbox.json("post 1 --key once");
    assert_eq!((&made["changed"], &again["changed"]), (&Value::Bool(true), &Value::Bool(false)));
    assert_eq!(made["id"], again["id"]);
    let id = |made: &Value| made["id"].as_str().unwrap().parse::<u64>().unwrap();
    assert!(id(&sandbox.json("post 1")) > id(&made), "ids that are made rise");
}

#[test]
fn a_feed_is_what_those_posted_whom_a_user_follows() {
    let sandbox = sandbox();
    insta::assert_snapshot!(sandbox.ok("feed 1"), @r#"
    2026-01-03T00:00:00.000Z  21  2
    2026-01-02T00:00:00.000Z  30  3  {"title":"three"}
    2026-01-01T00:00:00.000Z  20  2
    "#);
    insta::assert_snapshot!(sandbox.ok("posts 3 --json"), @r#"{"items":[{"id":"30","author":"3","created_at":"2026-01-02T00:00:00.000Z","payload":{"title":"three"}}]}"#);
    let page = sandbox.json("feed 1 --limit 2");
    let rest = sandbox.json(&format!("feed 1 --cursor {}", page["next"].as_str().unwrap()));
    assert_eq!((ids(&page), ids(&rest)), (vec!["21", "30"], vec!["20"]));
    assert_eq!(ids(&sandbox.json("feed 1 --all")).len(), 3);

    insta::assert_snapshot!(stable(&sandbox.ok("delete-post 2 21")), @r"
    post 21 is deleted
    token OPAQUE
    ");
    insta::assert_snapshot!(stable(&sandbox.ok("delete-post 2 21")), @r"
    post 21 was deleted before
    token OPAQUE
    ");
    sandbox.ok("unfollow 1 3");
    assert_eq!(ids(&sandbox.json("feed 1")), ["20"]);
    sandbox.ok("follow 1 4");
    assert_eq!(ids(&sandbox.json("feed 1")), ["40", "20"]);
    assert_eq!(sandbox.ok("feed 99"), "");
}

#[test]
fn refusals_say_why() {
    let sandbox = sandbox();
    sandbox.ok("delete-post 2 21");
    for (line, status, reason) in [
        ("post 3 --id 20", 1, "registered with different contents"),
        ("post 2 --id 21", 1, "was deleted"),
        ("post 2 --payload {a", 2, "not valid JSON"),
        ("post 2 --at 2999-01-01T00:00:00Z", 1, "5 minutes in the future"),
        ("delete-post 3 20", 1, "only its author"),
        ("delete-post 2 99", 1, "there is no post 99"),
        ("feed 1 --cursor forged", 2, "cursor"),
        ("feed 1 --cursor -forged", 2, "cursor is not valid"),
        ("posts 1 --data nowhere", 1, "there is no store in nowhere"),
    ] {
        let said = sandbox.fails(line, status);
        assert!(said.contains(reason), "{line}: {said}");
    }
    for line in ["post 2 --at yesterday", "post 2 --key é", "post x", "delete-post 2", "feed 1 --limit 0"] {
        assert_eq!(sandbox.run(line).status, 2, "{line}");
    }
}

#[test]
fn the_threshold_decides_how_posts_are_delivered_and_changes_nothing_else() {
    let sandbox = Sandbox::new();
    sandbox.write("kinfolk.toml", "[feed]\nfan_out_threshold = 2\ninbox_entries = 1\n");
    for line in
        ["follow 1 9", "post 9 --id 1", "follow 2 9", "post 9 --id 2", "unfollow 2 9", "post 9 --id 3"]
    {
        sandbox.ok(line);
    }
    let changes = sandbox.json("changes");
    let deliveries: Vec<&str> =
        changes["items"].as_array().unwrap().iter().filter_map(|item| item["delivery"].as_str()).collect();
    assert_eq!(deliveries, ["push", "pull", "push"]);
    assert_eq!(ids(&sandbox.json("feed 1")), ["3", "2", "1"]);
}
