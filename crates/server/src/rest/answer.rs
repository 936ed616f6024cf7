//! The outermost step of a request: it gets a name and a span, and what failed gets its document. No routes here.

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use kinfolk_core::Error;
use tower::ServiceExt;
use tracing::Instrument;

use super::problem::{self, Failure};
use super::{Shared, Store, request_id, system};

/// Answers one request.
pub async fn answer<S: Store>(shared: Shared<S>, router: Router, request: Request<Incoming>) -> Response {
    let mut request = request.map(Body::new);
    let request_id = shared.request_ids.of(request.headers());
    let span = tracing::info_span!(
        "request",
        protocol = "rest",
        method = %request.method(),
        path = request.uri().path(),
        %request_id,
    );
    let mut response = if shared.door.service().is_none() && !system::is_about_health(request.uri().path()) {
        Failure(Error::Loading).into_response()
    } else {
        request.extensions_mut().insert(request_id.clone());
        router.oneshot(request).instrument(span.clone()).await.unwrap_or_else(|never| match never {})
    };
    span.in_scope(|| {
        problem::finish(&mut response, &request_id);
        tracing::debug!(status = response.status().as_u16(), "answered");
    });
    response.headers_mut().insert(request_id::HEADER, request_id.header());
    response
}
