//! A whole session of the Redis protocol on the reference store: whatever a client sends, it gets one well-formed reply
//! to each command, in both versions of the protocol. Whether a reply is right is not asked.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use kinfolk_conformance::{ModelStore, SimulatedClock};
use kinfolk_core::{Context, IdKind, Keyring, SigningKey};
use kinfolk_server::resp::frame::FrameLimits;
use kinfolk_server::resp::{self, RespSettings};
use kinfolk_server::{Access, Administration, Service, ServiceSettings};
use tokio_util::sync::CancellationToken;

use super::frames::commands;

/// The longest input: a socket takes so much without anybody reading.
const INPUT_MAX: usize = 16 << 10;
/// A server is left after so many sessions, so that its graph stays small.
const SESSIONS_MAX: usize = 2_000;
/// Far longer than any answer takes.
const SILENCE_MAX: Duration = Duration::from_secs(20);

static SERVER: Mutex<Option<Server>> = Mutex::new(None);

/// Sends the input to a server and reads what it answers.
pub fn resp_session(input: &[u8]) {
    if input.len() > INPUT_MAX {
        return;
    }
    let received = talk(address(), input);
    let (commands, malformed) = commands(input, &FrameLimits::DEFAULT);
    let (mut replies, mut at) = (0, 0);
    while at < received.len() {
        at = after_reply(&received, at)
            .unwrap_or_else(|| panic!("no reply at {at}: {}", received.escape_ascii()));
        replies += 1;
    }
    let expected = commands.len() + usize::from(malformed);
    // Only a client that says goodbye, wants no replies or ends its connection gets less than it has asked for.
    let is_named = |command: &[Vec<u8>], at: usize, name: &[u8]| {
        command.get(at).is_some_and(|word| word.eq_ignore_ascii_case(name))
    };
    let may_get_less = |command: &Vec<Vec<u8>>| {
        let is_of_client = is_named(command, 0, b"client");
        let is_silent = is_named(command, 1, b"reply") || is_named(command, 1, b"kill");
        is_named(command, 0, b"quit") || (is_of_client && is_silent)
    };
    let is_right = if commands.iter().any(may_get_less) { replies <= expected } else { replies == expected };
    assert!(is_right, "{replies} replies to {expected} commands: {}", received.escape_ascii());
}

fn talk(address: SocketAddr, input: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SILENCE_MAX)).unwrap();
    stream.write_all(input).unwrap();
    // It may have closed already, and then there is nothing to say.
    let _ = stream.shutdown(Shutdown::Write);
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    received
}

/// Where the reply at a place ends, if there is a well-formed one.
fn after_reply(bytes: &[u8], at: usize) -> Option<usize> {
    let line_end = at + bytes.get(at..)?.windows(2).position(|pair| pair == b"\r\n")?;
    let line = bytes.get(at + 1..line_end)?;
    // A lone carriage return or line feed would be taken for the end of the line by some clients.
    if line.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
        return None;
    }
    let next = line_end + 2;
    let number = || std::str::from_utf8(line).ok()?.parse::<i64>().ok();
    match bytes.get(at)? {
        b'+' | b'-' => Some(next),
        b':' => number().map(|_| next),
        b'_' => line.is_empty().then_some(next),
        b'#' => matches!(line, b"t" | b"f").then_some(next),
        b',' => std::str::from_utf8(line).ok()?.parse::<f64>().ok().map(|_| next),
        b'$' | b'=' => match number()? {
            -1 => Some(next),
            length => {
                let end = next + usize::try_from(length).ok()?;
                (bytes.get(end..end + 2)? == b"\r\n").then_some(end + 2)
            }
        },
        kind @ (b'*' | b'~' | b'%' | b'>') => match number()? {
            -1 => Some(next),
            count => {
                let each = if *kind == b'%' { 2 } else { 1 };
                (0..each * count).try_fold(next, |at, _| after_reply(bytes, at))
            }
        },
        _ => None,
    }
}

/// A server on loopback.
struct Server {
    address: SocketAddr,
    sessions: usize,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

fn address() -> SocketAddr {
    let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    let current = server.take().filter(|server| server.sessions < SESSIONS_MAX);
    let current = server.insert(current.unwrap_or_else(Server::start));
    current.sessions += 1;
    current.address
}

struct NoAdministration;

impl Administration for NoAdministration {}

impl Server {
    fn start() -> Self {
        let model = ModelStore::new(IdKind::Integer, Arc::new(SimulatedClock::default()));
        let keys = Keyring::new(SigningKey::new([7; 32]), []);
        let context = Context::new(Arc::new(model), keys, Context::<ModelStore>::PAGE_LIMIT_MAX);
        let (settings, access) = (ServiceSettings::default(), Access::open());
        let service = Service::new(context, settings, access, Arc::new(NoAdministration));
        let service = Arc::new(service);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let settings = RespSettings { threads: 1, ..RespSettings::default() };
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(resp::run(listener, None, service, settings, stopped)).unwrap();
        });
        Self { address, sessions: 0, stop, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.cancel();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
