//! How much memory responses may take that wait for their clients: in all, and of each caller. What one connection may
//! hold is bounded elsewhere: it has one response at a time, and its next request is read when that is sent.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use kinfolk_core::{Error, Result};
use parking_lot::Mutex;

use crate::access::Identity;

/// Responses up to this size are not counted: they are no more than what a connection costs anyway.
const COUNTED_BYTES_MIN: usize = 16 * 1024;

/// An end user may have this part of what a service may: there are many of them, and they are not trusted.
const USER_PART: usize = 16;

const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Counts the bytes of responses that clients have not taken yet.
#[derive(Debug)]
pub(crate) struct Output {
    bytes_max: usize,
    caller_bytes_max: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    callers: HashMap<Identity, usize>,
}

impl Output {
    /// At most `bytes_max` in all and `caller_bytes_max` of a caller, of an end user much less, except that a response larger
    /// than that may be the only one.
    pub(crate) fn new(bytes_max: usize, caller_bytes_max: usize) -> Self {
        Self { bytes_max, caller_bytes_max, held: Mutex::default() }
    }

    /// Refuses a caller who reads none of its responses. Asked before a write, whose response is sent in any case. What
    /// others hold does not matter: clients that read nothing must not keep others from writing. So owed responses may go
    /// beyond the maximum of all, but for each caller by no more than its own maximum and what it writes at the same moment.
    ///
    /// # Errors
    /// [`Error::Overloaded`] if the caller holds as much as is allowed.
    pub(crate) fn require_room(&self, caller: &Identity) -> Result<()> {
        self.require_of_caller(&self.held.lock(), caller, 1)
    }

    fn require(&self, held: &Held, caller: &Identity, bytes: usize) -> Result<()> {
        require(held.bytes, bytes, self.bytes_max)?;
        self.require_of_caller(held, caller, bytes)
    }

    fn require_of_caller(&self, held: &Held, caller: &Identity, bytes: usize) -> Result<()> {
        let max = match caller {
            Identity::User(_) => self.caller_bytes_max / USER_PART,
            Identity::Service(_) | Identity::Anyone => self.caller_bytes_max,
        };
        require(held.callers.get(caller).copied().unwrap_or_default(), bytes, max)
    }

    fn take(self: &Arc<Self>, caller: &Identity, bytes: usize, rule: Rule) -> Result<Share> {
        let mut held = self.held.lock();
        if rule == Rule::Limited {
            self.require(&held, caller, bytes)?;
        }
        held.bytes += bytes;
        *held.callers.entry(caller.clone()).or_default() += bytes;
        Ok(Share { output: Arc::clone(self), caller: caller.clone(), bytes })
    }

    /// Counts a part of a stream until it is sent.
    ///
    /// # Errors
    /// [`Error::Overloaded`] if there is no room for it.
    pub(crate) fn hold(self: &Arc<Self>, caller: &Identity, bytes: Bytes) -> Result<Bytes> {
        if bytes.len() < COUNTED_BYTES_MIN {
            return Ok(bytes);
        }
        let share = Arc::new(self.take(caller, bytes.len(), Rule::Limited)?);
        Ok(Bytes::from_owner(Counted { bytes, _share: share }))
    }

    /// Counts a whole response until it is sent. Streams, whose size is not known, count their parts themselves.
    ///
    /// # Errors
    /// [`Error::Overloaded`] if there is no room for it and the rule wants room.
    pub(crate) fn hold_response(
        self: &Arc<Self>,
        caller: &Identity,
        response: Response,
        rule: Rule,
    ) -> Result<Response> {
        let bytes = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
        let Some(bytes) = bytes.filter(|&bytes| bytes >= COUNTED_BYTES_MIN) else { return Ok(response) };
        let share = Arc::new(self.take(caller, bytes, rule)?);
        Ok(response.map(|body| Body::new(CountedBody { body, share })))
    }
}

fn require(held: usize, more: usize, max: usize) -> Result<()> {
    if held == 0 || held.saturating_add(more) <= max {
        return Ok(());
    }
    Err(Error::Overloaded { retry_after: RETRY_AFTER })
}

/// Whether a response needs room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// It is refused if there is none.
    Limited,
    /// It says that a write was applied: it is sent and counted in any case.
    Owed,
}

/// What a response holds, for as long as this lives.
#[derive(Debug)]
struct Share {
    output: Arc<Output>,
    caller: Identity,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.output.held.lock();
        held.bytes -= self.bytes;
        if let Entry::Occupied(mut of_caller) = held.callers.entry(self.caller.clone()) {
            *of_caller.get_mut() -= self.bytes;
            if *of_caller.get() == 0 {
                of_caller.remove();
            }
        }
    }
}

/// Bytes with their share: hyper drops both when the socket has taken them.
struct Counted {
    bytes: Bytes,
    _share: Arc<Share>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A body whose bytes are counted. It has a share too: compression keeps the body, and much besides, until its end.
struct CountedBody {
    body: Body,
    share: Arc<Share>,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        let counted = |bytes| Bytes::from_owner(Counted { bytes, _share: Arc::clone(&self.share) });
        frame.map_ok(|frame| frame.map_data(counted))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use kinfolk_core::Id;

    use super::*;

    const PAGE: usize = COUNTED_BYTES_MIN;

    fn output() -> Arc<Output> {
        Arc::new(Output::new(4 * PAGE, 2 * PAGE))
    }

    fn service(name: &str) -> Identity {
        Identity::Service(name.into())
    }

    fn page() -> Bytes {
        vec![7; PAGE].into()
    }

    #[test]
    fn a_caller_has_its_limit_and_all_together_have_theirs() {
        let (output, [one, two, three]) = (output(), ["one", "two", "three"].map(service));
        let held = [&one, &one, &two, &two].map(|caller| output.hold(caller, page()).unwrap());
        assert!(matches!(output.hold(&one, page()), Err(Error::Overloaded { .. })));
        assert!(output.require_room(&one).is_err());
        assert!(output.hold(&three, page()).is_err(), "it holds nothing, but there is no room");
        assert!(output.hold(&three, Bytes::from_static(b"small")).is_ok());
        let owed = Response::new(Body::from(page()));
        let owed = output.hold_response(&one, owed, Rule::Owed).unwrap();
        drop((held, owed));
        let held = output.held.lock();
        assert_eq!((held.bytes, held.callers.len()), (0, 0));
    }

    #[test]
    fn users_who_read_nothing_keep_nobody_from_writing() {
        let output = Arc::new(Output::new(8 * PAGE, 2 * PAGE * USER_PART));
        let user = |number| Identity::User(Id::Integer(number));
        let held: Vec<Bytes> = (0..100).filter_map(|n| output.hold(&user(n % 10), page()).ok()).collect();
        assert_eq!((held.len(), output.held.lock().bytes), (8, 8 * PAGE), "bounded in all");
        assert!(output.hold(&user(11), page()).is_err() && output.hold(&service("one"), page()).is_err());
        output.require_room(&user(11)).unwrap();
        output.require_room(&service("one")).unwrap();
        drop(held);
        let held: Vec<Bytes> = (0..100).filter_map(|_| output.hold(&user(1), page()).ok()).collect();
        assert_eq!(held.len(), 2, "a small part is a user's");
        assert!(output.require_room(&user(1)).is_err());
    }

    #[test]
    fn a_response_larger_than_the_limit_may_be_the_only_one() {
        let (output, one) = (output(), service("one"));
        let large = output.hold(&one, vec![7; 9 * PAGE].into()).unwrap();
        assert!(output.hold(&one, page()).is_err());
        drop(large);
        assert!(output.hold(&one, page()).is_ok());
    }

    #[tokio::test]
    async fn bytes_are_counted_until_they_are_dropped_even_when_their_body_is() {
        let (output, one) = (output(), service("one"));
        let response = Response::new(Body::from(page()));
        let mut response = output.hold_response(&one, response, Rule::Limited).unwrap();
        let bytes = response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
        drop(response);
        assert_eq!(output.held.lock().bytes, PAGE);
        assert_eq!(bytes, page());
        drop(bytes);
        assert_eq!(output.held.lock().bytes, 0);
    }
}
