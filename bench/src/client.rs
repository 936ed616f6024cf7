//! One connection that asks and waits, over the Redis protocol or HTTP, for latencies of answers that other tools
//! cannot ask for. Reads as much of an answer as is needed to find its end.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail};

/// How much is read at once.
const CHUNK: usize = 256 << 10;

/// A connection.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    received: usize,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; CHUNK], received: 0 })
    }

    /// Connects over the Redis protocol, with a key if there is one.
    pub fn resp(address: SocketAddr, key: Option<&str>) -> Result<Self> {
        let mut client = Self::connect(address)?;
        if let Some(key) = key {
            client.command(&format!("AUTH {key}"))?;
        }
        Ok(client)
    }

    /// Sends a command of plain words and returns the whole reply; an error is one here too.
    pub fn command(&mut self, words: &str) -> Result<&[u8]> {
        self.send(&format!("{words}\r\n"))?;
        let reply = self.receive_replies(1)?;
        if reply.first() == Some(&b'-') {
            bail!("the server answered {words:?} with {:?}", String::from_utf8_lossy(reply));
        }
        Ok(reply)
    }

    /// Sends commands at once, each with its line end, and returns all their replies.
    pub fn pipeline(&mut self, commands: &str, count: u64) -> Result<&[u8]> {
        self.send(commands)?;
        self.receive_replies(count)
    }

    /// As [`Client::command`], where the length of the reply is known from an earlier one of the same command: what
    /// this client does with the bytes of a long reply is then no part of the figure.
    pub fn command_again(&mut self, words: &str, length: usize) -> Result<()> {
        self.send(&format!("{words}\r\n"))?;
        while self.received < length {
            self.receive()?;
        }
        if self.received > length || !self.buffer[..length].ends_with(b"\r\n") {
            bail!("the server answered {words:?} with {} bytes, not {length}", self.received);
        }
        Ok(())
    }

    /// Sends a GET request and returns the body of the answer; one that is no success is an error.
    pub fn get(&mut self, path: &str, key: &str) -> Result<&[u8]> {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n\r\n"))?;
        self.receive_answer()
    }

    /// Sends a POST request with JSON and further headers, each with its line end, and returns the body of the answer.
    pub fn post(&mut self, path: &str, key: &str, headers: &str, json: &str) -> Result<&[u8]> {
        self.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{headers}\r\n{json}",
            json.len()
        ))?;
        self.receive_answer()
    }

    fn receive_answer(&mut self) -> Result<&[u8]> {
        loop {
            self.receive()?;
            if let Some((start, length)) = body(&self.buffer[..self.received])?
                && self.received >= start + length
            {
                return Ok(&self.buffer[start..start + length]);
            }
        }
    }

    fn send(&mut self, text: &str) -> Result<()> {
        self.received = 0;
        self.stream.write_all(text.as_bytes()).context("the server does not take commands")
    }

    fn receive_replies(&mut self, count: u64) -> Result<&[u8]> {
        let mut progress = Progress { at: 0, missing: count };
        while !progress.advance(&self.buffer[..self.received])? {
            self.receive()?;
        }
        Ok(&self.buffer[..self.received])
    }

    fn receive(&mut self) -> Result<()> {
        if self.buffer.len() < self.received + CHUNK / 2 {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let read = self.stream.read(&mut self.buffer[self.received..])?;
        if read == 0 {
            bail!("the server closed the connection");
        }
        self.received += read;
        Ok(())
    }
}

/// How far a reply has been looked through, and how many values are missing in it.
#[derive(Debug)]
struct Progress {
    at: usize,
    missing: u64,
}

impl Progress {
    /// Whether the reply is whole.
    fn advance(&mut self, received: &[u8]) -> Result<bool> {
        while self.missing > 0 {
            let rest = &received[self.at.min(received.len())..];
            let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else { return Ok(false) };
            let (mut length, mut inside) = (end + 2, 0);
            match rest[0] {
                b'$' => length += number(&rest[1..end])?.map_or(0, |bytes| bytes as usize + 2),
                b'*' | b'~' => inside = number(&rest[1..end])?.unwrap_or(0),
                b'+' | b'-' | b':' | b'_' | b',' => {}
                other => bail!("a reply begins with {:?}", char::from(other)),
            }
            if rest.len() < length {
                return Ok(false);
            }
            self.at += length;
            self.missing += inside;
            self.missing -= 1;
        }
        Ok(true)
    }
}

/// The number in a reply's first line; nothing where it is -1, for null.
fn number(digits: &[u8]) -> Result<Option<u64>> {
    let text = std::str::from_utf8(digits)?;
    if text == "-1" { Ok(None) } else { Ok(Some(text.parse()?)) }
}

/// How many values the outermost array of a reply has, or what an integer is.
pub fn leading_number(reply: &[u8]) -> Option<u64> {
    let line = reply.split(|&byte| byte == b'\r').next()?;
    std::str::from_utf8(line.get(1..)?).ok()?.parse().ok()
}

/// Where the body of an HTTP answer begins and how long it is, once the head is there.
fn body(received: &[u8]) -> Result<Option<(usize, usize)>> {
    let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&received[..end]).to_lowercase();
    if !head.starts_with("http/1.1 20") {
        bail!("the server answered {head}");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.context("the answer has no length")?.trim().parse()?;
    Ok(Some((end + 4, length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_reply_is_found_byte_by_byte() {
        let replies: [&[u8]; 6] = [
            b"+OK\r\n",
            b":12\r\n",
            b"$5\r\nab\r\nc\r\n",
            b"$-1\r\n",
            b"*3\r\n:5000\r\n*2\r\n$1\r\n7\r\n$1\r\n8\r\n$-1\r\n",
            b"*0\r\n",
        ];
        for reply in replies {
            let mut progress = Progress { at: 0, missing: 1 };
            for end in 0..reply.len() {
                assert!(!progress.advance(&reply[..end]).unwrap(), "{end} bytes of {reply:?}");
            }
            assert!(progress.advance(reply).unwrap());
        }
        assert!(Progress { at: 0, missing: 1 }.advance(b"what\r\n").is_err());
        assert_eq!(leading_number(b"*5000\r\n$1\r\n7\r\n"), Some(5_000));
        assert_eq!(leading_number(b"+OK\r\n"), None);
    }

    #[test]
    fn the_body_of_an_answer_is_found() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(body(answer).unwrap(), Some((answer.len() - 2, 2)));
        assert_eq!(body(&answer[..20]).unwrap(), None);
        assert!(body(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").is_err());
    }
}
