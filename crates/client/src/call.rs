//! A request as data: what both clients send, and how they read the response. Nothing is sent here.

use std::fmt::Write as _;

use kinfolk_api::{Problem, WriteOutcome, Written, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::http::Method;

use crate::retry::Repeat;
use crate::{Error, Result};

/// A request, and how its response is read.
pub(crate) struct Call<T> {
    pub request: Request,
    pub read: fn(&Response) -> Result<T>,
}

/// A request without its response.
#[derive(Clone)]
pub(crate) struct Request {
    pub method: Method,
    /// The path with its query.
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub json: Option<Vec<u8>>,
    pub repeat: Repeat,
    /// Whether it writes: its response has a consistency token, and the next request carries it.
    pub is_write: bool,
}

/// A response that was read to its end.
pub(crate) struct Response {
    pub token: Option<String>,
    pub changed: bool,
    pub body: Vec<u8>,
}

impl Request {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into(), false)
    }

    /// A write that is idempotent.
    pub(crate) fn write(method: Method, path: impl Into<String>) -> Self {
        Self::new(method, path.into(), true)
    }

    fn new(method: Method, path: String, is_write: bool) -> Self {
        Self { method, path, headers: Vec::new(), json: None, repeat: Repeat::Idempotent, is_write }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn idempotency_key(self, key: impl Into<String>) -> Self {
        self.header(header::IDEMPOTENCY_KEY, key)
    }

    pub(crate) fn json(mut self, body: &impl Serialize) -> Self {
        // Only a map with keys that are not strings fails, and no request has one.
        self.json = Some(serde_json::to_vec(body).unwrap_or_default());
        self
    }

    pub(crate) fn repeat(mut self, repeat: Repeat) -> Self {
        self.repeat = repeat;
        self
    }

    /// Adds a parameter to the query.
    pub(crate) fn query(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        let separator = if self.path.contains('?') { '&' } else { '?' };
        // Writing to a string does not fail.
        let _ = write!(self.path, "{separator}{name}={}", escaped(&value.to_string()));
        self
    }

    /// Adds a parameter that may be missing.
    pub(crate) fn query_optional(self, name: &str, value: Option<impl std::fmt::Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// Reads the response as JSON.
    pub(crate) fn returning<T: DeserializeOwned>(self) -> Call<T> {
        Call { request: self, read: Response::json }
    }

    /// Reads the response in another way.
    pub(crate) fn reading<T>(self, read: fn(&Response) -> Result<T>) -> Call<T> {
        Call { request: self, read }
    }

    /// Reads the outcome of a write.
    pub(crate) fn returning_outcome(self) -> Call<WriteOutcome> {
        Call { request: self, read: Response::outcome }
    }

    /// Reads the outcome of a write, and the item that was written.
    pub(crate) fn returning_written<T: DeserializeOwned>(self) -> Call<Written<T>> {
        Call { request: self, read: |response| Ok(Written::new(response.outcome()?, response.json()?)) }
    }
}

impl Response {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| Error::UnexpectedResponse(error.to_string()))
    }

    fn outcome(&self) -> Result<WriteOutcome> {
        let missing = || Error::UnexpectedResponse("it has no consistency token".to_owned());
        let token = self.token.clone().ok_or_else(missing)?;
        Ok(WriteOutcome { changed: self.changed, token })
    }
}

/// Reads a problem document.
pub(crate) fn problem(status: u16, body: &[u8]) -> Option<Problem> {
    let mut problem: Problem = serde_json::from_slice(body).ok()?;
    if problem.status == 0 {
        problem.status = status;
    }
    Some(problem)
}

/// Text for a query: anything but letters, digits and a few signs is escaped.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_escaped() {
        let request =
            Request::get("/v1/x").query("a", "aZ0-_.~ &=é").query_optional("b", None::<u8>).query("c", 1);
        assert_eq!(request.path, "/v1/x?a=aZ0-_.~%20%26%3D%C3%A9&c=1");
    }
}
