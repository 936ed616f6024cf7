//! The settings of a client.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use kinfolk_api::Id;
use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, parse_pem};

use crate::session::{Session, Shared};
use crate::transport::Transport;
use crate::{Client, Error, Result, Retry, blocking};

/// Builds a client. See [`Client::builder`].
///
/// ```no_run
/// use std::time::Duration;
///
/// # fn main() -> kinfolk_client::Result<()> {
/// let client = kinfolk_client::Client::builder("https://graph.example.org")
///     .credential("kf_…")
///     .timeout(Duration::from_secs(2))
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct ClientBuilder {
    pub(crate) url: String,
    pub(crate) credential: Option<String>,
    pub(crate) trusted: Option<Vec<Certificate<'static>>>,
    pub(crate) user_agent: Option<String>,
    pub(crate) connect_timeout: Duration,
    pub(crate) timeout: Duration,
    retry: Retry,
    actor: Option<Id>,
    in_flight_max: usize,
}

/// Without the credential.
impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ClientBuilder").field("url", &self.url).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(crate) fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            credential: None,
            trusted: None,
            user_agent: None,
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(60),
            retry: Retry::default(),
            actor: None,
            in_flight_max: 64,
        }
    }

    /// Authenticates with an API key or a JWT, as a bearer token.
    pub fn credential(self, credential: impl Into<String>) -> Self {
        Self { credential: Some(credential.into()), ..self }
    }

    /// The user for whom a service acts. End users act as the subject of their JWT and need none.
    pub fn actor(self, actor: impl Into<Id>) -> Self {
        Self { actor: Some(actor.into()), ..self }
    }

    /// Trusts these certificates (PEM) instead of the usual authorities.
    ///
    /// # Errors
    /// If there is no certificate in the text.
    pub fn trust_pem(self, pem: &[u8]) -> Result<Self> {
        let mut trusted = Vec::new();
        for item in parse_pem(pem) {
            let malformed = |error| Error::Configuration(format!("a certificate is malformed: {error}"));
            if let PemItem::Certificate(certificate) = item.map_err(malformed)? {
                trusted.push(certificate);
            }
        }
        if trusted.is_empty() {
            return Err(Error::Configuration("there is no certificate to trust".to_owned()));
        }
        Ok(Self { trusted: Some(trusted), ..self })
    }

    /// As [`ClientBuilder::trust_pem`], with the certificates of a file.
    ///
    /// # Errors
    /// If the file can't be read, or has no certificate in it.
    pub fn trust_file(self, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |reason: &dyn std::fmt::Display| {
            Error::Configuration(format!("could not read certificates from {}: {reason}", path.display()))
        };
        let pem = std::fs::read(path).map_err(|error| failed(&error))?;
        self.trust_pem(&pem).map_err(|error| failed(&error))
    }

    /// How long connecting may take. 5 seconds by default.
    pub fn connect_timeout(self, connect_timeout: Duration) -> Self {
        Self { connect_timeout, ..self }
    }

    /// How long an attempt may take, from connecting to the end of the response. 60 seconds by default. Jobs, downloads and the
    /// change stream are not bounded by it.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// How failed requests are repeated.
    pub fn retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// The header `User-Agent`.
    pub fn user_agent(self, user_agent: impl Into<String>) -> Self {
        Self { user_agent: Some(user_agent.into()), ..self }
    }

    /// How many requests an async client sends at once; further ones wait. Each takes a thread of Tokio's blocking pool while it
    /// is sent. 64 by default.
    pub fn in_flight_max(self, in_flight_max: usize) -> Self {
        Self { in_flight_max, ..self }
    }

    /// An async client. Nothing is sent yet.
    ///
    /// # Errors
    /// If the URL is not one of a server.
    pub fn build(self) -> Result<Client> {
        self.session().map(|session| Client { session })
    }

    /// A blocking client. Nothing is sent yet.
    ///
    /// # Errors
    /// If the URL is not one of a server.
    pub fn build_blocking(self) -> Result<blocking::Client> {
        self.session().map(|session| blocking::Client { session })
    }

    fn session(self) -> Result<Session> {
        let uri: Option<Uri> = self.url.parse().ok();
        let is_server = uri.is_some_and(|uri| {
            uri.host().is_some()
                && matches!(uri.scheme_str(), Some("http" | "https"))
                && uri.query().is_none()
        });
        if !is_server {
            return Err(Error::Configuration(format!("{} is not a URL of a server", self.url)));
        }
        let shared = Shared {
            transport: Transport::new(&self),
            retry: self.retry,
            in_flight: Arc::new(tokio::sync::Semaphore::new(self.in_flight_max.max(1))),
        };
        Ok(Session::new(Arc::new(shared), self.actor))
    }
}
