//! What can be asked of the graph has the same results on a fleet as on a folder, over every interface.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::databases::Databases;
use crate::serve::remote::GRAPH_LINES;
use crate::serve::running::{PATIENCE, Running};
use crate::support::{Sandbox, stable};

/// A server of a folder and one of a fleet, both empty.
struct Servers {
    folder: Running,
    fleet: Running,
    sandbox: Sandbox,
    _folder: Sandbox,
    /// Removed after the servers have ended.
    _databases: Databases,
}

impl Servers {
    fn start() -> Option<Self> {
        let databases = Databases::create()?;
        let (folder, sandbox) = (Sandbox::new(), databases.fleet());
        let rules = "--limit-changes none --following-limit 5";
        Some(Self {
            folder: Running::start(&folder, rules),
            fleet: Running::start(&sandbox, rules),
            sandbox,
            _folder: folder,
            _databases: databases,
        })
    }

    fn end(self) {
        for server in [self.folder, self.fleet] {
            assert_eq!(server.end("TERM").0, 0);
        }
    }
}

#[test]
fn the_command_line_prints_the_same() {
    let Some(servers) = Servers::start() else { return };
    let mut token = String::new();
    for line in GRAPH_LINES {
        let expected = servers.sandbox.run(&format!("{line} {}", servers.folder.url()));
        let found = servers.sandbox.run(&format!("{line} {} {token}", servers.fleet.url()));
        let shown = |run: &crate::support::Run| (run.status, stable(&run.stdout), stable(&run.stderr));
        assert_eq!(shown(&found), shown(&expected), "{line}");
        // Without it, a read could be up to two seconds older than the write before it.
        let words =
            found.stdout.split(|character: char| character.is_whitespace() || "\"{}:,".contains(character));
        let mut words = words.filter(|word| !word.is_empty()).skip_while(|&word| word != "token");
        if let Some(newest) = words.nth(1) {
            token = format!("--token={newest}");
        }
    }
    servers.end();
}

/// A request to REST: method, path, actor and body.
type Request<'a> = (&'a str, &'a str, &'a str, &'a str);

const REQUESTS: &[Request<'_>] = &[
    ("POST", "/v1/users/2/follow", "1", ""),
    ("POST", "/v1/users/2/follow", "1", ""),
    ("POST", "/v1/users/3/follow", "1", ""),
    ("POST", "/v1/users/1/follow", "2", ""),
    ("POST", "/v1/users/1/follow", "1", ""),
    ("POST", "/v1/users/x/follow", "1", ""),
    ("POST", "/v1/users/2/follow", "", ""),
    ("POST", "/v1/users/7/follow", "2", ""),
    ("POST", "/v1/users/7/follow", "3", ""),
    ("POST", "/v1/users/8/follow", "3", ""),
    ("GET", "/v1/users/1/following/2", "", ""),
    ("GET", "/v1/users/2/following/3", "", ""),
    ("GET", "/v1/users/1/following", "", ""),
    ("GET", "/v1/users/1/following?limit=1", "", ""),
    ("GET", "/v1/users/1/following?limit=0", "", ""),
    ("GET", "/v1/users/1/followers", "", ""),
    ("GET", "/v1/users/7/followers?limit=1", "", ""),
    ("GET", "/v1/users/1/friends", "", ""),
    ("GET", "/v1/users/99/followers", "", ""),
    ("GET", "/v1/users/1/followers?cursor=forged", "", ""),
    ("POST", "/v1/check", "", r#"{"pairs":[["1","2"],["2","3"],["3","8"],[1,99]]}"#),
    ("GET", "/v1/users/1/relationships?id=2&id=3&id=99", "", ""),
    ("GET", "/v1/users/1/counts", "", ""),
    ("GET", "/v1/counts?id=1&id=2&id=7&id=99", "", ""),
    ("GET", "/v1/users/2/common/3", "", ""),
    ("GET", "/v1/common?id=1&id=2&id=3", "", ""),
    ("GET", "/v1/users/7/known-followers?viewer=1", "", ""),
    ("GET", "/v1/users/1/suggestions", "", ""),
    ("DELETE", "/v1/users/1/suggestions/8", "1", ""),
    ("GET", "/v1/users/1/suggestions?limit=5", "", ""),
    ("DELETE", "/v1/users/1/followers/2", "1", ""),
    ("DELETE", "/v1/users/1/followers/2", "3", ""),
    ("GET", "/v1/users/1/followers", "", ""),
    ("POST", "/v1/users/4/follow", "1", ""),
    ("POST", "/v1/users/5/follow", "1", ""),
    ("POST", "/v1/users/6/follow", "1", ""),
    ("POST", "/v1/users/7/follow", "1", ""),
    ("DELETE", "/v1/users/4/follow", "1", ""),
    ("POST", "/v1/users/7/follow", "1", ""),
    ("GET", "/v1/users/7/counts", "", ""),
    ("GET", "/v1/nothing", "", ""),
    ("PUT", "/v1/check", "", ""),
    ("GET", "/healthz", "", ""),
    ("GET", "/readyz", "", ""),
];

#[test]
fn rest_responds_the_same() {
    let Some(servers) = Servers::start() else { return };
    let mut token: Option<String> = None;
    for &(method, path, actor, body) in REQUESTS {
        let ask = |server: &Running, token: Option<&str>| {
            let headers: Vec<(&str, &str)> =
                token.map(|token| ("Kinfolk-Token", token)).into_iter().collect();
            let actor = Some(actor).filter(|actor| !actor.is_empty());
            server.ask(method, path, actor, &headers, Some(body).filter(|body| !body.is_empty()))
        };
        let expected = ask(&servers.folder, None);
        let found = ask(&servers.fleet, token.as_deref());
        let shown = |answer: &crate::serve::running::Answer| {
            (answer.status, answer.token.is_some(), without_request_id(&stable(&answer.body)))
        };
        assert_eq!(shown(&found), shown(&expected), "{method} {path}");
        token = found.token.or(token);
    }
    servers.end();
}

/// A problem document has the id of its request.
fn without_request_id(body: &str) -> String {
    match serde_json::from_str(body) {
        Ok(serde_json::Value::Object(mut problem)) => {
            problem.remove("instance");
            problem.remove("request_id");
            serde_json::Value::from(problem).to_string()
        }
        _ => body.to_owned(),
    }
}

const COMMANDS: &[&str] = &[
    "PING",
    "FOLLOW 1 2",
    "FOLLOW 1 2",
    "FOLLOW 1 1",
    "FOLLOW 1 x",
    "SADD following:1 3 4",
    "SADD following:1 3 5 6",
    "SADD following:1 7 8",
    "SADD followers:1 2",
    "SADD other:1 2",
    "SREM following:1 6 99",
    "FOLLOW 2 1",
    "FOLLOW 2 7",
    "FOLLOW 3 7",
    "FOLLOW 3 8",
    "FOLLOWS 1 2 3 99",
    "SISMEMBER following:1 2",
    "SISMEMBER followers:1 2",
    "SMISMEMBER following:1 2 99 3",
    "SMISMEMBER followers:7 2 3 4",
    "SCARD following:1",
    "SCARD followers:7",
    "SCARD followers:99",
    "EXISTS following:1 followers:99",
    "TYPE followers:7",
    "TTL followers:7",
    "PTTL followers:99",
    "EXPIRETIME following:1",
    "PEXPIRETIME following:99",
    "OBJECT ENCODING following:1",
    "MEMORY USAGE following:1",
    "SRANDMEMBER following:3 -10001",
    "SRANDMEMBER following:99",
    "COMMAND GETKEYS SINTERCARD 2 following:2 following:3",
    "UNWATCH",
    "SMEMBERS following:3",
    "SINTER following:2 following:3",
    "SINTERCARD 2 following:2 following:3",
    "FOLLOWING 1 LIMIT 2",
    "FOLLOWERS 7",
    "FRIENDS 1",
    "COUNTS 1 2 7 99",
    "COMMON 2 3",
    "KNOWN 1 7",
    "SUGGEST 1 LIMIT 5",
    "MULTI",
    "FOLLOW 4 1",
    "SISMEMBER following:4 1",
    "EXEC",
    "UNFOLLOW 4 1",
    "UNFOLLOW 4 1",
    "SCARD followers:1",
    "AFTER forged",
    "NONSENSE",
];

#[test]
fn the_redis_protocol_replies_the_same() {
    let Some(servers) = Servers::start() else { return };
    let mut connections = [&servers.folder, &servers.fleet].map(|server| Connection::new(&server.resp));
    for command in COMMANDS {
        let [expected, found] = connections.each_mut().map(|connection| connection.send(&[command]));
        assert_eq!(found, expected, "{command}");
    }
    // All at once: checks are read in batches, and see the writes before them.
    let pipeline: Vec<&str> = COMMANDS.iter().rev().copied().filter(|line| !line.contains("AFTER")).collect();
    let [expected, found] = connections.each_mut().map(|connection| connection.send(&pipeline));
    assert_eq!(found, expected);
    servers.end();
}

/// A connection that reads whole replies.
pub(super) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(super) fn new(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    /// Sends commands in one write; their replies.
    pub(super) fn send(&mut self, commands: &[&str]) -> Vec<String> {
        let text: String = commands.iter().map(|command| format!("{command}\r\n")).collect();
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
        commands.iter().map(|_| self.reply()).collect()
    }

    /// Sends a command whose reply is a token; the token.
    pub(super) fn send_for_token(&mut self, command: &str) -> String {
        write!(self.0.get_mut(), "{command}\r\n").unwrap();
        let line = self.line();
        assert!(line.starts_with('$'), "{command}: {line}");
        self.line()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn reply(&mut self) -> String {
        let line = self.line();
        let count = || line[1..].parse::<i64>().unwrap();
        match line.as_bytes()[0] {
            b'*' => {
                let items: Vec<String> = (0..count()).map(|_| self.reply()).collect();
                format!("[{}]", items.join(", "))
            }
            b'$' if count() >= 0 => {
                let mut bytes = vec![0; count() as usize + 2];
                self.0.read_exact(&mut bytes).unwrap();
                stable(String::from_utf8(bytes).unwrap().trim_end())
            }
            // Milliseconds since 1970.
            b':' if line.len() == 14 => ":TIME".to_owned(),
            _ => stable(&line),
        }
    }
}
