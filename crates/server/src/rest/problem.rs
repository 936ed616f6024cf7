//! Problem documents (RFC 9457) for every refusal and failure.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use kinfolk_api::Problem;
use kinfolk_core::{Error, ErrorCode};

use super::request_id::RequestId;
use crate::internal_error::{self, Shown};

/// When to try again if the error itself does not say.
const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(1);

/// The result of a route.
pub(crate) type RestResult<T = Response> = Result<T, Failure>;

/// A failed request.
///
/// As a response it has no body yet: [`finish`] writes the document, with the request's id. Until then the error is in the
/// response's extensions, where it can be counted.
#[derive(Clone, Debug)]
pub(crate) struct Failure(pub Error);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status(self.0.code());
        response.extensions_mut().insert(self);
        response
    }
}

/// The problem document of an error.
pub(crate) fn problem(error: &Error, request_id: &RequestId) -> Problem {
    internal_error::log(error, request_id);
    Problem::new(error.code(), Shown(error).to_string(), request_id.as_str().to_owned())
}

/// Gives a failed response its document and headers. Other responses stay as they are.
pub(crate) fn finish(response: &mut Response, request_id: &RequestId) {
    let Some(Failure(error)) = response.extensions_mut().remove() else { return };
    let document = serde_json::to_vec(&problem(&error, request_id)).unwrap_or_default();
    *response.body_mut() = Body::from(document);
    let headers = response.headers_mut();
    // Of the empty body that it had until now.
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(Problem::MEDIA_TYPE));
    if let Some(after) = retry_after(&error) {
        headers.insert(RETRY_AFTER, seconds(after));
    }
    if matches!(error, Error::UnsupportedContentCoding) {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    if error.code() == ErrorCode::Unauthenticated {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"kinfolk\""));
    }
}

fn status(code: ErrorCode) -> StatusCode {
    StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// A time to wait, as the header `Retry-After` has it.
pub(crate) fn seconds(after: Duration) -> HeaderValue {
    HeaderValue::from(after.as_millis().div_ceil(1_000).max(1) as u64)
}

/// When a request that failed for now may be sent again.
pub(crate) fn retry_after(error: &Error) -> Option<Duration> {
    match error {
        Error::Overloaded { retry_after }
        | Error::RateLimited { retry_after }
        | Error::Unavailable { retry_after, .. } => Some(*retry_after),
        Error::NotYetVisible { .. } | Error::Loading => Some(RETRY_AFTER_DEFAULT),
        // Not what timed out or met the end of the store: it may have had an effect, and is not to be repeated by a proxy.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::super::request_id::{HEADER, RequestIds};
    use super::*;

    fn finished(error: Error) -> Response {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_static("r1"));
        let mut response = Failure(error).into_response();
        finish(&mut response, &RequestIds::new().of(&headers));
        response
    }

    #[test]
    fn the_table_decides_the_status_and_some_errors_bring_headers() {
        let limited = finished(Error::RateLimited { retry_after: Duration::from_millis(1_200) });
        assert_eq!(limited.status(), 429);
        assert_eq!(limited.headers()[RETRY_AFTER], "2");
        let retry_after = Duration::from_millis(2_500);
        let unavailable = finished(Error::Unavailable { what: "a host".to_owned(), retry_after });
        assert_eq!(
            (unavailable.status().as_u16(), &unavailable.headers()[RETRY_AFTER]),
            (503, &HeaderValue::from(3))
        );
        for (unknown, status) in [(Error::TimedOut, 504), (Error::Closed, 503)] {
            assert!(unknown.is_outcome_unknown());
            let unknown = finished(unknown);
            assert_eq!((unknown.status().as_u16(), unknown.headers().get(RETRY_AFTER)), (status, None));
        }
        let unauthenticated = finished(Error::Unauthenticated { detail: "no" });
        assert_eq!(unauthenticated.status(), 401);
        assert!(unauthenticated.headers().contains_key(WWW_AUTHENTICATE));
        assert_eq!(unauthenticated.headers()[CONTENT_TYPE], Problem::MEDIA_TYPE);
    }

    #[test]
    fn inner_details_stay_inside() {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_static("r1"));
        let id = RequestIds::new().of(&headers);
        let failure = Error::Storage { detail: "a secret path".to_owned() };
        assert!(!serde_json::to_string(&problem(&failure, &id)).unwrap().contains("secret"));
        let refusal = serde_json::to_string(&problem(&Error::SelfFollow, &id)).unwrap();
        insta::assert_snapshot!(refusal, @r#"{"type":"urn:kinfolk:problem:self_follow","title":"self follow","status":422,"detail":"a user cannot follow itself","code":"self_follow","request_id":"r1"}"#);
    }
}
