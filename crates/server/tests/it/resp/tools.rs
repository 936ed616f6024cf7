//! What tools ask for: connections, the slow log, all keys, the documentation of commands, the state of the server.

use std::collections::BTreeSet;
use std::time::Duration;

use kinfolk_core::Id;
use kinfolk_server::resp::RespSettings;
use kinfolk_server::resp::table::Command;

use super::super::store::WatchedStore;
use super::access::{guarded, token};
use super::client::Client;
use super::server::{Server, Setup};

/// The lines of `CLIENT LIST`.
fn listed(client: &mut Client, command: &str) -> Vec<String> {
    let reply = client.call(command);
    reply.trim_matches('"').split("\\n").filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn field<'a>(line: &'a str, name: &str) -> &'a str {
    line.split(' ')
        .find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
        .unwrap_or_else(|| panic!("{name}: {line}"))
}

#[test]
fn all_connections_are_listed() {
    let server = Server::start();
    let (mut one, mut two) = (server.connect(), server.connect());
    one.call("CLIENT SETNAME first");
    two.call("CLIENT SETINFO LIB-NAME redis-py");
    two.call("CLIENT SETINFO LIB-VER 5.0.1");
    two.call("MULTI");
    two.call("PING");
    let lines = listed(&mut one, "CLIENT LIST");
    assert_eq!(lines.len(), 2, "{lines:?}");
    let by_name = |name: &str| lines.iter().find(|line| field(line, "name") == name).unwrap();
    let (first, other) = (by_name("first"), by_name(""));
    assert_eq!(field(first, "addr"), one.stream.local_addr().unwrap().to_string());
    assert_eq!(field(first, "laddr"), server.address.to_string());
    assert_eq!([field(first, "flags"), field(first, "multi"), field(first, "user")], ["N", "-1", "default"]);
    assert_eq!([field(other, "flags"), field(other, "multi"), field(other, "cmd")], ["x", "1", "ping"]);
    assert_eq!([field(other, "lib-name"), field(other, "lib-ver")], ["redis-py", "5.0.1"]);
    assert_eq!(field(first, "redir"), "-1");
    for (mode, flags) in [("", "t"), (" BCAST", "tB")] {
        let mut tracking = server.connect();
        tracking.hello_three();
        assert_eq!(tracking.call(&format!("CLIENT TRACKING ON{mode}")), "+OK");
        let line = listed(
            &mut one,
            &format!("CLIENT LIST ID {}", tracking.call("CLIENT ID").trim_start_matches(':')),
        );
        assert_eq!([field(&line[0], "flags"), field(&line[0], "redir")], [flags, "0"], "{line:?}");
        tracking.call("QUIT");
        while listed(&mut one, "CLIENT LIST").len() > 2 {}
    }
    for name in ["id", "age", "idle", "db", "sub", "psub", "resp"] {
        field(other, name).parse::<u64>().unwrap_or_else(|_| panic!("{name}: {other}"));
    }
    let id = one.call("CLIENT ID");
    assert_eq!(
        listed(&mut one, &format!("CLIENT LIST ID {id} 999"))[0].split(' ').next(),
        Some(&*format!("id={id}"))
    );
    assert_eq!(listed(&mut one, "CLIENT LIST TYPE pubsub"), [""; 0]);
    assert_eq!(listed(&mut one, "CLIENT LIST TYPE normal").len(), 2);
    drop(two);
    while listed(&mut one, "CLIENT LIST").len() > 1 {}
}

#[test]
fn callers_list_and_end_their_own_connections() {
    let guarded = guarded(RespSettings { threads: 1, ..RespSettings::default() });
    let mut users = [7, 7, 8].map(|user| {
        let mut client = guarded.server.connect();
        assert_eq!(client.call(&format!("AUTH {}", token(user))), "+OK");
        client
    });
    let mut service = guarded.server.connect();
    assert_eq!(service.call(&format!("AUTH {}", guarded.reader)), "+OK");
    let lines = listed(&mut users[0], "CLIENT LIST");
    assert_eq!(lines.iter().map(|line| field(line, "user")).collect::<Vec<_>>(), ["7", "7"]);
    let lines = listed(&mut service, "CLIENT LIST");
    assert_eq!(lines.iter().map(|line| field(line, "user")).collect::<Vec<_>>(), ["reader"]);
    // Nobody ends a connection of another.
    let other = users[2].call("CLIENT ID");
    assert_eq!(users[0].call(&format!("CLIENT KILL ID {other}")), "0");
    let own = users[1].call("CLIENT ID");
    assert_eq!(users[0].call(&format!("CLIENT KILL ID {own}")), "1");
    users[1].assert_closed();
    assert_eq!(users[2].call("PING"), "+PONG");
    // What others do is for administrators.
    for command in ["SLOWLOG LEN", "SLOWLOG GET"] {
        assert!(service.call(command).starts_with("-NOPERM "), "{command}");
    }
    assert!(users[0].call("SCAN 0").starts_with("-NOPERM "));
}

#[test]
fn a_killed_connection_ends_after_its_command() {
    let server = Server::start();
    let (mut one, mut two) = (server.connect(), server.connect());
    assert_eq!(two.call("PING"), "+PONG");
    let address = two.stream.local_addr().unwrap();
    assert_eq!(one.call(&format!("CLIENT KILL {address}")), "+OK");
    two.assert_closed();
    assert_eq!(one.call("CLIENT KILL TYPE normal"), "0", "the caller is left out");
    assert_eq!(one.call("CLIENT KILL TYPE normal SKIPME no"), "1");
    one.assert_closed();
}

#[test]
fn replies_can_be_switched_off() {
    let server = Server::start();
    let mut client = server.connect();
    client.send_all(&[
        "PING",
        "CLIENT REPLY OFF",
        "SADD following:1 2",
        "SISMEMBER following:1 2",
        "NONSENSE",
        "CLIENT REPLY SKIP",
    ]);
    client.send_all(&["MULTI", "PING", "EXEC", "CLIENT REPLY ON", "SISMEMBER following:1 2"]);
    assert_eq!([client.reply(), client.reply(), client.reply()], ["+PONG", "+OK", "1"]);
    // The next command only; one after the other too; and ON has a reply even then.
    client.send_all(&["SCARD following:1", "CLIENT REPLY SKIP", "ECHO a", "ECHO b"]);
    assert_eq!([client.reply(), client.reply()], ["1", "\"b\""]);
    client.send_all(&["CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "ECHO a", "ECHO b"]);
    assert_eq!(client.reply(), "\"b\"");
    client.send_all(&[
        "CLIENT REPLY SKIP",
        "CLIENT REPLY ON",
        "CLIENT REPLY SKIP",
        "FOLLOW 1 3",
        "SCARD following:1",
    ]);
    assert_eq!([client.reply(), client.reply()], ["+OK", "2"]);
    let replies = client.call_all(&["MULTI", "CLIENT REPLY OFF", "EXEC"]);
    assert_eq!(replies[2], "[-ERR CLIENT REPLY is not allowed inside a transaction]");
    // What is not a command ends the connection in silence, too.
    client.send(b"CLIENT REPLY OFF\r\n*x\r\n");
    client.assert_closed();
    let mut client = server.connect();
    client.send_all(&["CLIENT REPLY OFF", "RESET"]);
    assert_eq!(client.reply(), "+RESET");
}

#[test]
fn slow_commands_are_logged_without_credentials() {
    let settings = RespSettings {
        threads: 1,
        slow_log_threshold: Some(Duration::from_nanos(1)),
        slow_log_length: 4,
        ..RespSettings::default()
    };
    let server = Server::with(Setup { settings, ..Setup::default() });
    let mut client = server.connect();
    client.call("CLIENT SETNAME me");
    client.call("SLOWLOG RESET");
    client.call_all(&["SADD following:1 2", "SADD following:1 3", "AUTH name secret"]);
    let log = client.call("SLOWLOG GET 3");
    let peer = client.stream.local_addr().unwrap();
    assert!(log.contains("[\"AUTH\", \"(redacted)\", \"(redacted)\"]"), "{log}");
    assert!(log.contains("[\"SADD\", \"following:1\", \"3\", \"... (1 more commands with it)\"]"), "{log}");
    assert!(log.contains(&format!("\"{peer}\", \"me\"]")), "{log}");
    (0..9).for_each(|_| drop(client.call("PING")));
    assert_eq!(client.call("SLOWLOG LEN"), "4");
    assert!(client.call("SLOWLOG HELP").starts_with("[+SLOWLOG <subcommand>"));
    let quick = Server::start();
    let mut client = quick.connect();
    client.call("SADD following:1 2");
    assert_eq!(client.call("SLOWLOG GET"), "[]");
}

#[test]
fn all_keys_are_found() {
    let users = (1..=25).map(Id::Integer).collect();
    let server = Server::with(Setup { users: Some(users), ..Setup::default() });
    let mut client = server.connect();
    for user in 1..25 {
        client.call(&format!("SADD following:{user} 25"));
    }
    client.call("SREM following:3 25");
    let scan = |client: &mut Client, options: &str| {
        let (mut found, mut steps, mut cursor) = (Vec::new(), 0, "0".to_owned());
        loop {
            let reply = client.call(&format!("SCAN {cursor} {options}"));
            let mut words = reply.split('"').skip(1).step_by(2).map(str::to_owned);
            cursor = words.next().unwrap();
            found.extend(words);
            steps += 1;
            if cursor == "0" {
                return (found.into_iter().collect::<BTreeSet<_>>(), steps);
            }
            assert!(cursor.parse::<u64>().unwrap() < 1 << 53);
        }
    };
    let (found, steps) = scan(&mut client, "");
    let mut expected: BTreeSet<_> =
        (1..25).filter(|&id| id != 3).map(|id| format!("following:{id}")).collect();
    expected.insert("followers:25".to_owned());
    assert_eq!((found, steps), (expected, 3));
    assert_eq!(scan(&mut client, "MATCH followers:* COUNT 100"), (["followers:25".to_owned()].into(), 1));
    assert_eq!(scan(&mut client, "TYPE set COUNT 2 MATCH following:2?").0.len(), 5);
    assert_eq!(scan(&mut client, "TYPE string COUNT 5"), (BTreeSet::new(), 6));
    assert_eq!(client.call("SCAN 77"), "-ERR the cursor is from before a restart; start again with 0");
    assert_eq!(client.call("DBSIZE"), "25");
    assert!(client.call("INFO keyspace").contains("db0:keys=25,expires=0,avg_ttl=0"));
    // A profile that does not know its users says so.
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.call("SCAN 0"), "-ERR iterating over all keys is not available in this profile yet");
    assert_eq!(client.call("DBSIZE"), "-ERR counting all keys is not available in this profile yet");
}

#[test]
fn commands_are_documented() {
    let server = Server::start();
    let mut client = server.connect();
    client.hello_three();
    for command in Command::<WatchedStore>::ALL {
        let docs = client.call(&format!("COMMAND DOCS {}", command.name));
        for field in ["\"summary\": ", "\"since\": ", "\"group\": "] {
            assert!(docs.contains(field), "{docs}");
        }
        assert_eq!(docs.contains("\"arguments\": "), docs.contains("\"type\": "), "{docs}");
    }
    let docs = client.call("COMMAND DOCS sscan");
    let pattern =
        "\"flags\": [+optional], \"name\": \"pattern\", \"token\": \"MATCH\", \"type\": \"pattern\"}";
    assert!(docs.contains(pattern), "{docs}");
    assert!(client.call("COMMAND DOCS client").contains("\"client|list\": {"));
    assert_eq!(client.call("COMMAND DOCS nothing"), "{}");
    let specification = client.call("COMMAND INFO sintercard");
    assert!(
        specification.contains(
            "{\"spec\": {\"firstkey\": 1, \"keynumidx\": 0, \"keystep\": 1}, \"type\": \"keynum\"}"
        ),
        "{specification}"
    );
    assert!(
        specification.starts_with("[[\"sintercard\", -3, ~[+movablekeys, +readonly], 0, 0, 0, "),
        "{specification}"
    );
}

#[test]
fn the_server_describes_itself_by_section() {
    let server = Server::start();
    let mut client = server.connect();
    let all = client.call("INFO");
    for name in [
        "redis_version",
        "tcp_port",
        "process_id",
        "os",
        "uptime_in_seconds",
        "connected_clients",
        "blocked_clients",
        "used_memory",
        "used_memory_human",
        "total_connections_received",
        "total_commands_processed",
        "instantaneous_ops_per_sec",
        "loading",
        "role",
        "used_cpu_sys",
        "cluster_enabled",
        "position",
    ] {
        assert!(all.contains(&format!("\\n{name}:")), "{name}: {all}");
    }
    for everything in ["INFO all", "INFO everything", "INFO default", "INFO nothing ALL"] {
        assert_eq!(client.call(everything).matches("# ").count(), all.matches("# ").count());
    }
    let some = client.call("INFO server CLIENTS");
    assert!(some.starts_with("\"# Server\\r\\n") && some.contains("\\r\\n\\r\\n# Clients\\r\\n"), "{some}");
    assert_eq!(some.matches("# ").count(), 2);
    assert_eq!(client.call("INFO nothing"), "\"\"");
    let commands = |client: &mut Client| {
        let stats = client.call("INFO stats");
        let (_, rest) = stats.split_once("total_commands_processed:").unwrap();
        rest.split('\\').next().unwrap().parse::<u64>().unwrap()
    };
    let before = commands(&mut client);
    client.call_all(&["PING"; 10]);
    assert_eq!(commands(&mut client), before + 11);
}
