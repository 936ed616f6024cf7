//! `kill -9` of a server while several authors write comments, edit, delete and repeat. After every start, every comment that
//! was acknowledged must be there with its text and version, a repetition must give the first answer byte for byte, and
//! counts, threads and authors' lists must be exactly those of the model.
//!
//! Each author has a connection and comments of its own, so that its order is known; all of them write to the same few
//! threads. The one request of each author that was under way may have happened or not: it is sent again if it has a key, and looked up if it
//! has none.
//!
//! The recorded run: `KINFOLK_CRASH_CYCLES=300 cargo test --release -p kinfolk --test it faults::comments -- --nocapture`

mod author;
mod client;
mod purge;

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use self::author::{Author, Known};
use self::client::Client;
use super::program::{SMALL_SERVER_SETTINGS, receive};
use super::random::Random;
use super::{number, require_none, seed};
use crate::serve::running::Running;
use crate::support::Sandbox;

/// Authors that write at the same time: users 1 to …
const AUTHORS: u64 = 4;
/// The posts that they write to.
const POSTS: [u64; 3] = [70, 71, 72];

#[test]
fn a_killed_server_keeps_every_acknowledged_comment() {
    let seed = seed("comments");
    let cycles = number("KINFOLK_CRASH_CYCLES", 6);
    let mut harness = Harness::new(Random::new(seed));
    for cycle in 0..cycles {
        if let Err(problem) = harness.cycle() {
            require_none("comments", &[format!("cycle {cycle}: {problem}")]);
        }
    }
    let verified = harness.sandbox.run("verify");
    assert_eq!(verified.status, 0, "{verified:?}");
    let comments: usize = harness.authors.iter().map(|author| author.known.len()).sum();
    println!(
        "comments: {cycles} cycles, {comments} comments, {} writes acknowledged, {} under way when the server went, \
         {} repetitions after a start, 0 lost, 0 changed",
        harness.acknowledged, harness.interrupted, harness.repeated
    );
}

/// Serves the folder of a sandbox with everything small.
fn start(sandbox: &Sandbox, more: &str) -> Result<Running, String> {
    let line = format!("serve --http 127.0.0.1:0 --resp 127.0.0.1:0 --suggest-every 0 {more}");
    let mut command = sandbox.command(line.split_whitespace());
    command.envs(SMALL_SERVER_SETTINGS);
    Running::from_command(command).map_err(|run| format!("it did not start: {run:?}"))
}

struct Harness {
    sandbox: Sandbox,
    random: Random,
    authors: Vec<Author>,
    acknowledged: usize,
    interrupted: usize,
    repeated: usize,
}

impl Harness {
    fn new(random: Random) -> Self {
        let sandbox = Sandbox::new();
        for post in POSTS {
            sandbox.ok(&format!("post 9 --id {post}"));
        }
        let authors = (1..=AUTHORS).map(|id| Author::new(id, random.fork(id))).collect();
        Self { sandbox, random, authors, acknowledged: 0, interrupted: 0, repeated: 0 }
    }

    /// Starts, writes, ends, starts again and compares.
    fn cycle(&mut self) -> Result<(), String> {
        let server = start(&self.sandbox, "")?;
        self.write_and_end(server)?;
        let server = start(&self.sandbox, "")?;
        let client = Client::new(&server.http);
        for author in &mut self.authors {
            self.interrupted += usize::from(author.settle(&client)?);
            self.repeated += author.repeat_some(&client)?;
        }
        self.compare(&client)?;
        let verified = self.sandbox.run(&format!("verify {}", server.url()));
        if verified.status != 0 {
            return Err(format!("verify: {verified:?}"));
        }
        server.end(if self.random.once_in(3) { "TERM" } else { "KILL" });
        Ok(())
    }

    /// Has all authors write until the server ends, which it does after a random number of answers and some microseconds.
    fn write_and_end(&mut self, server: Running) -> Result<(), String> {
        let wanted = 1 + self.random.below(250);
        let (sender, acknowledgements) = channel();
        let write = |author: Author, sender: Sender<()>| {
            let client = Client::new(&server.http);
            thread::spawn(move || author.write(&client, &sender))
        };
        let writers: Vec<_> = self.authors.drain(..).map(|author| write(author, sender.clone())).collect();
        drop(sender);
        // Fewer come only if all authors have ended, each with a complaint.
        self.acknowledged += (0..wanted).map_while(|_| receive(&acknowledgements).ok()).count();
        // The delay is the fault, not a wait for something.
        thread::sleep(Duration::from_micros(self.random.below(3_000) as u64));
        server.end(if self.random.once_in(5) { "TERM" } else { "KILL" });
        let written: Vec<_> =
            writers.into_iter().map(|writer| writer.join().expect("an author does not panic")).collect();
        self.acknowledged += acknowledgements.iter().count();
        self.authors = written.into_iter().collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Threads, counts and authors' lists are those of the model, now that nothing is open.
    fn compare(&self, client: &Client) -> Result<(), String> {
        for post in POSTS {
            let all = self.authors.iter().flat_map(|author| &author.known);
            let model: BTreeMap<&str, &Known> =
                all.filter(|known| known.post == post).map(|known| (known.id.as_str(), known)).collect();
            let found = client.walk(&format!("/v1/posts/{post}/comments?order=oldest"))?;
            same(&found, &model.values().copied().collect::<Vec<_>>())
                .map_err(|problem| format!("the thread of post {post}: {problem}"))?;
            let state = client.get(&format!("/v1/posts/{post}"))?;
            let active = model.values().filter(|known| !known.deleted).count();
            if state["comment_count"] != active {
                return Err(format!("post {post} counts {}, but has {active}", state["comment_count"]));
            }
        }
        for author in &self.authors {
            let mut own: Vec<&Known> = author.known.iter().filter(|known| !known.deleted).collect();
            own.sort_by(|one, other| other.id.cmp(&one.id));
            let found = client.walk(&format!("/v1/users/{}/comments?", author.id))?;
            same(&found, &own).map_err(|problem| format!("the comments of {}: {problem}", author.id))?;
        }
        Ok(())
    }
}

/// Whether a list is what the model says, in its order.
fn same(found: &[Value], model: &[&Known]) -> Result<(), String> {
    for (found, known) in found.iter().zip(model) {
        known.compare(found)?;
    }
    let (found, known) = (found.len(), model.len());
    if found == known { Ok(()) } else { Err(format!("{found} comments where there are {known}")) }
}
