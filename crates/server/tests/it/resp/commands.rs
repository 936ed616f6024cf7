//! What commands answer, in both versions of the protocol.

use kinfolk_core::IdKind;
use kinfolk_server::resp::table::Command;

use super::super::backing::HAS_CONTENT;
use super::super::store::WatchedStore;
use super::server::{Server, Setup};

#[test]
fn redis_names() {
    let server = Server::start();
    let mut client = server.connect();
    for (command, reply) in [
        ("SISMEMBER following:1 2", "0"),
        ("SADD following:1 2 3 0002", "2"),
        ("SADD following:1 3 4", "1"),
        ("SADD following:5 2", "1"),
        ("sismember following:1 2", "1"),
        ("SISMEMBER followers:2 1", "1"),
        ("SISMEMBER followers:1 2", "0"),
        ("SMISMEMBER following:1 2 9 4", "[1, 0, 1]"),
        ("SMISMEMBER followers:2 5", "[1]"),
        ("SCARD following:1", "3"),
        ("SCARD followers:2", "2"),
        ("SCARD followers:99", "0"),
        ("EXISTS following:1 following:2 followers:2 followers:2", "3"),
        ("TYPE following:1", "+set"),
        ("TYPE following:2", "+none"),
        ("SINTER following:1 following:5", "[\"2\"]"),
        ("SINTER following:1 followers:1", "[]"),
        ("SINTER following:1", "[\"2\", \"3\", \"4\"]"),
        ("SINTERCARD 2 following:1 following:5", "1"),
        ("SINTERCARD 1 following:1 LIMIT 2", "2"),
        ("SINTERCARD 1 following:1 LIMIT 0", "3"),
        ("TTL following:1", "-1"),
        ("PTTL following:2", "-2"),
        ("EXPIRETIME followers:2", "-1"),
        ("PEXPIRETIME followers:99", "-2"),
        ("OBJECT ENCODING following:1", "\"hashtable\""),
        ("OBJECT ENCODING following:2", "null"),
        ("OBJECT REFCOUNT following:1", "1"),
        ("MEMORY USAGE following:1", "112"),
        ("MEMORY USAGE following:1 SAMPLES 5", "112"),
        ("MEMORY USAGE following:2", "null"),
        ("SRANDMEMBER following:5", "\"2\""),
        ("SRANDMEMBER following:5 10", "[\"2\"]"),
        ("SRANDMEMBER following:5 -3", "[\"2\", \"2\", \"2\"]"),
        ("SRANDMEMBER following:5 0", "[]"),
        ("SRANDMEMBER following:9", "null"),
        ("SRANDMEMBER following:9 3", "[]"),
        ("SREM following:1 2 9", "1"),
        ("SMEMBERS followers:2", "[\"5\"]"),
        ("SREM following:1 3 4", "2"),
        ("SMEMBERS following:1", "[]"),
    ] {
        assert_eq!(client.call(command), reply, "{command}");
    }
}

#[test]
fn unfollowing_oneself_is_a_success_that_changes_nothing() {
    let server = Server::start();
    let mut client = server.connect();
    assert_eq!(client.call("SADD following:1 2 3"), "2");
    let token = client.call("UNFOLLOW 1 1");
    assert!(token.starts_with('"') && token.len() > 20, "{token}");
    assert_eq!(client.call("SREM following:1 1"), "0");
    assert_eq!(client.call("SREM following:1 1 2"), "1");
    assert_eq!(client.call("SMEMBERS following:1"), "[\"3\"]");
    for refused in ["FOLLOW 1 1", "SADD following:1 1", "SADD following:1 4 1"] {
        assert_eq!(client.call(refused), "-ERR a user cannot follow itself", "{refused}");
    }
    assert_eq!(client.call("SCARD following:1"), "1");
}

#[test]
fn own_names() {
    let server = Server::start();
    let mut client = server.connect();
    let token = client.call("FOLLOW 1 2");
    assert!(token.starts_with('"') && token.len() > 20, "{token}");
    for (command, reply) in [
        ("FOLLOWS 1 2", "1"),
        ("FOLLOWS 1 2 3", "[1, 0]"),
        ("FOLLOWING 1", "[[[\"2\", 1794729600123]], null]"),
        ("FOLLOWERS 2", "[[[\"1\", 1794729600123]], null]"),
        ("FRIENDS 1", "[[], null]"),
        ("COUNTS 1", "[1, 0]"),
        ("COUNTS 1 2", "[[1, 0], [0, 1]]"),
    ] {
        assert_eq!(client.call(command), reply, "{command}");
    }
    client.call("FOLLOW 2 1");
    client.call("FOLLOW 3 1");
    assert_eq!(client.call("COMMON 2 3"), "[\"1\"]");
    assert_eq!(client.call("COMMON 2 3 1"), "[]");
    assert_eq!(client.call("FRIENDS 1"), "[[[\"2\", 1794729600123]], null]");
    client.call("UNFOLLOW 1 2");
    assert_eq!(client.call("FOLLOWS 1 2"), "0");
    assert_eq!(client.call(&format!("AFTER {}", token.trim_matches('"'))), "+OK");
    assert_eq!(client.call("FOLLOWS 3 1"), "1");
}

#[test]
fn version_three_has_maps_sets_and_nulls() {
    let server = Server::start();
    let mut client = server.connect();
    let greeting = client.hello_three();
    assert!(greeting.starts_with('{') && greeting.contains("\"proto\": 3"), "{greeting}");
    client.call("SADD following:1 2 3");
    for (command, reply) in [
        ("SMEMBERS following:1", "~[\"2\", \"3\"]"),
        ("SINTER following:1 following:2", "~[]"),
        ("SISMEMBER following:1 2", "1"),
        ("SSCAN following:9 0", "[\"0\", []]"),
        ("FOLLOWING 9", "[[], null]"),
        ("CLIENT GETNAME", "null"),
        ("CONFIG GET save", "{\"save\": \"\"}"),
        ("COMMAND INFO nothing", "[null]"),
    ] {
        assert_eq!(client.call(command), reply, "{command}");
    }
    assert!(client.call("INFO").starts_with("=# Server\r\nredis_version:7."));
    assert!(client.call("COMMAND DOCS sadd").starts_with("{\"sadd\": {"));
    let sadd = client.call("COMMAND INFO SADD");
    assert!(sadd.starts_with("[[\"sadd\", -3, ~[+denyoom, +write], 1, 1, 1, "), "{sadd}");
}

#[test]
fn uuids() {
    let server = Server::with(Setup { kind: IdKind::Uuid, ..Setup::default() });
    let mut client = server.connect();
    let (one, two) = ("0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c");
    assert_eq!(client.call(&format!("SADD following:{one} {}", two.to_uppercase())), "1");
    assert_eq!(client.call(&format!("SMEMBERS following:{one}")), format!("[{two:?}]"));
    assert_eq!(client.call(&format!("SISMEMBER followers:{two} {one}")), "1");
    assert!(client.call("SISMEMBER following:1 2").starts_with("-ERR \"1\" is not a valid id"));
}

#[test]
fn the_connection() {
    let server = Server::start();
    let mut client = server.connect();
    for (command, reply) in [
        ("PING", "+PONG"),
        ("ping hello", "\"hello\""),
        ("ECHO hello", "\"hello\""),
        ("SELECT 0", "+OK"),
        ("CLIENT SETNAME me", "+OK"),
        ("CLIENT GETNAME", "\"me\""),
        ("CLIENT SETINFO LIB-NAME test", "+OK"),
        ("CLIENT NO-EVICT ON", "+OK"),
        ("CLIENT NO-TOUCH OFF", "+OK"),
        ("CLIENT GETREDIR", "-1"),
        ("CLIENT REPLY ON", "+OK"),
        (
            "AUTH anything",
            "-ERR AUTH <password> called without any password configured for the default user. Are you sure your \
             configuration is correct?",
        ),
        ("AUTH name anything", "+OK"),
        ("UNWATCH", "+OK"),
        ("CONFIG GET slowlog-*", "[\"slowlog-log-slower-than\", \"10000\", \"slowlog-max-len\", \"128\"]"),
        (
            "COMMAND GETKEYS SINTERCARD 2 following:1 followers:2 LIMIT 1",
            "[\"following:1\", \"followers:2\"]",
        ),
        ("COMMAND GETKEYS exists following:1 following:2", "[\"following:1\", \"following:2\"]"),
        ("COMMAND GETKEYS SADD following:1 2 3", "[\"following:1\"]"),
        ("COMMAND GETKEYS MEMORY USAGE following:1", "[\"following:1\"]"),
        ("COMMAND GETKEYSANDFLAGS SADD following:1 2", "[[\"following:1\", [+RW, +access, +update]]]"),
        ("COMMAND LIST FILTERBY PATTERN sc*", "[\"scard\", \"scan\"]"),
        ("CONFIG GET save appendonly", "[\"appendonly\", \"yes\", \"save\", \"\"]"),
        ("CONFIG GET *only", "[\"appendonly\", \"yes\"]"),
        ("COMMAND INFO nothing", "[null]"),
        ("RESET", "+RESET"),
        ("CLIENT GETNAME", "null"),
    ] {
        assert_eq!(client.call(command), reply, "{command}");
    }
    assert_eq!(client.call("COMMAND COUNT"), Command::<WatchedStore>::ALL.len().to_string());
    assert!(client.call("COMMAND").matches("[\"").count() > Command::<WatchedStore>::ALL.len());
    assert!(client.call("CLIENT INFO").contains(" resp=2 "));
    let greeting = client.call("HELLO 2 SETNAME again AUTH name credential");
    assert!(greeting.starts_with("[\"server\", \"redis\", \"version\", \"7."), "{greeting}");
    assert_eq!(client.call("CLIENT GETNAME"), "\"again\"");
    assert_eq!(client.call("QUIT"), "+OK");
    client.assert_closed();
}

/// Whether a command is about posts or feeds.
pub(super) fn is_of_content(command: &str) -> bool {
    ["POST", "DELPOST", "FEED"].iter().any(|name| command.starts_with(name))
}

#[test]
fn refusals_say_why() {
    let server = Server::start();
    let mut client = server.connect();
    for (command, reply) in [
        ("NONSENSE secret", "-ERR unknown command 'NONSENSE'; COMMAND DOCS lists the commands"),
        ("SISMEMBER following:1", "-ERR wrong number of arguments for 'sismember' command"),
        ("SISMEMBER friends:1 2", "-WRONGTYPE a key must be following:ID or followers:ID"),
        ("SADD followers:1 2", "-ERR followers:ID is read-only: write to the following:ID of the follower"),
        ("FOLLOW 1 1", "-ERR a user cannot follow itself"),
        ("SADD following:1 2 1", "-ERR a user cannot follow itself"),
        ("SELECT 1", "-ERR there is one database, number 0"),
        ("SSCAN following:1 x", "-ERR the cursor is not valid for this list; start again without one"),
        ("FOLLOWING 1 CURSOR x", "-ERR the cursor is not valid for this list; start again without one"),
        ("FOLLOWING 1 LIMIT 0", "-ERR a limit must be between 1 and 1000, not 0"),
        ("FOLLOWING 1 LIMIT", "-ERR syntax error"),
        ("FOLLOWING 1 LIMIT x", "-ERR value is not an integer or out of range"),
        ("FEED 1 LIMIT 0", "-ERR a limit must be between 1 and 1000, not 0"),
        ("FEED 1 CURSOR x", "-ERR the cursor is not valid for this list; start again without one"),
        ("POSTS 1 AUTHOR 2", "-ERR syntax error"),
        ("POST 1 ID", "-ERR syntax error"),
        ("POST 1 BODY x", "-ERR syntax error"),
        ("POST 1 AT -1", "-ERR value is not an integer or out of range"),
        (
            "POST 1 AT 99999999999999",
            "-ERR a post can be dated at most 5 minutes in the future, not 5138-11-16T09:46:39.999Z",
        ),
        (
            "POST 1 PAYLOAD {",
            "-ERR the payload is not valid JSON: EOF while parsing an object at line 1 column 1",
        ),
        ("DELPOST 1 2", "-ERR there is no post 2"),
        ("COMMON LIMIT 1", "-ERR syntax error"),
        ("COMMON 1 LIMIT", "-ERR syntax error"),
        ("COMMON 1 2 LIMIT 1 3", "-ERR syntax error"),
        ("COMMON 1 2 LIMIT 1001", "-ERR a limit must be between 1 and 1000, not 1001"),
        ("KNOWN 1 2 3 4", "-ERR syntax error"),
        ("KNOWN 1 2 CURSOR x", "-ERR the cursor is not valid for this list; start again without one"),
        ("SUGGEST 1 LIMIT 0", "-ERR a limit must be between 1 and 1000, not 0"),
        ("SUGGEST 1 LIMIT 1001", "-ERR a limit must be between 1 and 1000, not 1001"),
        ("SUGGEST 1 CURSOR 1", "-ERR syntax error"),
        ("DISMISS 1 1", "-ERR a user is never suggested to itself"),
        (
            "DISMISS 1 x",
            "-ERR \"x\" is not a valid id: expected a decimal integer, as this deployment uses integer ids",
        ),
        ("WATCH following:1", "-ERR WATCH is not supported"),
        ("HELLO 4", "-NOPROTO unsupported protocol version"),
        ("AFTER made-up", "-ERR the consistency token was not issued by this deployment"),
        ("FOLLOWS 1 2", "0"),
        ("CLIENT nonsense", "-ERR unknown subcommand 'nonsense'. Try CLIENT HELP."),
        ("CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command"),
        ("CLIENT REPLY maybe", "-ERR syntax error"),
        ("CLIENT SETINFO LIB-NAME", "-ERR wrong number of arguments for 'client|setinfo' command"),
        ("CLIENT SETINFO COLOUR red", "-ERR Unrecognized option 'colour'"),
        ("CLIENT LIST TYPE odd", "-ERR Unknown client type 'odd'"),
        ("CLIENT LIST ID x", "-ERR Invalid client ID"),
        ("CLIENT KILL 127.0.0.1:1", "-ERR No such client"),
        (
            "CONFIG SET save x",
            "-ERR CONFIG SET is not supported; settings are in the server's configuration file",
        ),
        ("CONFIG REWRITE", "-ERR unknown subcommand 'REWRITE'. Try CONFIG HELP."),
        ("COMMAND nonsense", "-ERR unknown subcommand 'nonsense'. Try COMMAND HELP."),
        ("COMMAND GETKEYS PING", "-ERR The command has no key arguments"),
        ("COMMAND GETKEYS nonsense x", "-ERR Invalid command specified"),
        ("COMMAND GETKEYS SADD following:1", "-ERR Invalid number of arguments specified for command"),
        ("COMMAND GETKEYS SINTERCARD 3 following:1", "-ERR Invalid arguments specified for command"),
        ("SLOWLOG nonsense", "-ERR unknown subcommand 'nonsense'. Try SLOWLOG HELP."),
        ("SLOWLOG GET -2", "-ERR count should be greater than or equal to -1"),
        ("OBJECT ENCODING", "-ERR wrong number of arguments for 'object|encoding' command"),
        ("OBJECT ENCODING friends:1", "-WRONGTYPE a key must be following:ID or followers:ID"),
        ("MEMORY DOCTOR", "-ERR unknown subcommand 'DOCTOR'. Try MEMORY HELP."),
        ("MEMORY USAGE following:1 SAMPLES", "-ERR syntax error"),
        ("SRANDMEMBER following:1 x", "-ERR value is not an integer or out of range"),
        ("SRANDMEMBER following:1 1 2", "-ERR syntax error"),
        (
            "SRANDMEMBER following:1 -10001",
            "-ERR one reply has at most 10000 members: ask for fewer, or use SSCAN",
        ),
        ("SCAN x", "-ERR invalid cursor"),
        ("SCAN 0 COUNT 0", "-ERR syntax error"),
        ("SCAN 0 LIMIT 1", "-ERR syntax error"),
        ("PING a b", "-ERR wrong number of arguments for 'ping' command"),
    ] {
        if HAS_CONTENT || !is_of_content(command) {
            assert_eq!(client.call(command), reply, "{command}");
        }
    }
    // Nothing of a refused command was done.
    assert_eq!(client.call("COUNTS 1"), "[0, 0]");
}

/// Every command of the table answers its own example, and nothing that it is called with breaks the connection.
#[test]
fn every_command_answers() {
    let server = Server::start();
    for command in Command::<WatchedStore>::ALL {
        for arguments in [command.example, &[][..], &["", "\u{fffd}", "-1"][..], &["x"; 40][..]] {
            let mut client = server.connect();
            let words = std::iter::once(command.name).chain(arguments.iter().copied());
            client.send(&super::client::encode_words(words));
            let reply = client.reply();
            let refusals = ["-ERR", "-WRONGTYPE", "-EXECABORT"];
            let refused = refusals.iter().any(|refusal| reply.starts_with(refusal));
            let is_error = reply.starts_with('-') && reply.parse::<i64>().is_err();
            assert_eq!(is_error, refused, "{} {arguments:?}: {reply}", command.name);
            if command.name != "quit" {
                client.send(&super::client::encode("RESET"));
                assert_eq!(client.reply(), "+RESET", "{}", command.name);
            }
        }
    }
}

#[test]
fn inner_failures_show_no_details() {
    let server = Server::start();
    server.watch.damage();
    let expected = "-ERR the server failed; its log has the details";
    let replies = server.connect().call_all(&["SCARD following:1", "FOLLOW 1 2", "SADD following:1 2"]);
    assert_eq!(replies, [expected; 3]);
}
