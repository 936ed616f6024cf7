//! Flags of single commands from variables and the file.

use crate::support::{Run, Sandbox};

fn run_with(sandbox: &Sandbox, variables: &[(&str, &str)], line: &str) -> Run {
    let mut command = sandbox.command(line.split_whitespace());
    Run::from(command.envs(variables.iter().copied()).output().unwrap())
}

/// A graph in which user 1 follows three users.
fn three_followees(file: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("edges.csv", "1,2\n1,3\n1,4\n");
    sandbox.ok("import edges.csv");
    sandbox.write("kinfolk.toml", file);
    sandbox
}

#[test]
fn a_flag_beats_a_variable_beats_the_file() {
    let sandbox = three_followees("[followers]\nlimit = 7\n\n[following]\nlimit = 1\n");
    let variable = [("KINFOLK_COMMAND_FOLLOWING_LIMIT", "2")];
    let count = |run: Run| {
        assert_eq!(run.status, 0, "{run:?}");
        run.stdout.lines().count()
    };
    assert_eq!(count(run_with(&sandbox, &[], "following 1")), 1);
    assert_eq!(count(run_with(&sandbox, &variable, "following 1")), 2);
    assert_eq!(count(run_with(&sandbox, &variable, "following 1 --limit 3")), 3);
    assert_eq!(count(run_with(&sandbox, &[("KINFOLK_COMMAND_FOLLOWING_LIMIT", "")], "following 1")), 1);
    // What excludes a value beats it in the same order.
    assert_eq!(count(run_with(&sandbox, &variable, "following 1 --all")), 3);
    assert_eq!(count(run_with(&sandbox, &[("KINFOLK_FOLLOWING_ALL", "yes")], "following 1")), 3);
    assert_eq!(count(run_with(&sandbox, &[("KINFOLK_FOLLOWING_ALL", "yes")], "following 1 --all=false")), 1);
    assert_eq!(count(run_with(&sandbox, &[("KINFOLK_FOLLOWING_ALL", "no")], "following 1")), 1);
    // The variable of the server's setting is another one.
    assert_eq!(count(run_with(&sandbox, &[("KINFOLK_FOLLOWING_LIMIT", "3")], "following 1")), 1);
}

#[test]
fn switches_and_required_flags_can_come_from_the_file() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "kinfolk.toml",
        "[import]\nskip_invalid = true\n\
         [generate]\nedges = 20\nusers = 10\n\
         [keys]\nfile = \"keys.toml\"\n[keys.add]\nscopes = [\"read\", \"write\"]\n\
         [comments]\ndepth = 2\nby = \"1\"\n\
         [fleet.init]\nshards = 64\n",
    );
    sandbox.write("edges.csv", "1,2\nbad\n");
    assert_eq!(sandbox.json("import edges.csv")["invalid"], 1);
    assert!(sandbox.fails("import edges.csv --skip-invalid=false", 1).contains("edges.csv:2: "));
    assert_eq!(sandbox.ok("generate -").lines().count(), 21);
    assert_eq!(sandbox.ok("generate - --edges 5").lines().count(), 6);
    sandbox.ok("keys add feed-service");
    assert_eq!(sandbox.json("keys list")["items"][0]["scopes"], serde_json::json!(["read", "write"]));

    // A depth in the file does not demand a tree, and a post that is typed excludes the author in the file.
    sandbox.ok("post 1 --id 5");
    sandbox.ok("comment 2 5 hello");
    assert_eq!(sandbox.json("comments 5")["items"].as_array().unwrap().len(), 1);
    assert_eq!(sandbox.json("comments")["items"].as_array().unwrap().len(), 0);
    assert!(sandbox.fails("comments 5 --depth 1", 2).contains("--tree"));
}

#[test]
fn mistakes_name_their_source() {
    let sandbox = Sandbox::new();
    for (file, part) in [
        (
            "[import]\nlimits = 5\n",
            "kinfolk.toml:2: import.limits is unknown; import has skip_invalid, limit",
        ),
        ("[import]\n\nlimit = \"x\"\n", "kinfolk.toml:3: import.limit is invalid: expected a whole number"),
        ("[followers]\nlimit = 0\n", "kinfolk.toml:2: followers.limit is invalid: 0 is not in 1..=1000"),
        ("[import]\nskip_invalid = \"perhaps\"\n", "import.skip_invalid is invalid: expected true or false"),
        ("[imports]\n", "kinfolk.toml:1: the section imports is unknown"),
        ("[keys.ad]\nscopes = \"read\"\n", "kinfolk.toml:1: keys.ad is unknown; keys has file, add"),
        ("[keys.add]\nscope = \"read\"\n", "kinfolk.toml:2: keys.add.scope is unknown; keys.add has scopes"),
        ("[keys.add]\nscopes = [\"x\"]\n", "kinfolk.toml:2: keys.add.scopes is invalid: the scopes are"),
        (
            "[followers]\nall = true\nlimit = 5\n",
            "followers.limit (kinfolk.toml:3) and followers.all (kinfolk.toml:2)",
        ),
    ] {
        sandbox.write("kinfolk.toml", file);
        let message = sandbox.fails("followers 1", 2);
        assert!(message.contains(part), "{file:?}: {message}");
    }
    sandbox.write("kinfolk.toml", "");
    let message = run_with(&sandbox, &[("KINFOLK_FOLLOWERS_LIMIT", "many")], "followers 1").failure(2);
    assert_eq!(message, "KINFOLK_FOLLOWERS_LIMIT: invalid value 'many': expected a whole number");
}

#[test]
fn the_configuration_shows_them() {
    let sandbox = Sandbox::new();
    sandbox.write("kinfolk.toml", "[import]\nskip_invalid = true\n[suggest]\nkeep = 7\nafresh = true\n");
    let run = run_with(&sandbox, &[("KINFOLK_KEYS_ADD_SCOPES", "read,write")], "config");
    for line in [
        "skip_invalid = true                              # kinfolk.toml:2\n",
        "keep = 7                                         # kinfolk.toml:4\n",
        "\n[keys.add]\nscopes = \"read,write\"                            # KINFOLK_KEYS_ADD_SCOPES\n",
    ] {
        assert_eq!(run.stdout.matches(line).count(), 1, "{line}{}", run.stdout);
    }
    sandbox.write("kinfolk.toml", &run.stdout);
    let printed = sandbox.json("config");
    let item = |key: &str| {
        let mut items = printed["items"].as_array().unwrap().iter();
        items.find(|item| item["key"] == key).cloned().unwrap_or_default()
    };
    assert_eq!(item("import.skip_invalid")["value"], true);
    assert_eq!(item("keys.add.scopes")["value"], "read,write");
    assert_eq!(item("suggest.keep")["value"], 7);
    assert_eq!(item("http.address")["value"], "127.0.0.1:7400");
    assert_eq!(item("tls.key")["value"], serde_json::Value::Null);
    assert_eq!(item("data.folder")["origin"], "KINFOLK_DATA");
}

#[test]
fn a_token_can_be_a_variable() {
    let sandbox = Sandbox::new();
    let token = sandbox.json("follow 1 2")["token"].as_str().unwrap().to_owned();
    assert_eq!(run_with(&sandbox, &[("KINFOLK_TOKEN", &token)], "check 1 2").status, 0);
    assert!(run_with(&sandbox, &[("KINFOLK_TOKEN", "made-up")], "check 1 2").failure(2).contains("token"));
}
