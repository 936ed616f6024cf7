//! A server that sends one prepared response after another, each on a connection of its own, and keeps the requests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kinfolk_client::{Retry, blocking};

pub(crate) struct Scripted {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
}

/// A request as it was received.
#[derive(Clone, Debug)]
pub(crate) struct Request(String);

impl Request {
    pub(crate) fn line(&self) -> &str {
        self.0.lines().next().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let value = |line: &str| {
            let (given, value) = line.split_once(": ")?;
            given.eq_ignore_ascii_case(name).then(|| value.to_owned())
        };
        self.0.lines().find_map(value)
    }
}

/// A response; an empty text closes the connection without one.
pub(crate) fn response(status: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

/// A problem document.
pub(crate) fn problem(status: &str, headers: &[(&str, &str)], code: &str) -> String {
    let headers = [headers, &[("content-type", "application/problem+json")]].concat();
    response(status, &headers, &format!(r#"{{"code":"{code}","detail":"as the test wants"}}"#))
}

impl Scripted {
    pub(crate) fn start(responses: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&requests);
        std::thread::spawn(move || {
            for response in responses {
                let (mut socket, _) = listener.accept().unwrap();
                let request = read_request(&mut socket);
                received.lock().unwrap().push(Request(request));
                socket.write_all(response.as_bytes()).unwrap();
            }
        });
        Self { address, requests }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A client that acts as user 1 and waits only for moments.
    pub(crate) fn client(&self) -> blocking::Client {
        let retry = Retry { wait_first: Duration::from_millis(1), ..Retry::default() };
        blocking::Client::builder(self.url()).actor(1).retry(retry).build_blocking().unwrap()
    }
}

/// Reads the head, and the body of which the head says the length.
fn read_request(socket: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut byte = [0];
    while !text.ends_with("\r\n\r\n") {
        socket.read_exact(&mut byte).unwrap();
        text.push(char::from(byte[0]));
    }
    if Request(text.clone()).header("expect").is_some() {
        socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
    }
    let length = Request(text.clone()).header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    socket.read_exact(&mut body).unwrap();
    text + &String::from_utf8(body).unwrap()
}
