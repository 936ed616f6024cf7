//! A connection of the Redis protocol: steps as commands, all at once, and what answers them. It knows no more of the
//! protocol than these commands need.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::model::Step;
use crate::serve::running::PATIENCE;

/// How many posts a step reads.
pub const PAGE: usize = 30;
/// How many commands are under way together while inboxes are made.
const PIPELINE: usize = 100;

/// What answers a command.
#[derive(Debug)]
pub enum Page {
    /// Done.
    Written,
    /// The ids of posts.
    Posts(Vec<u64>),
    /// It was not.
    Refused(String),
}

pub struct Connection {
    reader: BufReader<TcpStream>,
}

enum Reply {
    Text(String),
    Error(String),
    List(Vec<Reply>),
    Nothing,
}

impl Connection {
    pub fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes a timeout");
        Self { reader: BufReader::new(stream) }
    }

    /// Submits all steps without waiting for answers.
    pub fn send(&mut self, steps: &[Step]) {
        let lines: String = steps.iter().map(|step| format!("{}\r\n", command(step))).collect();
        self.reader.get_mut().write_all(lines.as_bytes()).expect("the server takes what is sent");
    }

    /// The next answers, fewer if the connection ends before.
    pub fn answers(&mut self, count: usize) -> Vec<Page> {
        (0..count).map_while(|_| self.reply().ok()).map(Page::from).collect()
    }

    /// Reads everybody's feed, so that everybody has an inbox.
    pub fn warm_up(&mut self, users: impl Iterator<Item = u64>) -> Result<(), String> {
        let reads: Vec<Step> = users.map(Step::Read).collect();
        for some in reads.chunks(PIPELINE) {
            self.send(some);
            let answers = self.answers(some.len());
            let read = answers.iter().filter(|answer| matches!(answer, Page::Posts(_))).count();
            if read < some.len() {
                return Err(format!("only {read} of {} feeds could be read: {answers:?}", some.len()));
            }
        }
        Ok(())
    }

    /// A whole feed, in pages.
    pub fn walk(&mut self, user: u64, limit: usize) -> Result<Vec<u64>, String> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let line = format!("FEED {user} LIMIT {limit}{cursor}\r\n");
            self.reader.get_mut().write_all(line.as_bytes()).map_err(|error| error.to_string())?;
            let reply = self.reply().map_err(|error| format!("feed {user}: {error}"))?;
            let next = match &reply {
                Reply::List(parts) => match parts.get(1) {
                    Some(Reply::Text(next)) => Some(format!(" CURSOR {next}")),
                    _ => None,
                },
                _ => None,
            };
            match Page::from(reply) {
                Page::Posts(ids) => all.extend(ids),
                other => return Err(format!("feed {user}: {other:?}")),
            }
            match next {
                Some(next) => cursor = next,
                None => return Ok(all),
            }
        }
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        // An answer that was cut short by the end of the server is none.
        let line = line.strip_suffix("\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let (kind, rest) = line.split_at_checked(1).ok_or(io::ErrorKind::InvalidData)?;
        let length = || rest.parse::<i64>().map_err(|_| io::Error::from(io::ErrorKind::InvalidData));
        match kind {
            "+" | ":" => Ok(Reply::Text(rest.to_owned())),
            "-" => Ok(Reply::Error(rest.to_owned())),
            "$" | "*" if length()? < 0 => Ok(Reply::Nothing),
            "$" => {
                let mut bytes = vec![0; length()? as usize + 2];
                self.reader.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                String::from_utf8(bytes).map(Reply::Text).map_err(|_| io::ErrorKind::InvalidData.into())
            }
            "*" => (0..length()?).map(|_| self.reply()).collect::<io::Result<_>>().map(Reply::List),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

fn command(step: &Step) -> String {
    match step {
        Step::Follow(follower, followee) => format!("FOLLOW {follower} {followee}"),
        Step::Unfollow(follower, followee) => format!("UNFOLLOW {follower} {followee}"),
        Step::Post { id, author, at } => format!("POST {author} ID {id} AT {at} PAYLOAD {id}"),
        Step::Delete { id, author } => format!("DELPOST {author} {id}"),
        Step::Read(user) => format!("FEED {user} LIMIT {PAGE}"),
    }
}

impl From<Reply> for Page {
    fn from(reply: Reply) -> Self {
        let items = match reply {
            Reply::Error(reason) => return Self::Refused(reason),
            Reply::List(parts) => match parts.into_iter().next() {
                Some(Reply::List(items)) => items,
                _ => return Self::Written,
            },
            _ => return Self::Written,
        };
        let id = |item| match item {
            Reply::List(fields) => match fields.into_iter().next() {
                Some(Reply::Text(id)) => id.parse().ok(),
                _ => None,
            },
            _ => None,
        };
        let ids: Option<Vec<u64>> = items.into_iter().map(id).collect();
        ids.map_or_else(|| Self::Refused("not a page of posts".to_owned()), Self::Posts)
    }
}
