//! A client that sends what a test says, byte for byte, and reads replies with another implementation's decoder.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use redis_protocol::resp2::types::OwnedFrame as Two;
use redis_protocol::resp3::types::OwnedFrame as Three;
use redis_protocol::{resp2, resp3};

/// Far longer than any answer takes: a server that is silent for so long has forgotten its client.
const SILENCE_MAX: Duration = Duration::from_secs(30);

pub(super) struct Client {
    pub stream: TcpStream,
    received: Vec<u8>,
    three: bool,
}

impl Client {
    pub(super) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(SILENCE_MAX)).unwrap();
        stream.set_write_timeout(Some(SILENCE_MAX)).unwrap();
        Self { stream, received: Vec::new(), three: false }
    }

    /// Reads replies of version 3 from here on.
    pub(super) fn hello_three(&mut self) -> String {
        self.send(&encode("HELLO 3"));
        self.three = true;
        self.reply()
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends commands, words separated by spaces, as one pipeline.
    pub(super) fn send_all(&mut self, commands: &[&str]) {
        let bytes: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();
        self.send(&bytes);
    }

    /// Sends one command and reads its reply.
    pub(super) fn call(&mut self, command: &str) -> String {
        self.send(&encode(command));
        self.reply()
    }

    /// Sends a pipeline and reads its replies.
    pub(super) fn call_all(&mut self, commands: &[&str]) -> Vec<String> {
        self.send_all(commands);
        commands.iter().map(|_| self.reply()).collect()
    }

    /// The next reply, as text: `+simple`, `-error`, `"bulk"`, `[array]`, `~[set]`, `{map}`, `=verbatim`.
    pub(super) fn reply(&mut self) -> String {
        self.try_reply().expect("a reply before the connection ends")
    }

    /// The next reply, or nothing if the connection ends.
    pub(super) fn try_reply(&mut self) -> Option<String> {
        loop {
            if let Some((reply, length)) = self.decode() {
                self.received.drain(..length);
                return Some(reply);
            }
            let mut part = [0; 16_384];
            match self.stream.read(&mut part) {
                Ok(0) => {
                    assert!(self.received.is_empty(), "the connection ended within a reply");
                    return None;
                }
                Ok(read) => self.received.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no reply: {error}"),
            }
        }
    }

    /// Nothing but the end comes.
    pub(super) fn assert_closed(&mut self) {
        assert_eq!(self.try_reply(), None);
    }

    fn decode(&self) -> Option<(String, usize)> {
        if self.three {
            let (frame, length) = resp3::decode::complete::decode(&self.received).unwrap()?;
            return Some((show_three(&frame), length));
        }
        let (frame, length) = resp2::decode::decode(&self.received).unwrap()?;
        Some((show_two(&frame), length))
    }
}

/// A command as an array of bulk strings.
pub(super) fn encode(command: &str) -> Vec<u8> {
    encode_words(command.split_whitespace())
}

pub(super) fn encode_words<'a>(words: impl Iterator<Item = &'a str> + Clone) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.clone().count()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn join(elements: impl Iterator<Item = String>) -> String {
    elements.collect::<Vec<_>>().join(", ")
}

fn show_two(frame: &Two) -> String {
    match frame {
        Two::SimpleString(data) => format!("+{}", text(data)),
        Two::Error(data) => format!("-{data}"),
        Two::Integer(data) => data.to_string(),
        Two::BulkString(data) => format!("{:?}", text(data)),
        Two::Array(data) => format!("[{}]", join(data.iter().map(show_two))),
        Two::Null => "null".to_owned(),
    }
}

fn show_three(frame: &Three) -> String {
    match frame {
        Three::SimpleString { data, .. } => format!("+{}", text(data)),
        Three::SimpleError { data, .. } => format!("-{data}"),
        Three::Number { data, .. } => data.to_string(),
        Three::Double { data, .. } => format!(",{data}"),
        Three::BlobString { data, .. } => format!("{:?}", text(data)),
        Three::VerbatimString { data, .. } => format!("={}", text(data)),
        Three::Null => "null".to_owned(),
        Three::Array { data, .. } => format!("[{}]", join(data.iter().map(show_three))),
        Three::Push { data, .. } => format!(">[{}]", join(data.iter().map(show_three))),
        Three::Set { data, .. } => {
            let mut members: Vec<_> = data.iter().map(show_three).collect();
            members.sort();
            format!("~[{}]", members.join(", "))
        }
        Three::Map { data, .. } => {
            let entry = |(key, value)| format!("{}: {}", show_three(key), show_three(value));
            let mut entries: Vec<_> = data.iter().map(entry).collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        other => panic!("a reply that no command has: {other:?}"),
    }
}
