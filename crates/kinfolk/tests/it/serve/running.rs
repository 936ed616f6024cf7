//! A server that a test has started, and small clients for both protocols.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::Value;

use crate::support::{Run, Sandbox};

/// Far longer than anything takes; a test that waits as long has failed.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A running server. It is killed if a test ends without ending it.
pub struct Running {
    child: Option<Child>,
    /// Behind a lock, so that threads can share the server.
    lines: Mutex<Receiver<String>>,
    /// Where REST is.
    pub http: String,
    /// Where the Redis protocol is, if it is served.
    pub resp: String,
    /// The line that said so.
    pub ready: String,
    /// What it said before.
    pub before: Vec<String>,
}

/// An answer of REST.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub token: Option<String>,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Running {
    /// Serves the folder `kinfolk-data` of a sandbox on free ports.
    pub fn start(sandbox: &Sandbox, more: &str) -> Self {
        Self::try_start(sandbox, more).unwrap_or_else(|run| panic!("it did not start: {run:?}"))
    }

    /// As [`Running::start`]; a server that ends before it is ready is told.
    pub fn try_start(sandbox: &Sandbox, more: &str) -> Result<Self, Run> {
        let line = format!("serve --http 127.0.0.1:0 --resp 127.0.0.1:0 {more}");
        Self::from_command(sandbox.command(line.split_whitespace()))
    }

    /// Starts a command that serves.
    pub fn from_command(mut command: Command) -> Result<Self, Run> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = child.stderr.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut before = Vec::new();
        loop {
            let Ok(line) = lines.recv_timeout(PATIENCE) else {
                let status = child.wait().unwrap().code().unwrap_or(-1);
                let stderr = before.iter().map(|line| format!("{line}\n")).collect();
                return Err(Run { status, stdout: String::new(), stderr });
            };
            if let Some(places) = line.strip_prefix("kinfolk: ready: ") {
                let mut words = places.split([' ', ',']);
                let http = words.next().unwrap().to_owned();
                let resp =
                    words.next().and_then(|word| word.split("://").nth(1)).unwrap_or_default().to_owned();
                let lines = Mutex::new(lines);
                return Ok(Self { child: Some(child), lines, http, resp, ready: line, before });
            }
            before.push(line);
        }
    }

    /// The process that serves: a tracer or a shell may have started it.
    pub fn process(&self) -> u32 {
        let mut id = self.child.as_ref().unwrap().id();
        let started_by = |id: u32| -> Option<u32> {
            let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
            children.split_whitespace().next()?.parse().ok()
        };
        while let Some(child) = started_by(id) {
            id = child;
        }
        id
    }

    pub fn signal(&self, signal: &str) {
        let id = self.process().to_string();
        assert!(Command::new("kill").args([format!("-{signal}"), id]).status().unwrap().success());
    }

    /// How much memory it has in use.
    pub fn memory_bytes(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.as_ref().unwrap().id()));
        let status = status.unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }

    /// Ends it with a signal; its status and what it said since it was ready.
    pub fn end(mut self, signal: &str) -> (i32, Vec<String>) {
        self.signal(signal);
        let status = self.child.take().unwrap().wait().unwrap();
        (status.code().unwrap_or(-1), self.lines.lock().unwrap().iter().collect())
    }

    /// Waits until it ends by itself; its status and what it said since it was ready.
    pub fn wait(mut self) -> (i32, Vec<String>) {
        let mut said = Vec::new();
        loop {
            match self.lines.lock().unwrap().recv_timeout(PATIENCE) {
                Ok(line) => said.push(line),
                // What it says ends with it.
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end by itself: {said:?}"),
            }
        }
        let status = self.child.take().unwrap().wait().unwrap();
        (status.code().unwrap_or(-1), said)
    }

    /// Waits for a line that says something, unless it was said before it was ready.
    pub fn line_with(&self, part: &str) -> String {
        if let Some(line) = self.before.iter().find(|line| line.contains(part)) {
            return line.clone();
        }
        loop {
            let line = self
                .lines
                .lock()
                .unwrap()
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("nothing said {part:?}"));
            if line.contains(part) {
                return line;
            }
        }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, None, &[], None)
    }

    /// Asks REST.
    pub fn ask(
        &self,
        method: &str,
        path: &str,
        actor: Option<&str>,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Answer {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().new_agent();
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.http));
        for (name, value) in headers.iter().copied().chain(actor.map(|actor| ("Kinfolk-Actor", actor))) {
            request = request.header(name, value);
        }
        let mut answer = match body {
            Some(body) => agent.run(request.header("Content-Type", "application/json").body(body).unwrap()),
            None => agent.run(request.body(()).unwrap()),
        }
        .unwrap();
        let token = answer.headers().get("Kinfolk-Token").map(|token| token.to_str().unwrap().to_owned());
        let body = answer.body_mut().read_to_string().unwrap();
        Answer { status: answer.status().as_u16(), token, body }
    }

    /// Sends a command of the Redis protocol on a connection of its own; the first line of the answer.
    pub fn redis(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(&self.resp).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "{command}\r\n").unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The arguments that send a command to this server.
    pub fn url(&self) -> String {
        format!("--url {}", self.http)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.child.is_some() {
            let _ = Command::new("kill").args(["-KILL", &self.process().to_string()]).status();
        }
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
