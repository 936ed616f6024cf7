//! The outermost step of a request: it gets an id and a span, and a failed one its problem document. Routes are elsewhere.
//!
//! The span's fields are named as OpenTelemetry names them (`http.request.method`, …), besides the protocol and the request's name; the
//! guard of a route names it after its operation. Without a route it is called `request`.

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CONNECTION, HOST};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::{body::Body, http};
use hyper::body::{Body as _, Incoming};
use kinfolk_core::Error;
use tower::ServiceExt;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::exchange::{Exchange, RequestBody, ResponseBody};
use super::malformed::BUFFER_BYTES_MAX;
use super::problem::{self, Failure};
use super::request_id::RequestId;
use super::trace_context::TraceParent;
use super::{Rest, Shared, Store, request_id, system};
use crate::console::{self, Asked};

/// Responds to one request.
pub(crate) async fn respond<S: Store>(
    shared: Shared<S>,
    router: Router,
    exchange: Exchange,
    request: Request<Incoming>,
) -> http::Response<ResponseBody> {
    let page =
        shared.settings.console.as_ref().zip(Asked::of(request.method(), request.uri(), request.headers()));
    let body_bytes = request.body().size_hint().lower();
    let mut request = request.map(|body| Body::new(RequestBody { body, exchange: exchange.clone() }));
    let request_id = shared.request_ids.of(request.headers());
    let span = span_of(&request, &request_id);
    if let Some(adopt) = shared.settings.adopt_trace
        && let Some(parent) = TraceParent::of(request.headers())
    {
        adopt(&span, &parent);
    }
    let has_hosts = request.headers().get_all(HOST).iter().nth(1).is_some();
    let mut response = if has_hosts {
        let detail = "the header host is given more than once".to_owned();
        Failure(Error::InvalidRequest { detail }).into_response()
    } else if shared.door.service().is_none() && !needs_no_service(request.uri().path()) {
        Failure(Error::Loading).into_response()
    } else {
        request.extensions_mut().insert(request_id.clone());
        request.extensions_mut().insert(exchange.clone());
        router.oneshot(request).instrument(span.clone()).await.unwrap_or_else(|never| match never {})
    };
    note_outcome(&span, &response);
    span.in_scope(|| {
        if let Some((settings, asked)) = page {
            console::finish(&asked, settings, &mut response, &request_id);
        }
        finish(&mut response, &request_id);
    });
    // hyper ends a connection whose request it can't read to the end by itself.
    let is_left_unread = body_bytes > BUFFER_BYTES_MAX as u64 && exchange.lacks_body();
    // A client that knows nothing of readiness moves on between two requests, while its next connection is still accepted.
    if has_hosts || is_left_unread || exchange.is_out_of_step() || shared.door.is_closing() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response.map(|body| ResponseBody { body, exchange })
}

/// The response to what could not be read as a request.
pub(crate) fn refuse<S: Store>(shared: &Rest<S>, error: Error) -> Response {
    let request_id = shared.request_ids.of(&HeaderMap::new());
    let mut response = Failure(error).into_response();
    finish(&mut response, &request_id);
    response
}

/// Whether a path is served while the store loads.
fn needs_no_service(path: &str) -> bool {
    system::is_about_health(path) || console::is_asset(path)
}

fn finish(response: &mut Response, request_id: &RequestId) {
    problem::finish(response, request_id);
    tracing::debug!(status = response.status().as_u16(), "responded");
    response.headers_mut().insert(request_id::HEADER, request_id.header());
}

fn span_of(request: &Request, request_id: &RequestId) -> Span {
    tracing::info_span!(
        "request",
        otel.name = Empty,
        otel.kind = "server",
        otel.status_code = Empty,
        protocol = "rest",
        http.request.method = %request.method(),
        url.path = request.uri().path(),
        http.response.status_code = Empty,
        "error.type" = Empty,
        %request_id,
    )
}

fn note_outcome(span: &Span, response: &Response) {
    span.record("http.response.status_code", response.status().as_u16());
    if let Some(Failure(error)) = response.extensions().get() {
        span.record("error.type", error.code().name());
    }
    // Errors that the client can correct are not errors of the server.
    if response.status().is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}
