//! JSON responses. What they contain is defined in `kinfolk-api`.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::Bytes;
use serde::Serialize;

/// The media type of responses.
pub(crate) const MEDIA_TYPE: &str = "application/json";

/// The JSON of a value that has one.
pub(crate) fn text(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// A response that is JSON already.
pub(crate) fn written(text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}
