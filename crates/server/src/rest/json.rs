//! JSON responses. What they contain is defined in `kinfolk-api`.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use kinfolk_core::Error;
use serde::Serialize;

use super::problem::Failure;

/// The media type of responses.
pub(crate) const MEDIA_TYPE: &str = "application/json";

/// A response as JSON.
pub(crate) struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(text) => written(text),
            Err(error) => Failure(Error::Storage { detail: error.to_string() }).into_response(),
        }
    }
}

/// A response that is JSON already.
pub(crate) fn written(text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}
