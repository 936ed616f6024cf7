//! A small HTTP client for a Kinfolk server: sends, streams, and turns problem documents into errors. Which calls
//! there are is in `server`.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use kinfolk_core::ErrorCode;
use kinfolk_core::bulk::Progress;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use ureq::http::request::Builder;
use ureq::http::{Method, Request, Response, StatusCode};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, AsSendBody, Body, SendBody};

use super::ServerAddress;
use crate::failure::Refusal;
use crate::progress::{READING, Reporter, SUGGESTING};

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a small call may take. Bulk work is not bounded.
const CALL: Duration = Duration::from_secs(60);
/// The largest answer that is taken into memory.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// A client of one server.
pub(crate) struct HttpClient {
    agent: Agent,
    base: String,
    credential: Option<String>,
}

/// What to send.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    /// The path with its query.
    pub(crate) path: String,
    /// Who acts, for writes.
    pub(crate) actor: Option<String>,
    /// Names a write, so that it can be repeated.
    pub(crate) idempotency_key: Option<Arc<str>>,
    /// The version that a write is about.
    pub(crate) if_match: Option<String>,
    pub(crate) body: Option<(&'static str, &'a mut dyn Read)>,
    /// How many bytes the body has, if that is known.
    pub(crate) body_length: Option<u64>,
    /// Whether it may take as long as it takes.
    pub(crate) is_bulk: bool,
}

impl Call<'_> {
    /// A call without a body.
    pub(crate) fn new(method: Method, path: String) -> Self {
        Self {
            method,
            path,
            actor: None,
            idempotency_key: None,
            if_match: None,
            body: None,
            body_length: None,
            is_bulk: false,
        }
    }
}

impl HttpClient {
    /// A client; nothing is sent yet.
    pub(crate) fn new(address: &ServerAddress) -> Result<Self> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(concat!("kinfolk/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT));
        if let Some(path) = &address.ca_file {
            let certificates = RootCerts::new_with_certs(&certificates(path)?);
            config = config.tls_config(TlsConfig::builder().root_certs(certificates).build());
        }
        let base = address.url.trim_end_matches('/').to_owned();
        Ok(Self { agent: config.build().new_agent(), base, credential: address.credential.clone() })
    }

    /// Sends; an answer that is not a success is an error.
    pub(crate) fn send(&self, call: Call<'_>) -> Result<Response<Body>> {
        let mut request = Request::builder().method(call.method).uri(format!("{}{}", self.base, call.path));
        if let Some(credential) = &self.credential {
            request = request.header("Authorization", format!("Bearer {credential}"));
        }
        if let Some(actor) = call.actor {
            request = request.header("Kinfolk-Actor", actor);
        }
        if let Some(key) = call.idempotency_key {
            request = request.header("Idempotency-Key", &*key);
        }
        if let Some(version) = call.if_match {
            request = request.header("If-Match", version);
        }
        let answer = match call.body {
            Some((media_type, reader)) => {
                let mut request = request.header("Content-Type", media_type);
                if let Some(length) = call.body_length {
                    request = request.header("Content-Length", length);
                }
                // A server that refuses closes the connection, and its reason would be lost on whoever is still
                // sending. Bulk work reads to the end whatever happens, and answers while it does.
                if !call.is_bulk {
                    request = request.header("Expect", "100-continue");
                }
                self.run(request, SendBody::from_reader(reader), call.is_bulk)?
            }
            None => self.run(request, (), call.is_bulk)?,
        };
        if answer.status().is_success() { Ok(answer) } else { Err(refusal(answer).into()) }
    }

    fn run(&self, request: Builder, body: impl AsSendBody, is_bulk: bool) -> Result<Response<Body>> {
        let request =
            request.body(body).with_context(|| format!("{} is not a URL of a server", self.base))?;
        let timeout = (!is_bulk).then_some(CALL);
        let request = self.agent.configure_request(request).timeout_global(timeout).build();
        self.agent.run(request).map_err(|error| self.unreachable(&error))
    }

    /// Asks for a small JSON document.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: String) -> Result<T> {
        json(self.send(Call::new(Method::GET, path))?)
    }

    fn unreachable(&self, error: &ureq::Error) -> anyhow::Error {
        let base = &self.base;
        let is_absent = match error {
            ureq::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => true,
            ureq::Error::Timeout(timeout) => matches!(timeout, ureq::Timeout::Connect),
            _ => false,
        };
        if is_absent {
            return anyhow::anyhow!(
                "no server answers at {base}; start one with 'kinfolk serve' or name a folder with --data DIR"
            );
        }
        // In words only: a pipe to a server that breaks is a failure, unlike one that nobody reads our output from.
        anyhow::anyhow!("the server at {base} could not be asked: {error}")
    }
}

/// Reads a small JSON document.
pub(crate) fn json<T: DeserializeOwned>(answer: Response<Body>) -> Result<T> {
    let text = answer.into_body().into_with_config().limit(ANSWER_BYTES_MAX).read_to_string();
    let text = text.context("the server's answer could not be read")?;
    serde_json::from_str(&text).context("the server's answer is not what this version expects")
}

/// A line of the answer of long work; the last one has a result or an error.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line<T> {
    Progress { stage: String, done: u64, total: Option<u64> },
    Result(T),
    Error(Problem),
}

/// Reads the lines of long work to their end, telling its progress.
pub(crate) fn last_line<T: DeserializeOwned>(answer: Response<Body>, reporter: &Reporter) -> Result<T> {
    let lines = answer.into_body().into_with_config().limit(u64::MAX).reader();
    for line in BufReader::new(lines).lines() {
        let line = line.context("the server's answer could not be read to its end")?;
        match serde_json::from_str(&line).context("the server's answer is not what this version expects")? {
            Line::Progress { stage, done, total } => {
                reporter.report(Progress { stage: known_stage(&stage), done, total });
            }
            Line::Result(result) => return Ok(result),
            Line::Error(problem) => return Err(problem.into_refusal(None).into()),
        }
    }
    anyhow::bail!("the server ended without saying what it did; look at its log")
}

/// Stages are constants here; a newer server may have others.
fn known_stage(stage: &str) -> &'static str {
    const STAGES: [&str; 8] = [
        READING,
        SUGGESTING,
        "counting",
        "loading",
        "loading followers",
        "writing the index",
        "erasing",
        "merging",
    ];
    STAGES.into_iter().find(|known| *known == stage).unwrap_or("working")
}

/// A header of an answer.
pub(crate) fn header(answer: &Response<Body>, name: &str) -> Option<String> {
    answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// A problem document.
#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: Option<String>,
    title: Option<String>,
}

impl Problem {
    fn into_refusal(self, status: Option<StatusCode>) -> Refusal {
        let said = || {
            status.map_or("the server failed".to_owned(), |status| format!("the server answered {status}"))
        };
        let message = self.detail.or(self.title).unwrap_or_else(said);
        Refusal { code: ErrorCode::ALL.into_iter().find(|code| code.name() == self.code), message }
    }
}

fn refusal(answer: Response<Body>) -> Refusal {
    let status = answer.status();
    let text = answer.into_body().into_with_config().limit(ANSWER_BYTES_MAX).read_to_string();
    let problem = text.ok().and_then(|text| serde_json::from_str::<Problem>(&text).ok());
    match problem {
        Some(problem) => problem.into_refusal(Some(status)),
        None => {
            Refusal { code: None, message: format!("the server answered {status}; is it a Kinfolk server?") }
        }
    }
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>> {
    let could_not = || format!("could not read certificates from {}", path.display());
    let pem = std::fs::read(path).with_context(could_not)?;
    let mut certificates = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(certificate) = item.with_context(could_not)? {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        anyhow::bail!("{} has no certificate in it", path.display());
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_server_that_goes_away_is_not_taken_for_a_reader_that_has_seen_enough() {
        let url = "http://127.0.0.1:1".to_owned();
        let address = ServerAddress { url, credential: None, ca_file: None, objection: None };
        let client = HttpClient::new(&address).unwrap();
        let error = client.unreachable(&ureq::Error::Io(io::ErrorKind::BrokenPipe.into()));
        assert!(error.to_string().ends_with("could not be asked: io: broken pipe"), "{error}");
        assert!(error.chain().all(|cause| !cause.is::<io::Error>()), "{error:?}");
    }
}
