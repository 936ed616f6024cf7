//! How far a connection is with the current request. hyper does not report it, so the service, the two bodies and the socket
//! each report what they see. Nothing is read or written here.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::socket::LEAVING_MAX;

/// The current request, shared by all parts of its connection. Requests of a connection are served one after another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchange(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    stage: Stage,
    body: BodyState,
    is_abandonable: bool,
    /// The client sends no more.
    input_ended: bool,
    /// Until when an abandonable request goes on after that.
    abandoned_at: Option<Instant>,
    /// The connection, where hyper is not to know that yet.
    connection: Option<Waker>,
    /// The route, where it waits for more of the request's body.
    route: Option<Waker>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Every request so far has its response, and the socket has taken all of it.
    #[default]
    Idle,
    /// A request was received; its response is not complete.
    Responding,
    /// hyper has the whole response, but the socket may not.
    Responded,
}

/// What has arrived of the request's body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum BodyState {
    /// All of it, or there is none.
    #[default]
    Whole,
    /// More can be read.
    Partial,
    /// A route waits for more.
    Awaited,
    /// A route waits for more, and the client sends no more.
    Missing,
    /// No more can be read: it ended early, or its encoding is malformed.
    Broken,
}

/// Whether hyper may know that the client sends no more.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EndOfInput {
    Known,
    /// From a moment on: one who has only closed its sending side gets what comes soon.
    KnownAt(Instant),
    Held,
}

impl Exchange {
    /// A request was received, of which the body may be to come.
    pub(crate) fn begin(&self, body: &Incoming) {
        let body = if body.is_end_stream() { BodyState::Whole } else { BodyState::Partial };
        let mut state = self.0.lock();
        let input_ended = state.input_ended;
        *state = State { stage: Stage::Responding, body, input_ended, ..State::default() };
    }

    /// Whether nothing is owed to the client: what hyper writes now is no response of ours.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.lock().stage == Stage::Idle
    }

    /// The socket has taken everything that hyper had.
    pub(crate) fn flushed(&self) {
        let mut state = self.0.lock();
        if state.stage == Stage::Responded {
            state.stage = Stage::Idle;
            wake(&mut state.connection);
        }
    }

    /// The request is cancelled a moment after its client sends no more: the client counts as gone.
    pub(crate) fn abandon_with_client(&self) {
        let mut state = self.0.lock();
        state.is_abandonable = true;
        wake(&mut state.connection);
    }

    /// The client sends no more. Says whether hyper may know: it takes that for the end of the connection, so not while a
    /// response is owed to a request that has arrived in full.
    pub(crate) fn end_of_input(&self, context: &Context<'_>) -> EndOfInput {
        let mut state = self.0.lock();
        state.input_ended = true;
        let is_incomplete = matches!(state.body, BodyState::Missing | BodyState::Broken);
        if state.stage == Stage::Idle || is_incomplete {
            return EndOfInput::Known;
        }
        state.connection = Some(context.waker().clone());
        // It takes what hyper has passed on already, and then knows whether anything is missing.
        wake(&mut state.route);
        if state.is_abandonable {
            return EndOfInput::KnownAt(
                *state.abandoned_at.get_or_insert_with(|| Instant::now() + LEAVING_MAX),
            );
        }
        EndOfInput::Held
    }

    /// Whether a route waits for the request's body.
    pub(crate) fn awaits_body(&self) -> bool {
        self.0.lock().body == BodyState::Awaited
    }

    /// Whether something of the request's body may still come, or was lost.
    pub(crate) fn lacks_body(&self) -> bool {
        self.0.lock().body != BodyState::Whole
    }

    /// Whether no further request can be read: where the body of this one ends is not known.
    pub(crate) fn is_out_of_step(&self) -> bool {
        matches!(self.0.lock().body, BodyState::Awaited | BodyState::Missing | BodyState::Broken)
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// The body of a request, as it arrives.
pub(crate) struct RequestBody {
    pub body: Incoming,
    pub exchange: Exchange,
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // Asked before: what hyper has passed on until then is taken now.
        let input_ended = self.exchange.0.lock().input_ended;
        let frame = Pin::new(&mut self.body).poll_frame(context);
        let body = match &frame {
            Poll::Pending if input_ended => BodyState::Missing,
            Poll::Pending => BodyState::Awaited,
            Poll::Ready(Some(Err(_))) => BodyState::Broken,
            Poll::Ready(Some(Ok(_))) if !self.body.is_end_stream() => BodyState::Partial,
            Poll::Ready(Some(Ok(_)) | None) => BodyState::Whole,
        };
        let mut state = self.exchange.0.lock();
        state.body = body;
        match body {
            // The end of input came in between, and found nobody to wake.
            BodyState::Awaited if state.input_ended => context.waker().wake_by_ref(),
            BodyState::Awaited => state.route = Some(context.waker().clone()),
            BodyState::Missing => wake(&mut state.connection),
            BodyState::Whole | BodyState::Partial | BodyState::Broken => {}
        }
        drop(state);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response. hyper drops it once it has taken all of it.
pub(crate) struct ResponseBody {
    pub body: Body,
    pub exchange: Exchange,
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.exchange.0.lock().stage = Stage::Responded;
    }
}
