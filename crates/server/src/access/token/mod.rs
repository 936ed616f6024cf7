//! End users by JSON Web Tokens that the application's identity provider has signed. Nothing is signed here.
//!
//! A token must name the user in `sub`, this service in `aud` and its end in `exp`; `nbf` is kept, and `iss` if
//! issuers are configured. Its algorithm must be allowed, and each key serves only algorithms of its own family: a
//! public key is never taken for a shared secret, as each comes from a file of its own, and there is no `none`.
//!
//! A user may read and write. Names in `scope` or `scopes` that begin with `kinfolk:` narrow that: a token with
//! `kinfolk:read` only reads. `kinfolk:moderate` is granted only where the settings allow it; `admin` never is.
//! Other names are other services' business and change nothing.

mod cache;
mod claims;
mod keys;
mod secret;
mod source;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cache::{TokenCache, Verified};
use claims::Claims;
use jsonwebtoken::errors::{Error as TokenError, ErrorKind};
use jsonwebtoken::{Algorithm, AlgorithmFamily, Header, decode, decode_header};
use keys::TokenKey;
use kinfolk_core::{Clock, Error, Id, IdKind, Result};
use source::{KeySource, SourceKind};

use super::caller::{Caller, Identity};
use crate::limits::Budget;

/// Longer tokens are refused unread: a token with many claims has one or two KiB.
const TOKEN_LEN_MAX: usize = 8 << 10;
/// How many verified tokens are cached.
const CACHED_MAX: usize = 10_000;

/// How end users' tokens are checked.
#[derive(Clone, Debug)]
pub struct TokenSettings {
    /// The issuer's public keys: a JWK set, or PEM.
    pub keys_file: Option<PathBuf>,
    /// The secret that is shared with the issuer. The algorithms of the HS family need it, and nothing else uses it.
    pub secret_file: Option<PathBuf>,
    /// The algorithms that are allowed, by the names of RFC 7518.
    pub algorithms: Vec<String>,
    /// What this service is called in `aud`: one of these.
    pub audiences: Vec<String>,
    /// Who may have issued a token; anybody with the keys if there are none.
    pub issuers: Vec<String>,
    /// How much clocks may differ.
    pub leeway: Duration,
    /// Whether a token may make its user a moderator.
    pub allow_moderate: bool,
}

/// The tokens that are valid now.
pub(super) struct Tokens {
    settings: TokenSettings,
    id_kind: IdKind,
    clock: Arc<dyn Clock>,
    sources: Vec<KeySource>,
    cache: TokenCache,
}

impl Tokens {
    /// Reads the keys; settings that can't work are refused.
    pub(crate) fn load(settings: &TokenSettings, id_kind: IdKind, clock: Arc<dyn Clock>) -> Result<Self> {
        let invalid = |detail: &str| Error::InvalidInput { detail: detail.to_owned() };
        if settings.audiences.is_empty() {
            return Err(invalid("tokens need an audience: configure what this service is called in aud"));
        }
        if settings.algorithms.is_empty() {
            return Err(invalid("tokens need an algorithm: allow at least one, such as RS256"));
        }
        let algorithms: Vec<Algorithm> =
            settings.algorithms.iter().map(|name| parse_algorithm(name)).collect::<Result<_>>()?;
        let is_shared = |algorithm: &Algorithm| algorithm.family() == AlgorithmFamily::Hmac;
        match (&settings.secret_file, algorithms.iter().find(|algorithm| is_shared(algorithm))) {
            (None, Some(algorithm)) => {
                return Err(invalid(&format!(
                    "{algorithm:?} signs with a shared secret: name a file with it in auth.token_secret, or take \
                     {algorithm:?} out of auth.algorithms; auth.token_keys is for public keys only"
                )));
            }
            (Some(_), None) => {
                return Err(invalid(
                    "auth.token_secret is only used by HS256, HS384 and HS512: allow one of them in \
                     auth.algorithms, or leave the secret out",
                ));
            }
            _ => {}
        }
        let files = [
            (SourceKind::PublicKeys, &settings.keys_file),
            (SourceKind::SharedSecrets, &settings.secret_file),
        ];
        let files = files.into_iter().filter_map(|(kind, file)| Some((kind, file.as_ref()?)));
        let sources: Vec<KeySource> = files
            .map(|(kind, file)| KeySource::load(kind, file, &algorithms, &clock))
            .collect::<Result<_>>()?;
        if sources.is_empty() {
            return Err(invalid("tokens need keys: configure public keys or a shared secret"));
        }
        let cache = TokenCache::new(CACHED_MAX);
        Ok(Self { settings: settings.clone(), id_kind, clock, sources, cache })
    }

    /// The caller that a token belongs to. `budget` finds the budget of its user.
    pub(crate) fn authenticate(&self, token: &str, budget: impl FnOnce(Id) -> Arc<Budget>) -> Result<Caller> {
        if token.len() > TOKEN_LEN_MAX {
            return Err(refusal("the token is longer than 8 KiB"));
        }
        let digest = blake3::hash(token.as_bytes());
        // A revoked key may have been added again, as a new one: then the token is verified again.
        let verified = match self.cache.get(&digest).filter(|verified| !verified.standing.is_revoked()) {
            Some(verified) => verified,
            None => {
                let verified = self.verify(token)?;
                self.cache.insert(digest, verified.clone());
                verified
            }
        };
        let Verified { user, scopes, expires_at, standing } = verified;
        let identity = Identity::User(user);
        Ok(Caller { identity, scopes, budget: budget(user), expires_at: Some(expires_at), standing })
    }

    fn verify(&self, token: &str) -> Result<Verified> {
        let header = decode_header(token).map_err(|error| describe(&error))?;
        // What is critical must be understood, and no extension is (RFC 7515, 4.1.11).
        if header.crit.is_some() {
            return Err(refusal("the token has critical extensions, which are not understood"));
        }
        let mut refused = refusal("the token is signed by a key or an algorithm that is not accepted here");
        for source in &self.sources {
            for key in source.keys().candidates(&header) {
                match self.verify_with(token, &header, key) {
                    Ok(verified) => return Ok(verified),
                    Err(error) => refused = error,
                }
            }
        }
        Err(refused)
    }

    fn verify_with(&self, token: &str, header: &Header, key: &TokenKey) -> Result<Verified> {
        let validation = key.validation(header.alg, &self.settings);
        let claims = decode::<Claims>(token, &key.key, &validation).map_err(|error| describe(&error))?.claims;
        claims.require_one_issuer()?;
        let expires_at = claims.lifetime(self.clock.now(), self.settings.leeway)?;
        let user = claims.user(self.id_kind)?;
        let scopes = claims.scopes(self.settings.allow_moderate)?;
        Ok(Verified { user, scopes, expires_at, standing: Arc::clone(&key.standing) })
    }

    /// Reads all files again, even those that have not changed. The keys of a file that can't be used stay as they are, and
    /// the other files are still read.
    pub(crate) fn reload(&self) -> Result<()> {
        self.sources.iter().map(KeySource::reload).fold(Ok(()), Result::and)
    }

    /// As [`Tokens::reload`], for files that have changed; `report` gets what came of each, and says whether that is
    /// something new. Returns whether anything is.
    pub(crate) fn poll(&self, report: impl Fn(&'static str, Result<bool>) -> bool) -> bool {
        let reload =
            |changed, source: &KeySource| report(source.name(), source.reload_if_changed()) | changed;
        self.sources.iter().fold(false, reload)
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Tokens").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn parse_algorithm(name: &str) -> Result<Algorithm> {
    name.parse().map_err(|_| Error::InvalidInput {
        detail: format!(
            "{name:?} is not an algorithm that tokens may have: use HS256, HS384, HS512, RS256, RS384, RS512, \
             PS256, PS384, PS512, ES256, ES384 or EdDSA"
        ),
    })
}

fn refusal(detail: &'static str) -> Error {
    Error::Unauthenticated { detail }
}

fn describe(error: &TokenError) -> Error {
    refusal(match error.kind() {
        ErrorKind::InvalidSignature => "the signature of the token is not valid",
        ErrorKind::InvalidAudience => "the token is for another audience",
        ErrorKind::InvalidIssuer => "the token is from another issuer",
        ErrorKind::InvalidAlgorithm => "the token is signed by an algorithm that is not accepted here",
        ErrorKind::MissingRequiredClaim(claim) => match claim.as_str() {
            "exp" => "the token has no valid end (exp)",
            "aud" => "the token names no audience (aud)",
            "iss" => "the token names no issuer (iss)",
            _ => "the token names no user (sub)",
        },
        _ => "the token is malformed",
    })
}

#[cfg(test)]
mod tests;
