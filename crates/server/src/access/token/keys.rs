//! The keys that tokens may be signed with: public keys from a JWK set or PEM, and shared secrets. What a file of
//! shared secrets may hold is in `secret`.

use std::sync::Arc;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, Header, Validation};
use kinfolk_core::Clock;

use super::super::caller::Standing;
use super::super::scope::Scopes;
use super::{TokenSettings, secret};

/// RSA keys of less than 2,048 bits are refused (RFC 7518, 3.3). A modulus of that size has this many bytes.
const RSA_BYTES_MIN: usize = 256;

const PEM_BEGIN: &str = "-----BEGIN ";
/// Some editors put this in front of text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One key and what it may be used for.
pub(super) struct TokenKey {
    kid: Option<String>,
    algorithms: Vec<Algorithm>,
    pub key: DecodingKey,
    /// Shared by all callers whose tokens this key has signed.
    pub standing: Arc<Standing>,
    /// Identifies the key in the next version of the file.
    fingerprint: blake3::Hash,
}

impl TokenKey {
    /// What the library checks. Times are checked against our own clock, so that tests can hold it.
    pub(crate) fn validation(&self, algorithm: Algorithm, settings: &TokenSettings) -> Validation {
        let mut validation = Validation::new(algorithm);
        validation.validate_exp = false;
        validation.validate_nbf = false;
        validation.set_audience(&settings.audiences);
        let mut required = vec!["exp", "aud", "sub"];
        if !settings.issuers.is_empty() {
            validation.set_issuer(&settings.issuers);
            required.push("iss");
        }
        validation.set_required_spec_claims(&required);
        validation
    }
}

/// All keys of the issuer.
#[derive(Default)]
pub(super) struct TokenKeys(Vec<TokenKey>);

impl TokenKeys {
    /// Reads a file of public keys. The problem does not quote it.
    pub(crate) fn parse_public(
        content: &[u8],
        allowed: &[Algorithm],
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let content = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content).trim_ascii();
        let candidates = if content.starts_with(b"{") {
            from_jwk_set(content)?
        } else if memchr::memmem::find(content, PEM_BEGIN.as_bytes()).is_some() {
            from_pem(content)?
        } else {
            return Err(
                "neither a JWK set, {\"keys\": [...]}, nor public keys in PEM; a shared secret belongs in a \
                        file of its own, named by auth.token_secret"
                    .to_owned(),
            );
        };
        Self::admit(candidates, allowed, clock)
    }

    /// Reads a file of shared secrets. The problem does not quote it.
    pub(crate) fn parse_secrets(
        content: &[u8],
        allowed: &[Algorithm],
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let secrets = secret::parse(content)?;
        let candidates = secrets.iter().map(|secret| Candidate::new(None, DecodingKey::from_secret(secret)));
        Self::admit(candidates, allowed, clock)
    }

    fn admit(
        candidates: impl IntoIterator<Item = Candidate>,
        allowed: &[Algorithm],
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let usable = candidates.into_iter().filter_map(|candidate| candidate.admit(allowed, clock)).collect();
        let keys = Self(usable);
        if keys.0.is_empty() {
            return Err(format!("no key in the file can be used with the allowed algorithms {allowed:?}"));
        }
        Ok(keys)
    }

    /// Which keys may have signed a token: those of its key id, or those that have none. A token without a key id
    /// must leave no choice.
    pub(crate) fn candidates<'a>(&'a self, header: &'a Header) -> impl Iterator<Item = &'a TokenKey> {
        let fits = |key: &&TokenKey| key.algorithms.contains(&header.alg);
        let alone = self.0.iter().filter(fits).count() == 1;
        self.0.iter().filter(fits).filter(move |key| match (&header.kid, &key.kid) {
            (Some(asked), Some(kid)) => asked == kid,
            (None, Some(_)) => alone,
            (_, None) => true,
        })
    }

    /// Replaces former keys: those that are no longer there are revoked, the others go on.
    pub(crate) fn succeed(&mut self, former: &Self) {
        for old in &former.0 {
            match self.0.iter_mut().find(|key| key.fingerprint == old.fingerprint) {
                Some(kept) => kept.standing = Arc::clone(&old.standing),
                None => old.standing.revoke(),
            }
        }
    }
}

/// A key as found in the file.
struct Candidate {
    kid: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

impl Candidate {
    fn new(kid: Option<String>, key: DecodingKey) -> Self {
        Self { kid, algorithms: key.family().algorithms().to_vec(), key }
    }

    /// The key with those of its algorithms that are allowed, if there are any.
    fn admit(mut self, allowed: &[Algorithm], clock: &Arc<dyn Clock>) -> Option<TokenKey> {
        self.algorithms.retain(|algorithm| allowed.contains(algorithm));
        if self.algorithms.is_empty() {
            tracing::warn!(
                kid = self.kid,
                "a key for tokens fits none of the allowed algorithms; it is not used"
            );
            return None;
        }
        let fingerprint = self.fingerprint();
        let Self { kid, algorithms, key } = self;
        let standing = Arc::new(Standing::new(Arc::clone(clock), Scopes::all(), None));
        Some(TokenKey { kid, algorithms, key, standing, fingerprint })
    }

    fn fingerprint(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_derive_key("kinfolk 2026-11 token key fingerprint");
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        };
        add(format!("{:?} {:?} {:?}", self.kid, self.algorithms, self.key.family()).as_bytes());
        match self.key.kind() {
            DecodingKeyKind::SecretOrDer(bytes) => add(bytes),
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                add(n);
                add(e);
            }
        }
        hasher.finalize()
    }

    fn check_size(self) -> Result<Self, &'static str> {
        if self.key.family() == AlgorithmFamily::Rsa && key_bytes(&self.key) < RSA_BYTES_MIN {
            return Err("an RSA key must have at least 2048 bits");
        }
        Ok(self)
    }
}

fn key_bytes(key: &DecodingKey) -> usize {
    match key.kind() {
        DecodingKeyKind::SecretOrDer(bytes) => bytes.len(),
        DecodingKeyKind::RsaModulusExponent { n, .. } => n.len(),
    }
}

/// Keys of other uses and kinds are common in such sets, and are passed over.
fn from_jwk_set(content: &[u8]) -> Result<Vec<Candidate>, String> {
    // The parser's own message may quote a key.
    let set: JwkSet = serde_json::from_slice(content)
        .map_err(|error| format!("not a JWK set: line {}, column {}", error.line(), error.column()))?;
    set.keys.iter().filter_map(|jwk| from_jwk(jwk).transpose()).collect()
}

fn from_jwk(jwk: &Jwk) -> Result<Option<Candidate>, String> {
    let common = &jwk.common;
    let name = || common.key_id.as_deref().unwrap_or("without a kid").to_owned();
    let signs = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
    if signs && matches!(jwk.algorithm, AlgorithmParameters::OctetKey(_)) {
        return Err(format!(
            "the key {} is a shared secret, not a public key: name a file with it in auth.token_secret",
            name()
        ));
    }
    let supported = match &jwk.algorithm {
        AlgorithmParameters::EllipticCurve(parameters) => match parameters.curve {
            EllipticCurve::P256 => vec![Algorithm::ES256],
            EllipticCurve::P384 => vec![Algorithm::ES384],
            _ => Vec::new(),
        },
        AlgorithmParameters::OctetKeyPair(parameters) if parameters.curve == EllipticCurve::Ed25519 => {
            vec![Algorithm::EdDSA]
        }
        AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa.algorithms().to_vec(),
        _ => Vec::new(),
    };
    let named = |algorithm: &Algorithm| match common.key_algorithm {
        Some(own) => Algorithm::try_from(own).is_ok_and(|own| own == *algorithm),
        None => true,
    };
    let algorithms: Vec<_> = supported.into_iter().filter(named).collect();
    if !signs || algorithms.is_empty() {
        return Ok(None);
    }
    let key = DecodingKey::from_jwk(jwk).map_err(|_| format!("the key {} is malformed", name()))?;
    let candidate = Candidate { kid: common.key_id.clone(), algorithms, key };
    candidate.check_size().map(Some).map_err(|problem| format!("the key {}: {problem}", name()))
}

/// Public keys, one after the other. Each serves the algorithms of its own kind.
fn from_pem(content: &[u8]) -> Result<Vec<Candidate>, String> {
    let mut text = std::str::from_utf8(content).map_err(|_| "not PEM: the file is not text".to_owned())?;
    let mut candidates = Vec::new();
    while let Some(at) = text.find(PEM_BEGIN) {
        let block = &text[at..];
        let label = block[PEM_BEGIN.len()..].split("-----").next().unwrap_or_default();
        if !matches!(label, "PUBLIC KEY" | "RSA PUBLIC KEY") {
            return Err(format!(
                "a {label:.40} is not a public key: make one of it with openssl pkey -pubout"
            ));
        }
        let end = format!("-----END {label}-----");
        let length = block.find(&end).ok_or_else(|| format!("the {label} has no end"))? + end.len();
        let pem = &block.as_bytes()[..length];
        let key = DecodingKey::from_rsa_pem(pem)
            .or_else(|_| DecodingKey::from_ec_pem(pem))
            .or_else(|_| DecodingKey::from_ed_pem(pem))
            .map_err(|_| format!("the {label} is malformed or of a kind that is not known"))?;
        candidates.push(Candidate::new(None, key).check_size()?);
        text = &block[length..];
    }
    Ok(candidates)
}
