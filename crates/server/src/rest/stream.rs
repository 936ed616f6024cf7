//! The change log as server-sent events. A stream holds one page at most: it reads the next one when the client has
//! taken the last, so that a slow reader costs no more than a fast one.

use std::convert::Infallible;
use std::io::Write as _;
use std::time::Instant;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use futures_util::stream;
use kinfolk_api::schema::lines::{ChangeEvents, EVENTS};
use kinfolk_core::changes::{Change, LogPage};
use kinfolk_core::{Epoch, Frontier};
use tokio::sync::watch;
use tokio::time::timeout;

use super::changes::{POSITION_REFUSALS, frontier};
use super::extract::header;
use super::prelude::*;
use super::problem::problem;
use super::tail::{self, Growth};
use crate::access::Scope;
use crate::metrics::Protocol;

/// The usual size of an event.
const EVENT_BYTES: usize = 256;

/// How many changes are read and sent at once.
const PAGE_LEN: usize = 256;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Clients that lose the stream come back after a second.
const OPENING: &[u8] = b"retry: 1000\n\n";
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

pub(crate) fn routes<S: Store>(routes: Routes<S>) -> Routes<S> {
    let endpoint = Endpoint::services(Operation::ChangesStream).long().abandonable();
    routes.add(endpoint.refusing(POSITION_REFUSALS), routes!(changes_stream))
}

/// The change log as it grows, as server-sent events.
///
/// Events come in pages, and the last event of a page has an id: the token to continue from, which browsers send by themselves when
/// they reconnect. A client that reconnects receives the events after the last id again; their `position` shows which it has
/// seen. An event named `problem` says why a stream ends early. Lines that begin with a colon keep the connection alive.
#[utoipa::path(get, path = "/v1/changes/stream", tag = "changes",
    params(
        ("after" = inline(Option<String>), Query, description = "The token to continue from [default: the oldest kept change]"),
        ("Last-Event-ID" = inline(Option<String>), Header, description = "As `after`, over which it takes precedence")),
    responses((status = 200, description = "A stream of events that does not end",
        content_type = EVENTS, body = inline(ChangeEvents))))]
pub(crate) async fn changes_stream<S: Store>(
    State(shared): State<Shared<S>>,
    call: Call<S>,
    headers: HeaderMap,
    mut query: Query,
) -> RestResult {
    let started = Instant::now();
    let after = query.one("after")?;
    query.end()?;
    let after = header(&headers, &LAST_EVENT_ID)?.map(str::to_owned).or(after);
    // Seen before the page is read: what comes after that is news.
    let tail = tail::follow(&shared);
    let epoch = call.service.epoch();
    // The first page is read now, so that a refused position is a response and not an event.
    let after = frontier(&call, after.as_deref())?;
    let LogPage { changes: page, next: after } = call.changes().read(&after, PAGE_LEN).await?;
    call.service.metrics.observe(Protocol::Rest, Operation::ChangesStream, 1, started.elapsed());
    let reader = Reader { shared, call, tail, epoch, after, page, stage: Stage::Opening };
    let mut response = Response::new(Body::from_stream(stream::unfold(reader, Reader::next)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Keeps a common proxy from buffering events.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
}

/// The state of a stream.
#[derive(PartialEq)]
enum Stage {
    Opening,
    Open,
    /// The reason was sent.
    Ended,
}

/// One client's position in the log.
struct Reader<S: Store> {
    shared: Shared<S>,
    call: Call<S>,
    tail: watch::Receiver<Growth>,
    /// The epoch of the frontier.
    epoch: Epoch,
    /// The frontier after `page`.
    after: Frontier,
    /// Changes that were read and not sent yet.
    page: Vec<Change>,
    stage: Stage,
}

impl<S: Store> Reader<S> {
    /// The next bytes to send. Called when the client has taken the previous ones.
    async fn next(mut self) -> Option<(std::result::Result<Bytes, Infallible>, Self)> {
        let bytes = match self.stage {
            Stage::Opening => {
                self.stage = Stage::Open;
                Bytes::from_static(OPENING)
            }
            Stage::Open => self.news().await?,
            Stage::Ended => return None,
        };
        Some((Ok(bytes), self))
    }

    /// The next events, or a keep-alive, or nothing at the end.
    async fn news(&mut self) -> Option<Bytes> {
        while !self.shared.stop.is_cancelled() {
            if let Err(error) = self.require_allowed() {
                return Some(self.end(&error));
            }
            if !self.page.is_empty() {
                let events = self.events();
                let held = self.shared.output.hold(&self.call.caller.identity, events);
                return Some(held.unwrap_or_else(|error| self.end(&error)));
            }
            // The watch may have ended while the client took a page.
            if *self.tail.borrow_and_update() == Growth::Ended {
                return None;
            }
            match self.call.changes().read(&self.after, PAGE_LEN).await {
                Ok(page) => (self.page, self.after) = (page.changes, page.next),
                Err(error) => return Some(self.end(&error)),
            }
            if !self.page.is_empty() {
                continue;
            }
            let grown = timeout(self.shared.settings.keep_alive_interval, self.tail.changed());
            let grown = tokio::select! {
                () = self.shared.stop.cancelled() => return None,
                grown = grown => grown,
            };
            match grown {
                Err(_) => return Some(Bytes::from_static(KEEP_ALIVE)),
                Ok(Ok(())) => {}
                Ok(Err(_)) => return None,
            }
        }
        None
    }

    /// Returns an error if the credential has expired, was revoked or lost its scope, or the log was restored.
    fn require_allowed(&self) -> Result<()> {
        self.call.caller.require(Scope::Read)?;
        if self.epoch == self.call.service.epoch() { Ok(()) } else { Err(Error::TokenFromOtherEpoch) }
    }

    fn events(&mut self) -> Bytes {
        let mut text = Vec::with_capacity(EVENT_BYTES * self.page.len());
        let last = self.page.len().saturating_sub(1);
        for (at, change) in self.page.drain(..).enumerate() {
            // A token names every shard, which is too long for each event.
            if at == last {
                let _ = writeln!(text, "id: {}", self.call.service.token(self.after.clone()));
            }
            let change = kinfolk_api::Change::from(change);
            let _ = write!(text, "event: {}\ndata: ", change.r#type);
            let _ = serde_json::to_writer(&mut text, &change);
            text.extend_from_slice(b"\n\n");
        }
        text.into()
    }

    fn end(&mut self, error: &Error) -> Bytes {
        self.stage = Stage::Ended;
        let problem = serde_json::to_string(&problem(error, &self.call.request_id)).unwrap_or_default();
        format!("event: problem\ndata: {problem}\n\n").into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use kinfolk_conformance::{ModelStore, SimulatedClock};
    use kinfolk_core::{Context, IdKind, Keyring, SigningKey};
    use utoipa::openapi::OpenApi;

    use super::super::endpoint::Cost;
    use super::super::extract::User;
    use super::super::{Rest, RestSettings};
    use super::*;
    use crate::access::Access;
    use crate::administration::Administration;
    use crate::service::{Door, Service, ServiceSettings};

    struct NoAdministration;

    impl Administration for NoAdministration {}

    /// A stream of an empty log that follows `tail`.
    fn reader(tail: watch::Receiver<Growth>) -> Reader<ModelStore> {
        let store = ModelStore::new(IdKind::Integer, Arc::new(SimulatedClock::default()));
        let keys = Keyring::new(SigningKey::new([7; 32]), []);
        let context = Context::new(Arc::new(store), keys, Context::<ModelStore>::PAGE_LIMIT_MAX);
        let (settings, access) = (ServiceSettings::default(), Access::open());
        let caller = access.anonymous().unwrap();
        let service = Service::new(context, settings, access, Arc::new(NoAdministration));
        // A stream that waits says so at once.
        let settings = RestSettings { keep_alive_interval: Duration::ZERO, ..RestSettings::default() };
        let shared = Rest::new(Door::closed(), settings, false, OpenApi::default());
        let call = Call {
            service: Arc::new(service),
            permit: caller.permit(Scope::Read).unwrap(),
            caller,
            user: User::Unnamed,
            cost: Cost::Request,
            seen: Frontier::default(),
            request_id: shared.request_ids.of(&HeaderMap::new()),
        };
        let (epoch, after, page, stage) =
            (call.service.epoch(), Frontier::default(), Vec::new(), Stage::Opening);
        Reader { shared, call, tail, epoch, after, page, stage }
    }

    #[tokio::test]
    async fn a_stream_notices_a_watch_that_ended_while_its_client_took_a_page() {
        let (growth, tail) = watch::channel(Growth::Grown);
        let (sent, reader) = reader(tail).next().await.unwrap();
        assert_eq!(sent.unwrap(), OPENING);
        let (sent, reader) = reader.next().await.unwrap();
        assert_eq!(sent.unwrap(), KEEP_ALIVE);
        growth.send_replace(Growth::Ended);
        assert!(reader.next().await.is_none());
    }
}
