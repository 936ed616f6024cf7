//! What a verified token says: its user, its scopes, and when it expires.

use std::time::Duration;

use kinfolk_core::{Error, Id, IdKind, Result, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::super::scope::{Scope, Scopes};
use super::refusal;

/// Scopes of other services are in the same claim, so ours carry our name.
const SCOPE_PREFIX: &str = "kinfolk:";

#[derive(Deserialize)]
pub(super) struct Claims {
    exp: Option<Value>,
    nbf: Option<Value>,
    iss: Option<Value>,
    sub: Option<Value>,
    scope: Option<Value>,
    scopes: Option<Value>,
}

impl Claims {
    /// When the token ends, if it is valid now.
    pub(crate) fn lifetime(&self, now: Timestamp, leeway: Duration) -> Result<Timestamp> {
        let leeway = leeway.as_millis() as u64;
        let end = self.exp.as_ref().and_then(moment).ok_or(refusal("the token has no valid end (exp)"))?;
        let expires_at = end.plus_millis(leeway);
        if now >= expires_at {
            return Err(refusal("the token has expired; get a new one"));
        }
        if let Some(not_before) = &self.nbf {
            let start = moment(not_before).ok_or(refusal("the token has no valid start (nbf)"))?;
            if start > now.plus_millis(leeway) {
                return Err(refusal("the token is not valid yet"));
            }
        }
        Ok(expires_at)
    }

    /// Refuses a token that names its issuer by anything but one string (RFC 7519, 4.1.1). The library accepts a list
    /// of names too, which does not identify the one that has signed.
    pub(crate) fn require_one_issuer(&self) -> Result<()> {
        if self.iss.as_ref().is_none_or(Value::is_string) {
            return Ok(());
        }
        Err(refusal("the issuer of the token (iss) is not a text"))
    }

    /// The user. Only the usual way to write an id is accepted: to an identity provider `7` and `007` may be two users.
    pub(crate) fn user(&self, kind: IdKind) -> Result<Id> {
        const REFUSED: Error = Error::Unauthenticated {
            detail: "the subject of the token (sub) is not an id of the kind that this deployment uses",
        };
        let subject = self.sub.as_ref().and_then(Value::as_str).ok_or(REFUSED)?;
        let user = kind.parse(subject).map_err(|_| REFUSED)?;
        if user.to_string().eq_ignore_ascii_case(subject) { Ok(user) } else { Err(REFUSED) }
    }

    /// What the user may do.
    pub(crate) fn scopes(&self, allow_moderate: bool) -> Result<Scopes> {
        let mut names = Vec::new();
        for claim in [&self.scope, &self.scopes].into_iter().flatten() {
            add_names(claim, &mut names).ok_or(refusal("the scopes of the token are not text"))?;
        }
        let ours: Vec<_> = names.iter().filter_map(|name| name.strip_prefix(SCOPE_PREFIX)).collect();
        if ours.is_empty() {
            return Ok([Scope::Read, Scope::Write].into_iter().collect());
        }
        let grantable = |scope: &Scope| match scope {
            Scope::Read | Scope::Write => true,
            Scope::Moderate => allow_moderate,
            Scope::Admin => false,
        };
        Ok(ours.into_iter().filter_map(Scope::from_name).filter(grantable).collect())
    }
}

/// Reads names: a string that separates them by spaces (RFC 8693), or an array of such strings.
fn add_names<'a>(claim: &'a Value, names: &mut Vec<&'a str>) -> Option<()> {
    match claim {
        Value::String(text) => names.extend(text.split_ascii_whitespace()),
        Value::Array(texts) => {
            for text in texts {
                names.extend(text.as_str()?.split_ascii_whitespace());
            }
        }
        _ => return None,
    }
    Some(())
}

/// A NumericDate: seconds since 1970, possibly with a fraction.
fn moment(value: &Value) -> Option<Timestamp> {
    let seconds = value.as_f64().filter(|seconds| seconds.is_finite() && *seconds >= 0.0)?;
    Some(Timestamp::from_millis((seconds * 1_000.0) as u64))
}
