//! What the section fleet may say, and what is never printed of it. Needs no database.

use std::path::Path;

use crate::support::Sandbox;

const FLEET: &str = "[fleet]\ncatalog = \"postgres://me:secret@127.0.0.1:1/catalog\"\n\
                     [fleet.hosts]\na = \"host=127.0.0.1 port=1 password=secret\"\n";
const KAFKA: &str = "[kafka]\nsasl = \"plain\"\nusername = \"me\"\npassword = \"secret\"\n";

#[test]
fn passwords_are_not_printed() {
    let sandbox = Sandbox::configured(&format!("{FLEET}{KAFKA}"));
    let printed = sandbox.ok("config");
    assert!(printed.contains("password = \"***\""), "{printed}");
    assert!(printed.contains("catalog = \"postgres://me:***@127.0.0.1:1/catalog\""), "{printed}");
    assert!(printed.contains("hosts = { \"a\" = \"host=127.0.0.1 port=1 password=***\" }"), "{printed}");
    for line in ["serve --http 127.0.0.1:0 --resp 127.0.0.1:0", "fleet init", "fleet status"] {
        let run = sandbox.run(line);
        let message = run.stderr;
        assert_eq!(run.status, 1, "{line}: {message}");
        assert!(message.contains("the catalog") && message.contains("unreachable"), "{line}: {message}");
        assert!(!message.contains("secret"), "{line}: {message}");
    }
    let mut command = sandbox.command(["config"]);
    let output = command.env("KINFOLK_FLEET_HOSTS", "a=host=db password=secret; secret").output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("KINFOLK_FLEET_HOSTS: invalid value: expected"), "{message}");
    assert!(!message.contains("secret"), "{message}");
}

#[test]
fn a_connection_string_that_is_none_is_refused() {
    let sandbox = Sandbox::configured("[fleet]\ncatalog = \"secret\"\nhosts = { a = \"x\" }\n");
    let message = sandbox.fails("fleet status", 1);
    assert!(message.contains("the connection string of the catalog is invalid"), "{message}");
    assert!(!message.contains("secret"), "{message}");
}

#[test]
fn a_password_in_the_wrong_place_is_not_printed() {
    for (file, status, part) in [
        (
            "[fleet]\ncatalog = \"host=db password=my secret\"\nhosts = { a = \"x\" }\n",
            1,
            "of the catalog is invalid",
        ),
        (
            "[fleet]\ncatalog = \"host=db password=my secret=1\"\nhosts = { a = \"x\" }\n",
            1,
            "with single quotes",
        ),
        (
            "[fleet]\n\"postgres://me:secret@db/a\" = \"a\"\n",
            2,
            "kinfolk.toml:2: fleet.(not a name) is unknown",
        ),
        ("[fleet.\"postgres://me:secret@db/a\"]\n", 2, "fleet.(not a name) is unknown"),
        ("[\"postgres://me:secret@db/a\"]\na = 1\n", 2, "the section (not a name) is unknown"),
        ("\"postgres://me:secret@db/a\" = 1\n", 2, "(not a name) is outside of a section"),
        (
            "[fleet]\ncatalog = \"host=db\"\n[fleet.hosts]\n\"postgres://me:secret@db/a\" = \"a\"\n",
            2,
            "a name has letters",
        ),
        ("[fleet]\ncatalog = postgres://me:secret@db/a\n", 2, "kinfolk.toml:2: "),
    ] {
        let message = Sandbox::configured(file).fails("fleet status", status);
        assert!(message.contains(part) && !message.contains("secret"), "{file}: {message}");
    }
}

#[test]
fn a_fleet_and_a_folder_exclude_each_other() {
    let sandbox = Sandbox::configured(FLEET);
    for line in ["serve --data elsewhere", "check 1 2 --data elsewhere"] {
        let message = sandbox.fails(line, 2);
        assert!(message.starts_with("--data names a folder and kinfolk.toml:2 a fleet"), "{message}");
    }
    sandbox.write("kinfolk.toml", format!("[data]\nfolder = \"elsewhere\"\n{FLEET}"));
    let message = sandbox.fails("serve", 2);
    assert!(message.starts_with("kinfolk.toml:2 names a folder and kinfolk.toml:4 a fleet"), "{message}");
}

#[test]
fn half_a_fleet_is_refused() {
    for (file, part) in [
        ("[fleet]\n", "kinfolk.toml:1: the section fleet is empty"),
        ("[fleet]\ncatalog = \"host=db\"\n", "kinfolk.toml:2: fleet.catalog needs fleet.hosts"),
        ("[fleet]\nhosts = { a = \"host=db\" }\n", "kinfolk.toml:2: fleet.hosts needs fleet.catalog"),
        ("[fleet]\ncatalog = \"\"\nhost = \"db\"\n", "kinfolk.toml:3: fleet.host is unknown"),
    ] {
        let message = Sandbox::configured(file).fails("serve", 2);
        assert!(message.contains(part), "{message}");
    }
    let message = Sandbox::configured("").fails("fleet status", 2);
    assert!(message.contains("no fleet is configured"), "{message}");
}

#[test]
fn commands_that_need_a_folder_say_so() {
    let sandbox = Sandbox::configured(FLEET);
    for line in ["restore some.backup", "apply"] {
        let message = sandbox.fails(line, 2);
        assert!(message.contains("the configuration names a fleet, which has none"), "{line}: {message}");
    }
    // Others ask a server.
    let message = sandbox.fails("check 1 2 --url http://127.0.0.1:1", 1);
    assert!(message.contains("no server answers at http://127.0.0.1:1"), "{message}");
    // Its graph has a kind of ids already.
    sandbox.write("edges.csv", "1,2\n");
    for line in ["import edges.csv", "check 1 2"] {
        let message = sandbox.fails(&format!("{line} --ids uuid --url http://127.0.0.1:1"), 2);
        assert!(message.starts_with("--ids chooses the kind of ids of a new graph"), "{line}: {message}");
    }
}

#[test]
fn roles_that_are_not_there_yet_are_refused() {
    let sandbox = Sandbox::configured(FLEET);
    assert!(sandbox.fails("serve --role relay", 2).contains("the role relay needs kafka.brokers"));
    for role in ["fan-out", "suggest"] {
        let message = sandbox.fails(&format!("serve --role {role}"), 1);
        assert!(message.contains("not available"), "{message}");
    }
    let limits = sandbox.fails("serve --fleet-log-changes 10 --fleet-log-changes-max 10", 2);
    assert!(limits.contains("must be above fleet.log_changes"), "{limits}");
    assert!(sandbox.fails("serve --role king", 2).contains("expected one of all, api"));
}

#[test]
fn the_container_files_name_settings_that_exist() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    for (file, separator, count) in [("compose.yaml", ": ", 7), ("Dockerfile", "=", 4)] {
        let text = std::fs::read_to_string(deploy.join(file)).unwrap();
        let lines = text.lines().map(|line| line.trim().trim_start_matches("ENV ").trim_end_matches(" \\"));
        let variables: Vec<(&str, &str)> = lines
            .filter(|line| line.starts_with("KINFOLK_"))
            .filter_map(|line| line.split_once(separator))
            .collect();
        assert_eq!(variables.len(), count, "{file}: {variables:?}");
        let sandbox = Sandbox::configured("");
        let output = sandbox.command(["config"]).envs(variables.iter().copied()).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        for (name, _) in variables {
            assert!(
                printed.lines().any(|line| line.ends_with(&format!("# {name}"))),
                "{file}: {name}: {printed}"
            );
        }
    }
}
