//! A client of REST that survives the end of its server: an answer that did not come whole is none.

use serde_json::Value;
use ureq::http::Request;

use crate::serve::running::PATIENCE;

pub struct Client {
    agent: ureq::Agent,
    base: String,
}

/// What is asked for.
pub struct Ask<'a> {
    pub method: &'a str,
    pub path: String,
    pub actor: Option<u64>,
    pub header: Option<(&'a str, String)>,
    pub body: Option<Value>,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
    /// Of a write: a position at which it is visible, and whether it changed anything.
    pub token: Option<String>,
    pub changed: Option<bool>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The code of a refusal.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Ask<'_> {
    /// Reads something, as nobody in particular.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: "GET", path: path.into(), actor: None, header: None, body: None }
    }
}

impl Client {
    pub fn new(base: &str) -> Self {
        let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
        let agent = config.timeout_global(Some(PATIENCE)).build().new_agent();
        Self { agent, base: base.to_owned() }
    }

    /// Asks; nothing if the server goes before its answer is whole.
    pub fn send(&self, ask: &Ask<'_>) -> Option<Answer> {
        let uri = format!("{}{}", self.base, ask.path);
        let mut request = Request::builder().method(ask.method).uri(uri);
        if let Some(actor) = ask.actor {
            request = request.header("Kinfolk-Actor", actor.to_string());
        }
        if let Some((name, value)) = &ask.header {
            request = request.header(*name, value);
        }
        let answer = match &ask.body {
            Some(body) => {
                let request = request.header("Content-Type", "application/json");
                self.agent.run(request.body(body.to_string()).expect("a request of plain texts"))
            }
            None => self.agent.run(request.body(()).expect("a request of plain texts")),
        };
        let mut answer = answer.ok()?;
        let header = |name: &str| Some(answer.headers().get(name)?.to_str().ok()?.to_owned());
        let (token, changed) = (header("Kinfolk-Token"), header("Kinfolk-Changed"));
        let changed = changed.map(|changed| changed == "true");
        let body = answer.body_mut().with_config().limit(u64::MAX).read_to_string().ok()?;
        Some(Answer { status: answer.status().as_u16(), body, token, changed })
    }

    /// Reads something that must be there.
    pub fn get(&self, path: &str) -> Result<Value, String> {
        match self.send(&Ask::get(path)) {
            Some(answer) if answer.status == 200 => Ok(answer.json()),
            other => Err(format!("{path}: {other:?}")),
        }
    }
}
