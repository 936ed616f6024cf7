//! Request ids: how logs, responses and problem documents name a request.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// The header that carries the name, both ways.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

const LEN_MAX: usize = 128;

/// The name of one request.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(HeaderValue);

impl RequestId {
    /// For a response.
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }

    /// For a document.
    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Gives names to requests that come without one.
#[derive(Debug)]
pub(crate) struct RequestIds {
    process: u64,
    next: AtomicU64,
}

impl RequestIds {
    /// Names that no other process gives.
    pub(crate) fn new() -> Self {
        Self {
            process: getrandom::u64().unwrap_or_else(|_| u64::from(std::process::id())),
            next: AtomicU64::new(1),
        }
    }

    /// The name that a request brought along if it is a sane one, otherwise a new one.
    pub(crate) fn of(&self, headers: &HeaderMap) -> RequestId {
        let sane = |value: &&HeaderValue| {
            (1..=LEN_MAX).contains(&value.len()) && value.as_bytes().iter().all(u8::is_ascii_graphic)
        };
        if let Some(given) = headers.get(HEADER).filter(sane) {
            return RequestId(given.clone());
        }
        let text = format!("{:016x}-{:x}", self.process, self.next.fetch_add(1, Ordering::Relaxed));
        RequestId(HeaderValue::try_from(text).expect("hexadecimal digits are a valid header"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sane_names_are_kept_and_others_replaced() {
        let ids = RequestIds::new();
        let of = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, value.parse().unwrap());
            ids.of(&headers).to_string()
        };
        assert_eq!(of("abc-123"), "abc-123");
        for bad in ["", "two words", &"x".repeat(129)] {
            assert_ne!(of(bad), bad);
        }
        assert_ne!(ids.of(&HeaderMap::new()).as_str(), ids.of(&HeaderMap::new()).as_str());
    }
}
