//! Sessions: what a visitor gets for an API key. The server keeps none: the cookie names the key and the session's end, signed with
//! the keys of the deployment, so that every process of a fleet accepts it, also after a restart.
//!
//! A session ends with its time, with its key, or when the visitor signs out. The last is known only to the process that was told:
//! another one of a fleet would accept a stolen cookie until its time is up.

use std::collections::HashMap;
use std::time::Duration;

use axum::http::HeaderMap;
use kinfolk_core::{Clock, Context, Deployment, Error, Result, SystemClock, Timestamp};
use parking_lot::Mutex;

use super::cookies;
use crate::access::KeyProof;

/// How long a session lasts.
pub(crate) const LIFETIME: Duration = Duration::from_secs(8 * 60 * 60);

/// How many sessions that were signed out are remembered. Beyond that, those that end first are forgotten.
const SIGNED_OUT_MAX: usize = 10_000;

const PURPOSE: &str = "kinfolk console session 1";
const NONCE_LEN: usize = 16;

type Nonce = [u8; NONCE_LEN];

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    /// The key that it began with.
    pub(crate) key: KeyProof,
    pub(crate) ends_at: Timestamp,
    nonce: Nonce,
}

impl Session {
    /// A session that begins now.
    pub(crate) fn begin(key: KeyProof) -> Result<Self> {
        let mut nonce = Nonce::default();
        let failed = |error| Error::Storage { detail: format!("no random numbers: {error}") };
        getrandom::fill(&mut nonce).map_err(failed)?;
        let ends_at = SystemClock.now().plus_millis(LIFETIME.as_millis() as u64);
        Ok(Self { key, ends_at, nonce })
    }

    /// The value of its cookie. Its bytes are the end in milliseconds (8, big-endian), the nonce (16), the fingerprint of the key
    /// (16), and the id of the key.
    pub(crate) fn seal(&self, context: &Context<impl Deployment>) -> String {
        let Self { key: KeyProof { id, fingerprint }, ends_at, nonce } = self;
        let message = [&ends_at.millis().to_be_bytes()[..], nonce, fingerprint, id.as_bytes()].concat();
        context.seal(PURPOSE, &message)
    }

    fn open(context: &Context<impl Deployment>, text: &str) -> Option<Self> {
        let message = context.unseal(PURPOSE, text)?;
        let (ends_at, rest) = message.split_first_chunk()?;
        let (nonce, rest) = rest.split_first_chunk()?;
        let (fingerprint, id) = rest.split_first_chunk()?;
        let key = KeyProof { id: std::str::from_utf8(id).ok()?.into(), fingerprint: *fingerprint };
        Some(Self { key, ends_at: Timestamp::from_millis(u64::from_be_bytes(*ends_at)), nonce: *nonce })
    }
}

/// Reads the cookies of sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    /// When each session that was signed out would have ended.
    signed_out: Mutex<HashMap<Nonce, Timestamp>>,
}

impl Sessions {
    /// The session of a visitor.
    ///
    /// # Errors
    /// If there is none, or it has ended.
    pub(crate) fn of(&self, headers: &HeaderMap, context: &Context<impl Deployment>) -> Result<Session> {
        let text = cookies::find(headers, cookies::SESSION)
            .ok_or(Error::Unauthenticated { detail: "sign in to use the console" })?;
        let session = Session::open(context, text).filter(|session| self.is_open(session, SystemClock.now()));
        session.ok_or(Error::Unauthenticated { detail: "the session has ended; sign in again" })
    }

    fn is_open(&self, session: &Session, now: Timestamp) -> bool {
        now < session.ends_at && !self.signed_out.lock().contains_key(&session.nonce)
    }

    /// Ends a session.
    pub(crate) fn sign_out(&self, session: &Session) {
        let now = SystemClock.now();
        let mut signed_out = self.signed_out.lock();
        if signed_out.len() >= SIGNED_OUT_MAX {
            signed_out.retain(|_, ends_at| now < *ends_at);
        }
        if signed_out.len() >= SIGNED_OUT_MAX
            && let Some(first) =
                signed_out.iter().min_by_key(|(_, ends_at)| **ends_at).map(|(nonce, _)| *nonce)
        {
            signed_out.remove(&first);
        }
        signed_out.insert(session.nonce, session.ends_at);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::http::HeaderValue;
    use axum::http::header::COOKIE;
    use kinfolk_conformance::{ModelStore, SimulatedClock};
    use kinfolk_core::{ErrorCode, IdKind, Keyring, SigningKey};

    use super::*;

    fn context(secret: u8) -> Context<ModelStore> {
        let store = ModelStore::new(IdKind::Integer, Arc::new(SimulatedClock::default()));
        let keys = Keyring::new(SigningKey::new([secret; 32]), []);
        Context::new(Arc::new(store), keys, Context::<ModelStore>::PAGE_LIMIT_MAX)
    }

    fn session() -> Session {
        Session::begin(KeyProof { id: "3f9a1c22d07b".into(), fingerprint: [7; 16] }).unwrap()
    }

    fn headers(value: &str) -> HeaderMap {
        let cookie = HeaderValue::try_from(format!("{}={value}", cookies::SESSION)).unwrap();
        [(COOKIE, cookie)].into_iter().collect()
    }

    #[test]
    fn a_cookie_has_its_session_and_another_deployment_has_none_of_it() {
        let (session, sessions) = (session(), Sessions::default());
        let text = session.seal(&context(1));
        assert_eq!(sessions.of(&headers(&text), &context(1)).unwrap(), session);
        let refused = |text: &str, secret| sessions.of(&headers(text), &context(secret)).unwrap_err().code();
        assert_eq!(refused(&text, 2), ErrorCode::Unauthenticated);
        assert_eq!(refused(&text[1..], 1), ErrorCode::Unauthenticated);
        assert_eq!(refused("", 1), ErrorCode::Unauthenticated);
        assert_eq!(refused(&context(1).seal("another purpose", b"message"), 1), ErrorCode::Unauthenticated);
        assert_eq!(refused(&context(1).seal(PURPOSE, b"short"), 1), ErrorCode::Unauthenticated);
    }

    #[test]
    fn a_session_ends_with_its_time_and_when_the_visitor_signs_out() {
        let (one, other, sessions) = (session(), session(), Sessions::default());
        assert!(sessions.is_open(&one, SystemClock.now()));
        assert!(!sessions.is_open(&one, one.ends_at));
        sessions.sign_out(&one);
        assert!(!sessions.is_open(&one, SystemClock.now()));
        assert!(sessions.is_open(&other, SystemClock.now()));
    }

    #[test]
    fn the_memory_of_sessions_that_were_signed_out_is_bounded() {
        let sessions = Sessions::default();
        let last =
            (0..SIGNED_OUT_MAX + 10).map(|_| session()).inspect(|session| sessions.sign_out(session)).last();
        assert_eq!(sessions.signed_out.lock().len(), SIGNED_OUT_MAX);
        assert!(!sessions.is_open(&last.unwrap(), SystemClock.now()));
    }
}
