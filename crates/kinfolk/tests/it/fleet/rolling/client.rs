//! Clients that keep their connections, and never send a request twice.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::serve::running::{Answer, PATIENCE};

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Lost {
    /// Nothing was sent: nobody listens.
    Refused,
    /// The connection ended before the whole answer had come.
    Broken(io::Error),
}

fn connect(address: &str) -> Result<BufReader<TcpStream>, Lost> {
    let stream = TcpStream::connect(address).map_err(|_| Lost::Refused)?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    Ok(BufReader::new(stream))
}

/// Whether the other side has not ended a connection that nothing is expected from.
fn is_open(connection: &BufReader<TcpStream>) -> bool {
    let stream = connection.get_ref();
    stream.set_nonblocking(true).unwrap();
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

/// A client of REST with at most one connection to each process.
#[derive(Default)]
pub(super) struct HttpClient {
    kept: HashMap<String, BufReader<TcpStream>>,
}

impl HttpClient {
    /// Sends a request; `line` is its method and path.
    pub(super) fn send(
        &mut self,
        address: &str,
        line: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer, Lost> {
        let mut connection = match self.kept.remove(address).filter(is_open) {
            Some(connection) => connection,
            None => connect(address)?,
        };
        let (answer, is_kept) = exchange(&mut connection, line, headers, body).map_err(Lost::Broken)?;
        if is_kept {
            self.kept.insert(address.to_owned(), connection);
        }
        Ok(answer)
    }
}

/// The answer, and whether the connection is kept.
fn exchange(
    connection: &mut BufReader<TcpStream>,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<(Answer, bool)> {
    let mut request = format!("{line} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len());
    if !body.is_empty() {
        request += "content-type: application/json\r\n";
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    connection.get_mut().write_all(format!("{request}\r\n{body}").as_bytes())?;
    let status = read_line(connection)?;
    let status = status.split(' ').nth(1).unwrap().parse().unwrap();
    let (mut token, mut length, mut is_kept) = (None, 0, true);
    loop {
        let header = read_line(connection)?;
        let Some((name, value)) = header.split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "kinfolk-token" => token = Some(value.to_owned()),
            "connection" => is_kept = value != "close",
            "transfer-encoding" => panic!("an answer without a length: {header}"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    Ok((Answer { status, token, body: String::from_utf8(body).unwrap() }, is_kept))
}

fn read_line(connection: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    if connection.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

/// A client of the Redis protocol with one connection.
pub(super) struct RespClient(BufReader<TcpStream>);

impl RespClient {
    pub(super) fn connect(address: &str) -> Result<Self, Lost> {
        Ok(Self(connect(address)?))
    }

    pub(super) fn is_open(&self) -> bool {
        is_open(&self.0)
    }

    /// Sends commands in one write; their replies, which are no arrays.
    pub(super) fn send(&mut self, commands: &[String]) -> Result<Vec<String>, Lost> {
        let text: String = commands.iter().map(|command| format!("{command}\r\n")).collect();
        let mut exchange = || {
            self.0.get_mut().write_all(text.as_bytes())?;
            commands.iter().map(|_| self.reply()).collect::<io::Result<Vec<String>>>()
        };
        exchange().map_err(Lost::Broken)
    }

    fn reply(&mut self) -> io::Result<String> {
        let line = read_line(&mut self.0)?;
        // A text is on the next line.
        if line.starts_with('$') { read_line(&mut self.0) } else { Ok(line) }
    }
}
