//! A small HTTP/1.1 client: plain enough to send what a real one would refuse to.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Far longer than any answer takes: a test that waits for so long hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a problem document, which must be one in every respect.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let document = self.json();
        let code = document["code"].as_str().unwrap();
        assert_eq!(document["status"], self.status);
        assert_eq!(document["type"], format!("urn:kinfolk:problem:{code}"));
        assert_eq!(document["request_id"].as_str(), self.header("x-request-id"));
        assert!(document["title"].is_string() && document["detail"].is_string());
        code.to_owned()
    }

    /// Status and code.
    pub(crate) fn refusal(&self) -> (u16, String) {
        (self.status, self.problem())
    }
}

fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

/// What a connection goes over.
pub(crate) trait Stream: Read + Write {}

impl<S: Read + Write> Stream for S {}

/// A connection.
pub(crate) struct Connection {
    stream: BufReader<Box<dyn Stream>>,
}

/// A socket that does not wait for ever.
pub(crate) fn socket(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        Self::over(socket(address))
    }

    pub(crate) fn over(stream: impl Stream + 'static) -> Self {
        Self { stream: BufReader::new(Box::new(stream)) }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends the head of a request with a host and the given headers.
    pub(crate) fn begin(&mut self, method: &str, path: &str, headers: &[(&str, &str)]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        self.write(head.as_bytes()).unwrap();
    }

    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let length = body.len().to_string();
        let mut headers = headers.to_vec();
        if !body.is_empty() {
            headers.push(("content-length", &length));
        }
        self.begin(method, path, &headers);
        // The server may refuse, and stop reading, before all of it is sent.
        let _ = self.write(body);
        self.answer(method).unwrap()
    }

    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    /// The status and headers of an answer.
    pub(crate) fn head(&mut self) -> io::Result<(u16, Vec<(String, String)>)> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { return Ok((status, headers)) };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// A whole answer; an error if it breaks off.
    pub(crate) fn answer(&mut self, method: &str) -> io::Result<Answer> {
        let (status, headers) = self.head()?;
        let body = if method == "HEAD" || status == 204 || status == 304 {
            Vec::new()
        } else {
            self.body(&headers)?
        };
        Ok(Answer { status, headers, body })
    }

    fn body(&mut self, headers: &[(String, String)]) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if let Some(length) = header(headers, "content-length") {
            body.resize(length.parse().unwrap(), 0);
            self.stream.read_exact(&mut body)?;
            return Ok(body);
        }
        assert_eq!(header(headers, "transfer-encoding"), Some("chunked"));
        while let Some(chunk) = self.chunk()? {
            body.extend(chunk);
        }
        Ok(body)
    }

    /// The next chunk of a body, or nothing at its end.
    pub(crate) fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let length = usize::from_str_radix(&self.line()?, 16).unwrap();
        let mut chunk = vec![0; length];
        self.stream.read_exact(&mut chunk)?;
        self.line()?;
        Ok(Some(chunk).filter(|chunk| !chunk.is_empty()))
    }

    /// Whether the server has closed the connection, once it has.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0) | Err(_))
    }
}
