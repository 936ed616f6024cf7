//! One attempt to send a request, over ureq. Retries and tokens are not here.

use std::io::Read;
use std::time::Duration;

use kinfolk_api::header;
use ureq::http::HeaderMap;
use ureq::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, RETRY_AFTER};
use ureq::http::request::Builder;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, AsSendBody, Body, SendBody};

use crate::builder::ClientBuilder;
use crate::call::{Request, Response, problem};
use crate::{Error, Result};

/// The largest response that is read into memory.
const RESPONSE_BYTES_MAX: u64 = 64 << 20;

const USER_AGENT: &str = concat!("kinfolk/", env!("CARGO_PKG_VERSION"));

/// Connections to one server.
pub(crate) struct Transport {
    agent: Agent,
    url: String,
    credential: Option<String>,
    timeout: Duration,
}

/// What a request carries besides itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    pub actor: Option<String>,
    pub token: Option<String>,
}

/// The body of an upload.
pub(crate) struct Upload<'a> {
    pub file: &'a mut dyn Read,
    /// How many bytes it has, if that is known.
    pub length: Option<u64>,
}

impl Transport {
    pub(crate) fn new(settings: &ClientBuilder) -> Self {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(settings.user_agent.as_deref().unwrap_or(USER_AGENT))
            .timeout_connect(Some(settings.connect_timeout));
        if let Some(certificates) = &settings.trusted {
            let roots = RootCerts::new_with_certs(certificates);
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        Self {
            agent: config.build().new_agent(),
            url: settings.url.trim_end_matches('/').to_owned(),
            credential: settings.credential.clone(),
            timeout: settings.timeout,
        }
    }

    /// Sends a small request and reads the whole response.
    pub(crate) fn send(&self, request: &Request, carried: &Carried) -> Result<Response> {
        let mut head = self.head(request, carried);
        let response = match &request.json {
            Some(json) => {
                // A server that refuses a body early closes the connection; a client that is still sending would miss the reason.
                head = head.header(CONTENT_TYPE, "application/json").header(EXPECT, "100-continue");
                self.run(head, json.as_slice(), Some(self.timeout))?
            }
            None => self.run(head, (), Some(self.timeout))?,
        };
        let response = self.require_success(response)?;
        let token = text(response.headers(), header::TOKEN);
        let changed = text(response.headers(), header::CHANGED).as_deref() != Some("false");
        Ok(Response { token, changed, body: self.read(response.into_body())? })
    }

    /// Opens a response of any length. It may take as long as it takes, unless `timeout` bounds it.
    pub(crate) fn open(
        &self,
        request: &Request,
        carried: &Carried,
        timeout: Option<Duration>,
    ) -> Result<Body> {
        let response = self.run(self.head(request, carried), (), timeout)?;
        Ok(self.require_success(response)?.into_body())
    }

    /// Sends a file of any length, and opens the response.
    pub(crate) fn upload(&self, request: &Request, carried: &Carried, upload: Upload<'_>) -> Result<Body> {
        let Upload { file, length } = upload;
        let mut head = self.head(request, carried).header(CONTENT_TYPE, "application/octet-stream");
        if let Some(length) = length {
            head = head.header(CONTENT_LENGTH, length);
        }
        let response = self.run(head, SendBody::from_reader(file), None)?;
        Ok(self.require_success(response)?.into_body())
    }

    /// An error of the connection.
    pub(crate) fn connection_failed(&self, reason: &dyn std::fmt::Display) -> Error {
        Error::Connection { url: self.url.clone(), reason: reason.to_string() }
    }

    fn head(&self, request: &Request, carried: &Carried) -> Builder {
        let mut head = ureq::http::Request::builder()
            .method(request.method.clone())
            .uri(format!("{}{}", self.url, request.path));
        if let Some(credential) = &self.credential {
            head = head.header(AUTHORIZATION, format!("Bearer {credential}"));
        }
        for (name, value) in [(header::ACTOR, &carried.actor), (header::TOKEN, &carried.token)] {
            if let Some(value) = value {
                head = head.header(name, value);
            }
        }
        request.headers.iter().fold(head, |head, (name, value)| head.header(*name, value))
    }

    fn run(
        &self,
        head: Builder,
        body: impl AsSendBody,
        timeout: Option<Duration>,
    ) -> Result<ureq::http::Response<Body>> {
        let malformed =
            |error| Error::Configuration(format!("the request to {} is malformed: {error}", self.url));
        let request = head.body(body).map_err(malformed)?;
        let request = self.agent.configure_request(request).timeout_global(timeout).build();
        self.agent.run(request).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &ureq::Error) -> Error {
        let is_unreachable = match error {
            ureq::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
            ureq::Error::Timeout(timeout) => matches!(timeout, ureq::Timeout::Connect),
            _ => false,
        };
        if is_unreachable {
            Error::Unreachable { url: self.url.clone() }
        } else {
            self.connection_failed(error)
        }
    }

    fn require_success(&self, response: ureq::http::Response<Body>) -> Result<ureq::http::Response<Body>> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let retry_after = text(response.headers(), RETRY_AFTER.as_str());
        let retry_after = retry_after.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
        let body = self.read(response.into_body())?;
        match problem(status.as_u16(), &body) {
            Some(problem) => Err(Error::refused(problem, retry_after)),
            None => Err(Error::UnexpectedResponse(format!("{status}; is it a Kinfolk server?"))),
        }
    }

    fn read(&self, body: Body) -> Result<Vec<u8>> {
        let read = body.into_with_config().limit(RESPONSE_BYTES_MAX).read_to_vec();
        read.map_err(|error| self.connection_failed(&error))
    }
}

/// The text of a header.
fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}
