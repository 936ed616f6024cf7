//! Clients that follow, unfollow and read back through a load balancer. Each request goes to another process than the one before,
//! with the token of the last write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::balancer::{Backend, Balancer};
use super::client::{HttpClient, Lost, RespClient};
use crate::serve::running::Answer;

/// Ids of one client: its followers, then its followees, each of which is followed once.
const IDS: u64 = 1_000_000;
const FOLLOWERS: u64 = 300;

/// How often a read is tried that is told to try again. Each waits for a second.
const TRIES_MAX: u32 = 20;

/// A request that got no answer, or a wrong one.
#[derive(Debug)]
pub(super) struct Failure {
    /// The process that it was sent to.
    pub(super) http: String,
    /// Whether the connection ended before the answer.
    pub(super) is_broken: bool,
    /// For the reader of a failed test.
    pub(super) what: String,
}

/// What became of the requests of a client.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) requests: u64,
    /// Connections that nobody accepted, so that the request went to another process.
    pub(super) refused: u64,
    /// Reads that were told to try again, because a machine that is busy had not projected a write within a second.
    pub(super) late: u64,
    pub(super) failures: Vec<Failure>,
    /// Edges, and whether they exist now.
    pub(super) acknowledged: Vec<(u64, u64, bool)>,
    pub(super) slowest: Duration,
}

impl Outcome {
    /// Together with another client's.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.requests += other.requests;
        self.refused += other.refused;
        self.late += other.late;
        self.failures.extend(other.failures);
        self.acknowledged.extend(other.acknowledged);
        self.slowest = self.slowest.max(other.slowest);
        self
    }

    fn fail(&mut self, backend: &Backend, is_broken: bool, what: String) {
        self.failures.push(Failure { http: backend.http.clone(), is_broken, what });
    }

    /// Sends to a process, or to one after another until one accepts the connection. None if there is no answer.
    fn send<T>(
        &mut self,
        balancer: &Balancer,
        mut kept: Option<Arc<Backend>>,
        what: &str,
        mut send: impl FnMut(&Arc<Backend>) -> Result<T, Lost>,
    ) -> Option<(Arc<Backend>, T)> {
        loop {
            let (backend, began) = (kept.take().unwrap_or_else(|| balancer.choose()), Instant::now());
            let sent = send(&backend);
            self.slowest = self.slowest.max(began.elapsed());
            match sent {
                Ok(answer) => {
                    self.requests += 1;
                    return Some((backend, answer));
                }
                Err(Lost::Refused) => {
                    self.refused += 1;
                    backend.leave_out();
                }
                Err(Lost::Broken(error)) => {
                    self.requests += 1;
                    self.fail(&backend, true, format!("{what}: {error}"));
                    return None;
                }
            }
        }
    }
}

/// The edges of a client, each of which is new.
fn edges(client: u64) -> impl Iterator<Item = (u64, u64)> {
    let first = (client + 1) * IDS;
    (0..).map(move |number| (first + number % FOLLOWERS, first + FOLLOWERS + number))
}

/// A client of REST, until the test ends.
pub(super) fn over_rest(balancer: &Balancer, client: u64, ends: &AtomicBool) -> Outcome {
    let mut rest = RestLoad { balancer, client: HttpClient::default(), outcome: Outcome::default() };
    for (follower, followee) in edges(client).take_while(|_| !ends.load(Ordering::Acquire)) {
        // Without an answer it is not known whether the edge exists.
        let is_followed = rest.write(follower, followee, true);
        let is_settled = is_followed && (followee % 4 > 0 || rest.write(follower, followee, false));
        if is_settled {
            rest.outcome.acknowledged.push((follower, followee, followee % 4 > 0));
        }
    }
    rest.outcome
}

struct RestLoad<'a> {
    balancer: &'a Balancer,
    client: HttpClient,
    outcome: Outcome,
}

impl RestLoad<'_> {
    /// Sends a request that must succeed. One that is told to try again does.
    fn ask(&mut self, line: &str, headers: &[(&str, &str)], body: &str) -> Option<Answer> {
        let Self { balancer, client, outcome } = self;
        for _ in 0..TRIES_MAX {
            let (backend, answer) = outcome
                .send(balancer, None, line, |backend| client.send(&backend.http, line, headers, body))?;
            match answer.status {
                200..300 => return Some(answer),
                503 if answer.body.contains("not_yet_visible") => outcome.late += 1,
                _ => {
                    outcome.fail(&backend, false, format!("{line}: {answer:?}"));
                    return None;
                }
            }
        }
        panic!("{line} is never visible");
    }

    /// Writes an edge, and reads it in both directions. Says whether the write was acknowledged.
    fn write(&mut self, follower: u64, followee: u64, exists: bool) -> bool {
        let method = if exists { "POST" } else { "DELETE" };
        let actor = follower.to_string();
        let path = format!("{method} /v1/users/{followee}/follow");
        let Some(written) = self.ask(&path, &[("kinfolk-actor", &actor)], "") else { return false };
        let token = written.token.expect("a write has a token");
        let fresh = [("kinfolk-token", token.as_str())];
        let pairs = json!({ "pairs": [[actor, followee.to_string()]] }).to_string();
        let check = self.ask("POST /v1/check", &fresh, &pairs);
        self.expect(check, &json!({ "results": [exists] }), |answer| answer);
        let followers = self.ask(&format!("GET /v1/users/{followee}/followers"), &fresh, "");
        let expected = if exists { json!([actor]) } else { json!([]) };
        self.expect(followers, &expected, |answer| {
            answer["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect()
        });
        true
    }

    fn expect(&mut self, answer: Option<Answer>, expected: &Value, part: impl Fn(Value) -> Value) {
        let Some(answer) = answer else { return };
        let found = part(answer.json());
        assert_eq!(&found, expected, "a read with the token of a write shows it: {answer:?}");
    }
}

/// A client of the Redis protocol, until the test ends. It stays at a process for as long as that is ready, and some pipelines at most.
pub(super) fn over_resp(balancer: &Balancer, client: u64, ends: &AtomicBool) -> Outcome {
    const PIPELINES: u64 = 10;
    let mut outcome = Outcome::default();
    let mut kept: Option<(Arc<Backend>, RespClient)> = None;
    let mut token = None;
    for (follower, followee) in edges(client).take_while(|_| !ends.load(Ordering::Acquire)) {
        let mut commands: Vec<String> = token.iter().map(|token| format!("AFTER {token}")).collect();
        commands.extend([
            format!("FOLLOW {follower} {followee}"),
            format!("FOLLOWS {follower} {followee}"),
            format!("SCARD followers:{followee}"),
        ]);
        kept = kept.filter(|(backend, connection)| {
            followee % PIPELINES > 0 && backend.is_ready() && connection.is_open()
        });
        let at = kept.as_ref().map(|(backend, _)| Arc::clone(backend));
        let sent = outcome.send(balancer, at, "a pipeline", |backend| {
            let mut connection = match kept.take() {
                Some((_, connection)) => connection,
                None => RespClient::connect(&backend.resp)?,
            };
            let replies = connection.send(&commands)?;
            kept = Some((Arc::clone(backend), connection));
            Ok(replies)
        });
        let Some((backend, replies)) = sent else { continue };
        match &replies[replies.len() - 3..] {
            [written, one, other] if !written.starts_with('-') && [one, other] == [":1", ":1"] => {
                outcome.acknowledged.push((follower, followee, true));
                token = Some(written.clone());
            }
            [written, one, other] if one == ":1" && other.starts_with("-TRYAGAIN") => {
                outcome.late += 1;
                outcome.acknowledged.push((follower, followee, true));
                token = Some(written.clone());
            }
            _ => outcome.fail(&backend, false, format!("{commands:?}: {replies:?}")),
        }
    }
    outcome
}
