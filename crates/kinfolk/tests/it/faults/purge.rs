//! What a purge leaves: after it and a compaction, no piece of any text that the comment ever had is in any file of the folder,
//! whatever was killed in between. Texts of others are all still there.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::client::{Ask, Client};
use super::pieces::{self, PIECE, Pieces};
use super::program::SMALL_SERVER_SETTINGS;
use super::random::Random;
use super::{number, require_none, seed};
use crate::serve::running::Running;
use crate::support::Sandbox;

const POST: u64 = 70;
const AUTHOR: u64 = 1;

/// A comment with all its texts.
struct Secret {
    id: String,
    key: String,
    texts: Vec<String>,
}

/// Where and how texts are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// By a server that goes on.
    Server,
    /// By a server that is started after another was killed right after the purge.
    NextServer,
    /// By the command on a folder.
    Folder,
    /// By a server that is killed in the middle of it, and then by the next one.
    Twice,
}

#[test]
fn a_purge_and_a_compaction_leave_nothing_in_any_file() {
    let seed = seed("purge");
    let cycles = number("KINFOLK_CRASH_CYCLES", 6);
    let mut harness = Harness::new(Random::new(seed));
    for cycle in 0..cycles {
        let how = [How::Server, How::NextServer, How::Twice, How::Folder][cycle % 4];
        if let Err(problem) = harness.cycle(how) {
            require_none("purge", &[format!("cycle {cycle}, {how:?}: {problem}")]);
        }
    }
    println!(
        "purge: {cycles} cycles, {} texts purged and nowhere, {} texts kept",
        harness.purged_texts,
        harness.kept.iter().map(|secret| secret.texts.len()).sum::<usize>()
    );
}

#[test]
fn a_server_erases_purged_texts_by_itself() {
    let mut harness = Harness::new(Random::new(seed("erase")));
    let server = start(&harness.sandbox, "--comment-erase-after 50ms").unwrap();
    let client = Client::new(&server.http);
    let secret = harness.write(&client).unwrap();
    harness.purge(&client, &secret).unwrap();
    server.line_with("purged texts were erased");
    harness.require_nothing().unwrap();
    server.end("KILL");
    harness.require_nothing().unwrap();
    assert_eq!(harness.sandbox.json("compact")["erased"], 0);
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
    sent: usize,
    kept: Vec<Secret>,
    purged: Pieces,
    purged_texts: usize,
}

impl Harness {
    fn new(random: Random) -> Self {
        let sandbox = Sandbox::new();
        sandbox.ok(&format!("post {AUTHOR} --id {POST}"));
        Self { sandbox, random, sent: 0, kept: Vec::new(), purged: Pieces::new(), purged_texts: 0 }
    }

    fn cycle(&mut self, how: How) -> Result<(), String> {
        let mut server = start(&self.sandbox, "")?;
        let client = Client::new(&server.http);
        let secrets = (0..6).map(|_| self.write(&client)).collect::<Result<Vec<_>, _>>()?;
        let all = secrets.iter().chain(&self.kept);
        require_all(&self.sandbox.path("kinfolk-data"), all)?;
        for (at, secret) in secrets.into_iter().enumerate() {
            match at % 2 {
                0 => self.purge(&client, &secret)?,
                _ => self.kept.push(secret),
            }
        }
        if self.require_nothing().is_ok() {
            return Err("the search finds nothing even while it is there".to_owned());
        }
        match how {
            How::Server => self.compact(&server)?,
            How::NextServer => {
                server.end("KILL");
                server = start(&self.sandbox, "")?;
                self.compact(&server)?;
            }
            How::Twice => {
                self.compact_and_kill(server);
                server = start(&self.sandbox, "")?;
                self.compact(&server)?;
            }
            How::Folder => {
                server.end("TERM");
                self.sandbox.ok("compact");
                server = start(&self.sandbox, "")?;
            }
        }
        self.require_nothing()?;
        self.check(server)
    }

    /// Writes a comment, repeats it and edits it a few times. Some are taken back before they are purged.
    fn write(&mut self, client: &Client) -> Result<Secret, String> {
        self.sent += 1;
        let (key, text) = (format!("key {}", self.sent), self.text());
        let path = format!("/v1/posts/{POST}/comments");
        let header = Some(("Idempotency-Key", key.clone()));
        let body = Some(json!({ "body": text }));
        let ask = Ask { method: "POST", path, actor: Some(AUTHOR), header, body };
        let first = client.send(&ask).filter(|answer| answer.status == 201).ok_or("no comment was made")?;
        let again = client.send(&ask).filter(|answer| answer.status == 200).ok_or("it was not repeated")?;
        if first.body != again.body {
            return Err(format!("{} was repeated as {}", first.body, again.body));
        }
        let id = first.json()["id"].as_str().unwrap_or_default().to_owned();
        let mut secret = Secret { id, key, texts: vec![text] };
        for version in 1..=self.sent % 3 {
            let text = self.text();
            let ask = Ask {
                method: "PATCH",
                path: format!("/v1/comments/{}", secret.id),
                actor: Some(AUTHOR),
                header: Some(("If-Match", format!("\"{version}\""))),
                body: Some(json!({ "body": text })),
            };
            client.send(&ask).filter(|answer| answer.status == 200).ok_or("it was not edited")?;
            secret.texts.push(text);
        }
        if self.sent.is_multiple_of(4) {
            let path = format!("/v1/comments/{}", secret.id);
            let ask = Ask { method: "DELETE", path, actor: Some(AUTHOR), header: None, body: None };
            client.send(&ask).filter(|answer| answer.status == 204).ok_or("it was not deleted")?;
        }
        Ok(secret)
    }

    fn purge(&mut self, client: &Client, secret: &Secret) -> Result<(), String> {
        let path = format!("/v1/comments/{}/purge", secret.id);
        let ask = Ask { method: "POST", path, actor: Some(AUTHOR), header: None, body: None };
        client.send(&ask).filter(|answer| answer.status == 204).ok_or("it was not purged")?;
        self.purged_texts += secret.texts.len();
        self.purged.extend(pieces::of(&secret.texts));
        let found = client.get(&format!("/v1/comments/{}", secret.id))?;
        if found["status"] != "purged" || found.get("body").is_some() {
            return Err(format!("a purged comment is shown as {found}"));
        }
        self.require_tombstone(client, secret)
    }

    /// A repetition gives the tombstone.
    fn require_tombstone(&self, client: &Client, secret: &Secret) -> Result<(), String> {
        let body = Some(json!({ "body": secret.texts[0] }));
        let header = Some(("Idempotency-Key", secret.key.clone()));
        let path = format!("/v1/posts/{POST}/comments");
        let again = client.send(&Ask { method: "POST", path, actor: Some(AUTHOR), header, body });
        match again {
            Some(answer) if answer.status == 200 && answer.json()["status"] == "purged" => Ok(()),
            other => Err(format!("a purged comment was repeated as {other:?}")),
        }
    }

    fn compact(&self, server: &Running) -> Result<(), String> {
        let run = self.sandbox.run(&format!("compact {}", server.url()));
        if run.status == 0 { Ok(()) } else { Err(format!("compact: {run:?}")) }
    }

    /// Begins a compaction and kills the server some time later.
    fn compact_and_kill(&mut self, server: Running) {
        let client = Client::new(&server.http);
        let path = "/v1/admin/compact".to_owned();
        let compacting = thread::spawn(move || {
            client.send(&Ask { method: "POST", path, actor: Some(AUTHOR), header: None, body: None })
        });
        // The delay is the fault, not a wait for something.
        thread::sleep(Duration::from_micros(self.random.below(40_000) as u64));
        server.end("KILL");
        compacting.join().expect("a client does not panic");
    }

    /// No piece of a purged text is anywhere.
    fn require_nothing(&self) -> Result<(), String> {
        match pieces::find(&self.sandbox.path(""), &self.purged)? {
            Some(found) => Err(format!("a piece of a purged text is {found}")),
            None => Ok(()),
        }
    }

    /// What was not purged is all there, also for those who come later, and what is made of the folder has no more than it.
    fn check(&self, server: Running) -> Result<(), String> {
        require_all(&self.sandbox.path("kinfolk-data"), &self.kept)?;
        let client = Client::new(&server.http);
        for secret in &self.kept {
            let found = client.get(&format!("/v1/comments/{}/history", secret.id))?;
            let texts = found["items"].as_array().into_iter().flatten().map(|item| item["body"].as_str());
            if !texts.eq(secret.texts.iter().map(|text| Some(text.as_str()))) {
                return Err(format!("the texts of {} are {found}", secret.id));
            }
        }
        server.end("TERM");
        for line in ["verify", "backup graph.backup", "restore graph.backup --data restored"] {
            self.sandbox.ok(line);
        }
        self.require_nothing()?;
        require_all(&self.sandbox.path("restored"), &self.kept)?;
        fs::remove_file(self.sandbox.path("graph.backup")).map_err(|error| error.to_string())?;
        fs::remove_dir_all(self.sandbox.path("restored")).map_err(|error| error.to_string())
    }

    /// Letters that say nothing, so that nothing in them can be made shorter or come twice.
    fn text(&mut self) -> String {
        const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
        let length = 200 + self.random.below(3_000);
        (0..length).map(|_| char::from(LETTERS[self.random.below(64)])).collect()
    }
}

/// Most of every text is in the files. Not all of it: what is compressed leaves out what comes twice.
fn require_all<'a>(folder: &Path, secrets: impl IntoIterator<Item = &'a Secret>) -> Result<(), String> {
    let mut stored = Pieces::new();
    for (_, content) in pieces::files(folder)? {
        stored.extend(content.array_windows::<PIECE>());
    }
    for text in secrets.into_iter().flat_map(|secret| &secret.texts) {
        let pieces = text.as_bytes().array_windows();
        let (all, found) = (pieces.len(), pieces.filter(|&piece| stored.contains(piece)).count());
        if found * 2 < all {
            return Err(format!(
                "only {found} of {all} pieces of a text are in {}: {text}",
                folder.display()
            ));
        }
    }
    Ok(())
}
