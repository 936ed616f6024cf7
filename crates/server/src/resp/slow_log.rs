//! The slow log: commands that took at least as long as the threshold, the latest first, as `SLOWLOG` replies them. Bounded in
//! entries, arguments and bytes, and without credentials.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use super::batch::Arguments;
use super::clients::Client;
use super::request::is;

/// As in Redis, so many arguments are kept, and so many bytes of each.
const ARGUMENTS_MAX: usize = 32;
const ARGUMENT_BYTES_MAX: usize = 128;
const REDACTED: &[u8] = b"(redacted)";

/// The commands that were slow.
#[derive(Debug)]
pub(super) struct SlowLog {
    /// None if nothing is logged.
    threshold: Option<Duration>,
    entries_max: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    next_id: u64,
    /// The latest first.
    latest: VecDeque<SlowCommand>,
}

/// A command that was slow.
#[derive(Clone, Debug)]
pub(super) struct SlowCommand {
    pub id: u64,
    pub at: SystemTime,
    pub took: Duration,
    pub arguments: Vec<Vec<u8>>,
    pub peer: String,
    pub name: String,
}

impl SlowCommand {
    /// When it ran, in seconds since 1970.
    pub(crate) fn unix_seconds(&self) -> u64 {
        self.at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    }
}

impl SlowLog {
    pub(crate) fn new(threshold: Option<Duration>, entries_max: usize) -> Self {
        Self { threshold: threshold.filter(|_| entries_max > 0), entries_max, entries: Mutex::default() }
    }

    /// Whether a command that took so long is logged.
    #[inline]
    pub(crate) fn is_slow(&self, took: Duration) -> bool {
        self.threshold.is_some_and(|threshold| took >= threshold)
    }

    /// Adds a command. If others took the time with it, as writes that share a commit do, it says how many.
    pub(crate) fn add(&self, client: &Client, arguments: Arguments<'_>, others: usize, took: Duration) {
        let mut kept = kept(arguments);
        if others > 0 {
            kept.push(format!("... ({others} more commands with it)").into_bytes());
        }
        let (at, peer, name) = (SystemTime::now(), client.addresses.peer.to_string(), client.labels().name);
        let mut entries = self.entries.lock();
        let id = entries.next_id;
        entries.next_id += 1;
        entries.latest.truncate(self.entries_max.saturating_sub(1));
        entries.latest.push_front(SlowCommand { id, at, took, arguments: kept, peer, name });
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.lock().latest.len()
    }

    /// The latest of them, up to `max`.
    pub(crate) fn latest(&self, max: usize) -> Vec<SlowCommand> {
        self.entries.lock().latest.iter().take(max).cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.entries.lock().latest.clear();
    }
}

/// What is kept of a call.
fn kept(arguments: Arguments<'_>) -> Vec<Vec<u8>> {
    let count = arguments.len();
    let shown = if count > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { count };
    let secret = secrets(arguments);
    let mut kept: Vec<Vec<u8>> = arguments
        .iter()
        .take(shown)
        .enumerate()
        .map(|(number, argument)| if secret(number) { REDACTED.to_vec() } else { shortened(argument) })
        .collect();
    if shown < count {
        kept.push(format!("... ({} more arguments)", count - shown).into_bytes());
    }
    kept
}

/// Which arguments may be credentials: all of `AUTH`, and those behind `AUTH` in `HELLO`.
fn secrets(arguments: Arguments<'_>) -> impl Fn(usize) -> bool {
    let name = arguments.get(0).unwrap_or_default();
    let first = if is(name, "AUTH") {
        Some(1)
    } else if is(name, "HELLO") {
        arguments.iter().position(|word| is(word, "AUTH")).map(|at| at + 1)
    } else {
        None
    };
    move |number| first.is_some_and(|first| number >= first)
}

fn shortened(argument: &[u8]) -> Vec<u8> {
    let Some(start) = argument.get(..ARGUMENT_BYTES_MAX).filter(|start| start.len() < argument.len()) else {
        return argument.to_vec();
    };
    let mut kept = start.to_vec();
    kept.extend_from_slice(format!("... ({} more bytes)", argument.len() - start.len()).as_bytes());
    kept
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::batch::Batch;
    use super::super::clients::{Addresses, Clients};
    use super::super::frame::FrameLimits;
    use super::*;

    fn logged(line: &str) -> Vec<String> {
        let (mut batch, mut input) = (Batch::default(), format!("{line}\n").into_bytes());
        batch.fill(&mut input, 0, 1, &FrameLimits::DEFAULT);
        kept(batch.command(0, &input)).into_iter().map(|kept| String::from_utf8(kept).unwrap()).collect()
    }

    #[test]
    fn calls_are_shortened() {
        assert_eq!(logged("SCARD following:1"), ["SCARD", "following:1"]);
        let long = logged(&format!("ECHO {}", "x".repeat(130)));
        assert_eq!(long[1], format!("{}... (2 more bytes)", "x".repeat(128)));
        let many = logged(&format!("EXISTS{}", " following:1".repeat(40)));
        assert_eq!((many.len(), many[31].as_str()), (32, "... (10 more arguments)"));
        assert_eq!(logged(&format!("EXISTS{}", " following:1".repeat(31))).len(), 32);
    }

    #[test]
    fn credentials_are_not_kept() {
        assert_eq!(logged("AUTH secret"), ["AUTH", "(redacted)"]);
        assert_eq!(logged("auth me secret"), ["auth", "(redacted)", "(redacted)"]);
        assert_eq!(logged("HELLO 3 auth me secret"), ["HELLO", "3", "auth", "(redacted)", "(redacted)"]);
    }

    #[test]
    fn the_latest_stay() {
        let clients = Arc::new(Clients::default());
        let peer = "127.0.0.1:9".parse().unwrap();
        let client = clients.add(1, Addresses { peer, local: None }, Arc::default());
        let log = SlowLog::new(Some(Duration::from_millis(10)), 2);
        assert!(log.is_slow(Duration::from_millis(10)) && !log.is_slow(Duration::from_millis(9)));
        let (mut batch, mut input) = (Batch::default(), b"PING\n".to_vec());
        batch.fill(&mut input, 0, 1, &FrameLimits::DEFAULT);
        for _ in 0..3 {
            log.add(&client, batch.command(0, &input), 0, Duration::from_millis(11));
        }
        assert_eq!(log.latest(9).iter().map(|entry| entry.id).collect::<Vec<_>>(), [2, 1]);
        assert_eq!((log.latest(1).len(), log.len()), (1, 2));
        log.clear();
        assert_eq!(log.len(), 0);
        log.add(&client, batch.command(0, &input), 4, Duration::from_millis(11));
        let entry = log.latest(1).remove(0);
        assert_eq!((entry.id, entry.peer.as_str()), (3, "127.0.0.1:9"));
        assert_eq!(entry.arguments[1], b"... (4 more commands with it)");
        assert!(!SlowLog::new(None, 2).is_slow(Duration::MAX));
        assert!(!SlowLog::new(Some(Duration::ZERO), 0).is_slow(Duration::MAX));
    }
}
