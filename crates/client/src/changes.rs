//! The change log as a stream of events, resumed when the connection is lost.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines};
use std::time::Duration;

use kinfolk_api::{Change, Problem};
use kinfolk_core::{Sequence, Shard};

use crate::call::Request;
use crate::retry::Repeat;
use crate::session::Session;
use crate::{Error, Result};

/// A connection is replaced after this long, so that one that is dead without a sign does not hold the stream up for ever.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(300);

/// The change log as it grows, as an iterator that waits for changes.
///
/// A lost connection is resumed from the last token that the server sent, and changes that were received already are left out. The
/// iterator ends after an error, when retries are exhausted or the server refuses to continue, for instance with
/// `position_expired`.
pub struct ChangeEvents {
    session: Session,
    /// Where to resume.
    after: Option<String>,
    /// The last sequence received of each shard since then.
    received: BTreeMap<Shard, Sequence>,
    connection: Option<Events>,
    /// Failed attempts since the server last sent anything.
    failures: u32,
    /// Whether anybody still reads it. Asked whenever the server sends something.
    pub(crate) is_wanted: Box<dyn Fn() -> bool + Send>,
    is_finished: bool,
}

type Events = Lines<BufReader<ureq::BodyReader<'static>>>;

/// An event as the server sends it.
#[derive(Default)]
struct Event {
    id: Option<String>,
    name: String,
    data: String,
}

impl ChangeEvents {
    pub(crate) fn new(session: Session, after: Option<String>) -> Self {
        let received = BTreeMap::new();
        let is_wanted = Box::new(|| true);
        Self { session, after, received, connection: None, failures: 0, is_wanted, is_finished: false }
    }

    /// The token to resume from: it covers the changes up to the last one of a page.
    pub fn token(&self) -> Option<&str> {
        self.after.as_deref()
    }

    fn next_change(&mut self) -> Result<Change> {
        loop {
            match self.next_event().and_then(|event| self.take(event)) {
                Ok(Some(change)) => return Ok(change),
                Ok(None) => {}
                Err(error) => {
                    self.connection = None;
                    self.failures += 1;
                    let retry = self.session.shared.retry;
                    let wait = retry.wait(self.failures, Repeat::Idempotent, &error).ok_or(error)?;
                    std::thread::sleep(wait);
                }
            }
        }
    }

    /// The next event of the connection, which is opened if there is none.
    fn next_event(&mut self) -> Result<Event> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let mut event = Event::default();
        loop {
            let transport = &self.session.shared.transport;
            let line = connection.next().ok_or_else(|| transport.connection_failed(&"the stream ended"))?;
            let line = line.map_err(|error| transport.connection_failed(&error))?;
            // Keep-alives too: a quiet log is no failure.
            self.failures = 0;
            if !(self.is_wanted)() {
                return Err(Error::UnexpectedResponse("the stream is not read any more".to_owned()));
            }
            match line.split_once(": ") {
                Some(("id", token)) => event.id = Some(token.to_owned()),
                Some(("event", name)) => event.name = name.to_owned(),
                Some(("data", data)) => event.data = data.to_owned(),
                // An empty line ends an event. Others are comments, or fields of later versions.
                _ if line.is_empty() && !event.data.is_empty() => {
                    self.connection = Some(connection);
                    return Ok(event);
                }
                _ => {}
            }
        }
    }

    fn connect(&self) -> Result<Events> {
        let request = Request::get("/v1/changes/stream").query_optional("after", self.after.as_deref());
        let transport = &self.session.shared.transport;
        let body = transport.open(&request, &Default::default(), Some(CONNECTION_TIME_MAX))?;
        Ok(BufReader::new(body.into_with_config().limit(u64::MAX).reader()).lines())
    }

    /// The change of an event, unless it was received before.
    fn take(&mut self, event: Event) -> Result<Option<Change>> {
        let unexpected = |error: serde_json::Error| Error::UnexpectedResponse(error.to_string());
        if event.name == "problem" {
            let problem: Problem = serde_json::from_str(&event.data).map_err(unexpected)?;
            return Err(Error::refused(problem, None));
        }
        let change: Change = serde_json::from_str(&event.data).map_err(unexpected)?;
        let last = self.received.get(&change.position.shard);
        let is_new = last.is_none_or(|&last| last < change.position.sequence);
        if is_new {
            self.received.insert(change.position.shard, change.position.sequence);
        }
        if event.id.is_some() {
            self.after = event.id;
        }
        Ok(is_new.then_some(change))
    }
}

impl Iterator for ChangeEvents {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Result<Change>> {
        if self.is_finished {
            return None;
        }
        let change = self.next_change();
        self.is_finished = change.is_err();
        Some(change)
    }
}
