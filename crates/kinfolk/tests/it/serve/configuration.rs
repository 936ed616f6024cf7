//! Where settings come from, and what is said about them.

use std::fs;
use std::path::Path;

use super::running::Running;
use crate::support::{Sandbox, entries};

#[test]
fn the_effective_configuration_says_where_each_value_came_from() {
    let sandbox = Sandbox::new();
    sandbox
        .write("kinfolk.toml", "[http]\naddress = \"127.0.0.1:1\"\nthreads = 3\n\n[log]\nkeep = \"1 d\"\n");
    let mut command = sandbox.command(["config", "--log-keep", "2 d"]);
    command.env("KINFOLK_HTTP", "127.0.0.1:2");
    let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let line = |section: &str, key: &str| {
        let section = printed.lines().skip_while(|line| *line != format!("[{section}]"));
        let line = section.into_iter().find(|line| line.trim_start_matches("# ").starts_with(key)).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("http", "address"), "address = \"127.0.0.1:2\" # KINFOLK_HTTP");
    assert_eq!(line("http", "threads"), "threads = 3 # kinfolk.toml:3");
    assert_eq!(line("log", "keep ="), "keep = \"2 d\" # --log-keep");
    assert_eq!(line("graph", "following_limit"), "following_limit = 10000 # default");
    assert_eq!(line("tracing", "otlp_endpoint"), "# otlp_endpoint = \"\" # default");

    // What is printed is a configuration of the same meaning.
    sandbox.write("again.toml", &printed);
    let again = sandbox.ok("config --config again.toml --data ./kinfolk-data");
    let values = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split(" # ").next().unwrap().trim_end().to_owned()).collect()
    };
    assert_eq!(values(&again), values(&printed));
}

#[test]
fn the_file_counts_for_commands_too() {
    let sandbox = Sandbox::new();
    sandbox.write("kinfolk.toml", "[graph]\nfollowing_limit = 2\n[client]\njson = true\n");
    sandbox.ok("follow 1 2");
    assert!(sandbox.ok("follow 1 3").starts_with('{'));
    assert!(sandbox.fails("follow 1 4", 1).contains("already follows 2"));
}

#[test]
fn mistakes_are_told_by_line() {
    let sandbox = Sandbox::new();
    for (file, status, part) in [
        ("[http]\nadress = \"x\"\n", 2, "kinfolk.toml:2: http.adress is unknown"),
        ("[http]\n\naddress = \"x\"\n", 2, "kinfolk.toml:3: http.address is invalid"),
        ("[fleet]\n", 2, "kinfolk.toml:1: the section fleet is empty"),
    ] {
        sandbox.write("kinfolk.toml", file);
        let message = sandbox.fails("serve", status);
        assert!(message.contains(part), "{message}");
    }
    fs::remove_file(sandbox.path("kinfolk.toml")).unwrap();
    assert!(sandbox.fails("serve --config missing.toml", 1).contains("could not read missing.toml"));
    assert!(sandbox.fails("serve --http nowhere", 2).contains("expected an address"));
    assert!(sandbox.fails("serve --resp-unfinished-timeout 0", 2).contains("more than 0 s"));
    assert!(sandbox.fails("serve --role relay", 1).contains("not available"));
    assert!(sandbox.fails("serve --log-level shouting=loud", 2).contains("logging.level"));
}

#[cfg(not(feature = "fleet"))]
#[test]
fn a_binary_without_the_fleet_says_so() {
    let sandbox = Sandbox::new();
    let message = sandbox.fails("fleet init --shards 4", 1);
    assert!(message.contains("built without the fleet profile"), "{message}");
    let sandbox = Sandbox::configured("[fleet]\ncatalog = \"postgres://db/catalog\"\n");
    let message = sandbox.fails("serve", 1);
    assert!(message.starts_with("kinfolk.toml:2: this binary was built without"), "{message}");
}

#[test]
fn the_reference_is_up_to_date() {
    let sandbox = Sandbox::new();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating/configuration.md");
    let reference = sandbox.ok("config --reference");
    if std::env::var_os("KINFOLK_UPDATE_DOCS").is_some() {
        fs::write(&page, &reference).unwrap();
    }
    assert!(
        fs::read_to_string(page).unwrap_or_default() == reference,
        "run this test with KINFOLK_UPDATE_DOCS=1 to write docs/operating/configuration.md anew"
    );
}

#[test]
fn logs_can_be_json() {
    let sandbox = Sandbox::new();
    let server = Running::start(&sandbox, "--log-format json");
    let first: serde_json::Value = serde_json::from_str(&server.before[0]).unwrap();
    assert_eq!(first["message"], "loading");
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn origins_of_web_pages_are_checked_before_anything_is_done() {
    let sandbox = Sandbox::new();
    for origin in ["*", "null", "example.org", "https://example.org/", "https://example.org/a", "https://a,*"]
    {
        let message = sandbox.fails(&format!("serve --http-origins {origin}"), 2);
        assert!(message.contains("is not an origin"), "{message}");
        assert!(message.contains("https://example.org or http://localhost:3000"), "{message}");
    }
    sandbox.write("kinfolk.toml", "[http]\norigins = [\"https://example.org\", \"*\"]\n");
    let message = sandbox.fails("serve", 2);
    assert!(message.contains("kinfolk.toml:2: http.origins is invalid: \"*\" is not an origin"), "{message}");
    fs::remove_file(sandbox.path("kinfolk.toml")).unwrap();
    assert!(entries(&sandbox.path("")).is_empty());

    let server = Running::start(&sandbox, "--http-origins https://Example.org:443,http://localhost:3000");
    let origin = |origin| server.ask("GET", "/metrics", None, &[("Origin", origin)], None).status;
    assert_eq!(
        ["https://example.org", "http://localhost:3000", "https://evil.example"].map(origin),
        [200, 200, 403]
    );
    assert_eq!(server.end("TERM").0, 0);
}

#[test]
fn a_shared_secret_has_a_setting_of_its_own() {
    let sandbox = Sandbox::new();
    sandbox.write("secret", "0123456789abcdef0123456789abcdef");
    sandbox.write("keys.json", "\u{feff}{\"keys\":[]}");
    let tokens = "--auth-audience kinfolk --auth-algorithms HS256";
    for (flags, part) in [
        ("--auth-token-keys secret", "name a file with it in auth.token_secret"),
        ("--auth-token-secret keys.json", "a public key belongs in auth.token_keys"),
        ("--auth-token-secret missing", "missing: can't be read"),
    ] {
        let message = sandbox.fails(&format!("serve {tokens} {flags}"), 1);
        assert!(message.contains(part), "{message}");
    }
    let server = Running::start(&sandbox, &format!("{tokens} --auth-token-secret secret"));
    assert!(!server.ready.contains("authentication is off"), "{}", server.ready);
    assert_eq!(server.get("/v1/users/1/counts").status, 401);
    // A file that can't be a secret is logged, and the former secret stays in force.
    sandbox.write("secret", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7 somebody");
    let line = server.line_with("a changed file can't be used");
    assert!(line.contains("looks like an SSH key"), "{line}");
    server.signal("HUP");
    assert!(server.line_with("the old ones stay").contains("looks like an SSH key"));
    assert_eq!(server.end("TERM").0, 0);
}
