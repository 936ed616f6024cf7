//! An author: what it has written, as far as it was told, and what it does next.

use std::sync::mpsc::Sender;

use serde_json::{Value, json};

use super::POSTS;
use super::client::{Answer, Ask, Client};
use crate::faults::random::Random;

/// A comment that was acknowledged.
#[derive(Clone, Debug)]
pub struct Known {
    pub id: String,
    pub post: u64,
    pub deleted: bool,
    text: String,
    version: u64,
    depth: u64,
    /// How it was sent, and the answer to that.
    wish: Wish,
    first: String,
}

/// A comment as it is sent.
#[derive(Clone, Debug)]
struct Wish {
    post: u64,
    key: String,
    text: String,
    reply_to: Option<(String, u64)>,
}

/// Something that an author does.
#[derive(Clone, Debug)]
enum Step {
    Create(Wish),
    Repeat(usize),
    Edit(usize, String),
    /// Refused: it names a version that is over.
    EditStale(usize),
    Delete(usize),
}

pub struct Author {
    pub id: u64,
    pub known: Vec<Known>,
    random: Random,
    sent: u64,
    under_way: Option<Step>,
}

impl Author {
    pub fn new(id: u64, random: Random) -> Self {
        Self { id, known: Vec::new(), random, sent: 0, under_way: None }
    }

    /// Writes until the server goes. Tells of every answer; an answer that is not the right one ends it.
    pub fn write(mut self, client: &Client, acknowledged: &Sender<()>) -> Result<Self, String> {
        loop {
            let step = self.step();
            let Some(answer) = client.send(&self.ask(&step)) else {
                self.under_way = Some(step);
                return Ok(self);
            };
            // A server that was told to end takes no more requests.
            if answer.status == 503 {
                self.under_way = Some(step);
                return Ok(self);
            }
            self.apply(&step, &answer)?;
            // Nobody counts any more once the server is about to end.
            let _ = acknowledged.send(());
        }
    }

    /// Finds out what has become of the step that was under way, if there is one, and takes note of it.
    pub fn settle(&mut self, client: &Client) -> Result<bool, String> {
        let Some(step) = self.under_way.take() else { return Ok(false) };
        match &step {
            Step::Create(_) => {
                let answer = client.send(&self.ask(&step)).ok_or("a repetition was not answered")?;
                // It may have happened before.
                let status = if answer.status == 200 { 201 } else { answer.status };
                self.apply(&step, &Answer { status, ..answer })?;
            }
            Step::Edit(at, text) => {
                let known = &mut self.known[*at];
                let found = client.get(&format!("/v1/comments/{}", known.id))?;
                if found["version"] == known.version + 1 {
                    (known.version, known.text) = (known.version + 1, text.clone());
                }
                known.compare(&found)?;
            }
            Step::Delete(at) => {
                let known = &mut self.known[*at];
                let found = client.get(&format!("/v1/comments/{}", known.id))?;
                known.deleted = found["status"] == "deleted";
                known.compare(&found)?;
            }
            Step::Repeat(_) | Step::EditStale(_) => {}
        }
        Ok(true)
    }

    /// Repeats some comments, old and new: the answer is the first one's. Gives their number.
    pub fn repeat_some(&mut self, client: &Client) -> Result<usize, String> {
        let count = self.known.len().min(12);
        for turn in 0..count {
            // The newest is always among them.
            let at = if turn == 0 { self.known.len() - 1 } else { self.random.below(self.known.len()) };
            let step = Step::Repeat(at);
            let answer = client.send(&self.ask(&step)).ok_or("a repetition was not answered")?;
            self.apply(&step, &answer)?;
        }
        Ok(count)
    }

    fn step(&mut self) -> Step {
        let (kind, at) = (self.random.below(12), self.random.below(self.known.len().max(1)));
        match self.known.get(at) {
            Some(known) if kind < 3 && !known.deleted => Step::Edit(at, self.text()),
            Some(known) if kind == 3 && !known.deleted && known.version > 1 => Step::EditStale(at),
            Some(_) if kind == 4 => Step::Repeat(at),
            // Also what is deleted already.
            Some(_) if kind == 5 => Step::Delete(at),
            _ => Step::Create(self.wish(at)),
        }
    }

    fn wish(&mut self, at: usize) -> Wish {
        self.sent += 1;
        let (key, text) = (format!("{}-{}", self.id, self.sent), self.text());
        let above = self.known.get(at).filter(|above| !above.deleted && above.depth < 8);
        match above.filter(|_| self.sent.is_multiple_of(3)) {
            Some(above) => {
                let reply_to = Some((above.id.clone(), above.depth));
                Wish { post: above.post, key, text, reply_to }
            }
            None => Wish { post: POSTS[self.random.below(POSTS.len())], key, text, reply_to: None },
        }
    }

    /// Short and long texts, of more than one line and of more than one alphabet.
    fn text(&mut self) -> String {
        let length = if self.random.once_in(10) { 3_000 } else { 60 };
        let letters = ['a', 'e', 'ü', '中', '\n', ' ', '"', '😀'];
        let count = self.random.below(length);
        format!("{} says", self.id) + &(0..count).map(|_| letters[self.random.below(8)]).collect::<String>()
    }

    fn ask(&self, step: &Step) -> Ask<'static> {
        let actor = Some(self.id);
        let edit = |known: &Known, version: u64, text: &str| Ask {
            method: "PATCH",
            path: format!("/v1/comments/{}", known.id),
            actor,
            header: Some(("If-Match", format!("\"{version}\""))),
            body: Some(json!({ "body": text })),
        };
        match step {
            Step::Create(wish) => wish.ask(actor),
            Step::Repeat(at) => self.known[*at].wish.ask(actor),
            Step::Edit(at, text) => edit(&self.known[*at], self.known[*at].version, text),
            Step::EditStale(at) => edit(&self.known[*at], self.known[*at].version - 1, "too late"),
            Step::Delete(at) => Ask {
                method: "DELETE",
                path: format!("/v1/comments/{}", self.known[*at].id),
                actor,
                header: None,
                body: None,
            },
        }
    }

    /// Takes note of what an answer says; complains if it is not the right one.
    fn apply(&mut self, step: &Step, answer: &Answer) -> Result<(), String> {
        let right = match step {
            Step::Create(_) => 201,
            Step::Repeat(_) | Step::Edit(..) => 200,
            Step::EditStale(_) => 412,
            Step::Delete(_) => 204,
        };
        if answer.status != right {
            return Err(format!("{step:?}: {answer:?}"));
        }
        match step {
            Step::Create(wish) => {
                let known = Known::new(wish.clone(), answer);
                known.compare(&answer.json())?;
                self.known.push(known);
            }
            Step::Repeat(at) if self.known[*at].first != answer.body => {
                return Err(format!("{:?} was repeated as {}", self.known[*at], answer.body));
            }
            Step::Edit(at, text) => {
                let known = &mut self.known[*at];
                (known.version, known.text) = (known.version + 1, text.clone());
                known.compare(&answer.json())?;
            }
            Step::Delete(at) => self.known[*at].deleted = true,
            Step::Repeat(_) | Step::EditStale(_) => {}
        }
        Ok(())
    }
}

impl Wish {
    fn ask(&self, actor: Option<u64>) -> Ask<'static> {
        let mut body = json!({ "body": self.text });
        if let Some((reply_to, _)) = &self.reply_to {
            body["reply_to"] = reply_to.as_str().into();
        }
        Ask {
            method: "POST",
            path: format!("/v1/posts/{}/comments", self.post),
            actor,
            header: Some(("Idempotency-Key", self.key.clone())),
            body: Some(body),
        }
    }
}

impl Known {
    fn new(wish: Wish, answer: &Answer) -> Self {
        Self {
            id: answer.json()["id"].as_str().unwrap_or_default().to_owned(),
            post: wish.post,
            deleted: false,
            text: wish.text.clone(),
            version: 1,
            depth: wish.reply_to.as_ref().map_or(0, |(_, depth)| depth + 1),
            first: answer.body.clone(),
            wish,
        }
    }

    /// Whether a comment is shown as it is. Everybody is a moderator here, and sees what was deleted.
    pub fn compare(&self, found: &Value) -> Result<(), String> {
        let status = if self.deleted { "deleted" } else { "active" };
        let reply_to = self.wish.reply_to.as_ref().map(|(id, _)| id.as_str());
        let is_same = found["id"] == self.id.as_str()
            && found["post"].as_str() == Some(&*self.post.to_string())
            && found["body"] == self.text.as_str()
            && found["version"] == self.version
            && found["status"] == status
            && found["depth"] == self.depth
            && found["reply_to"].as_str() == reply_to;
        if is_same { Ok(()) } else { Err(format!("expected {self:?}, found {found}")) }
    }
}
