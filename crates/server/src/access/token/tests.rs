//! What tokens are accepted and refused, with real signatures and a clock that stands still.

use std::path::Path;

use jsonwebtoken::{EncodingKey, encode};
use kinfolk_conformance::SimulatedClock;
use kinfolk_core::ErrorCode;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::keys::TokenKeys;
use super::*;
use crate::access::{Access, AccessSettings, Scope, Scopes};
use crate::limits::{LimitSettings, Rate};

const RSA: &[u8] = include_bytes!("../../../tests/fixtures/test-only-rsa.pem");
const RSA_PUBLIC: &str = include_str!("../../../tests/fixtures/test-only-rsa-public.pem");
const RSA_1024_PUBLIC: &str = include_str!("../../../tests/fixtures/test-only-rsa-1024-public.pem");
const EC: &[u8] = include_bytes!("../../../tests/fixtures/test-only-ec.pem");
const EC_PUBLIC: &str = include_str!("../../../tests/fixtures/test-only-ec-public.pem");
const ED: &[u8] = include_bytes!("../../../tests/fixtures/test-only-ed.pem");
const ED_PUBLIC: &str = include_str!("../../../tests/fixtures/test-only-ed-public.pem");
const SECRET: &str = "a shared secret that is long enough for HS256";

/// A server that accepts tokens, its clock, and the file with its keys.
struct Setting {
    access: Access,
    clock: Arc<SimulatedClock>,
    folder: TempDir,
}

impl Setting {
    fn new(keys: &str, change: impl FnOnce(&mut AccessSettings)) -> Self {
        Self::try_new(keys, change).unwrap()
    }

    fn try_new(keys: &str, change: impl FnOnce(&mut AccessSettings)) -> Result<Self> {
        Self::with_files(Some(keys.as_bytes()), None, change)
    }

    /// With a shared secret, and public keys if there are any.
    fn shared(keys: Option<&str>, secret: &[u8], algorithms: &[&str]) -> Result<Self> {
        Self::with_files(keys.map(str::as_bytes), Some(secret), allow(algorithms))
    }

    fn with_files(
        keys: Option<&[u8]>,
        secret: Option<&[u8]>,
        change: impl FnOnce(&mut AccessSettings),
    ) -> Result<Self> {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: PathBuf, content| {
            std::fs::write(&path, content).unwrap();
            path
        };
        let keys_file = keys.map(|keys| write(keys_path(folder.path()), keys));
        let secret_file = secret.map(|secret| write(secret_path(folder.path()), secret));
        let clock = Arc::new(SimulatedClock::default());
        let tokens = TokenSettings {
            keys_file,
            secret_file,
            algorithms: ["RS256", "ES256", "EdDSA"].map(str::to_owned).to_vec(),
            audiences: vec!["kinfolk".to_owned()],
            issuers: Vec::new(),
            leeway: Duration::from_secs(30),
            allow_moderate: false,
        };
        let mut settings = AccessSettings {
            id_kind: IdKind::Integer,
            keys_file: None,
            tokens: Some(tokens),
            limits: LimitSettings::NONE,
            shared_budgets: None,
        };
        change(&mut settings);
        let access = Access::with_clock(&settings, &(Arc::clone(&clock) as _))?;
        Ok(Self { access, clock, folder })
    }

    fn clock_port(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as _
    }

    fn now(&self) -> u64 {
        self.clock.now().millis() / 1_000
    }

    /// Claims that are accepted.
    fn claims(&self) -> Value {
        json!({ "sub": "7", "aud": "kinfolk", "exp": self.now() + 600 })
    }

    fn accepted(&self, token: &str) -> Caller {
        self.access.authenticate(token).unwrap()
    }

    fn refused(&self, token: &str, expected: &str) {
        let error = self.access.authenticate(token).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unauthenticated);
        assert!(error.to_string().contains(expected), "{error}: {expected}");
    }

    fn replace_keys(&self, keys: &str) {
        std::fs::write(keys_path(self.folder.path()), keys).unwrap();
        self.access.poll();
    }

    fn replace_secret(&self, secret: &[u8]) {
        std::fs::write(secret_path(self.folder.path()), secret).unwrap();
        self.access.poll();
    }
}

fn keys_path(folder: &Path) -> PathBuf {
    folder.join("token-keys")
}

fn secret_path(folder: &Path) -> PathBuf {
    folder.join("token-secret")
}

fn tokens(settings: &mut AccessSettings) -> &mut TokenSettings {
    settings.tokens.as_mut().unwrap()
}

fn allow(names: &[&str]) -> impl FnOnce(&mut AccessSettings) {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    |settings| tokens(settings).algorithms = names
}

fn sign_with(header: &Header, claims: &Value, key: &EncodingKey) -> String {
    encode(header, claims, key).unwrap()
}

fn rsa(claims: &Value) -> String {
    sign_with(&Header::new(Algorithm::RS256), claims, &EncodingKey::from_rsa_pem(RSA).unwrap())
}

fn hmac(claims: &Value, secret: &[u8]) -> String {
    sign_with(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(secret))
}

/// The claims with some replaced; `null` takes one out.
fn with(mut claims: Value, changes: Value) -> Value {
    let Value::Object(changes) = changes else { panic!("changes are an object") };
    let object = claims.as_object_mut().unwrap();
    for (name, value) in changes {
        if value.is_null() {
            object.remove(&name);
        } else {
            object.insert(name, value);
        }
    }
    claims
}

fn jwk_set(keys: &[(&str, &[u8], Algorithm)]) -> String {
    let jwk = |(kid, pem, algorithm): &(&str, &[u8], Algorithm)| {
        let key = match algorithm.family() {
            AlgorithmFamily::Rsa => EncodingKey::from_rsa_pem(pem),
            AlgorithmFamily::Ec => EncodingKey::from_ec_pem(pem),
            AlgorithmFamily::Ed => EncodingKey::from_ed_pem(pem),
            AlgorithmFamily::Hmac => Ok(EncodingKey::from_secret(pem)),
        };
        let mut jwk = jsonwebtoken::jwk::Jwk::from_encoding_key(&key.unwrap(), *algorithm).unwrap();
        jwk.common.key_id = Some((*kid).to_owned());
        serde_json::to_value(jwk).unwrap()
    };
    json!({ "keys": keys.iter().map(jwk).collect::<Vec<_>>() }).to_string()
}

#[test]
fn a_user_is_known_by_its_token() {
    let setting = Setting::new(RSA_PUBLIC, |_| ());
    let token = rsa(&setting.claims());
    for _ in 0..2 {
        let caller = setting.accepted(&token);
        assert_eq!(caller.identity, Identity::User(Id::Integer(7)));
        assert!(caller.scopes.iter().eq([Scope::Read, Scope::Write]));
    }
}

#[test]
fn every_kind_of_key_works() {
    let keys = format!("Keys of the issuer:\n{RSA_PUBLIC}\n{EC_PUBLIC}{ED_PUBLIC}");
    let setting = Setting::new(&keys, |_| ());
    setting.accepted(&rsa(&setting.claims()));
    let ec = EncodingKey::from_ec_pem(EC).unwrap();
    setting.accepted(&sign_with(&Header::new(Algorithm::ES256), &setting.claims(), &ec));
    let ed = EncodingKey::from_ed_pem(ED).unwrap();
    setting.accepted(&sign_with(&Header::new(Algorithm::EdDSA), &setting.claims(), &ed));
    let shared = Setting::shared(None, format!("{SECRET}\n").as_bytes(), &["HS256"]).unwrap();
    shared.accepted(&hmac(&shared.claims(), SECRET.as_bytes()));
    let both = Setting::shared(Some(RSA_PUBLIC), SECRET.as_bytes(), &["RS256", "HS256"]).unwrap();
    both.accepted(&rsa(&both.claims()));
    both.accepted(&hmac(&both.claims(), SECRET.as_bytes()));
}

#[test]
fn claims_must_fit() {
    let setting = Setting::new(RSA_PUBLIC, |settings| tokens(settings).issuers = vec!["us".to_owned()]);
    let good = with(setting.claims(), json!({ "iss": "us" }));
    setting.accepted(&rsa(&good));
    let now = setting.now();
    for (changes, expected) in [
        (json!({ "exp": null }), "(exp)"),
        (json!({ "exp": "soon" }), "(exp)"),
        (json!({ "exp": -1 }), "(exp)"),
        (json!({ "exp": now - 31 }), "the token has expired"),
        (json!({ "nbf": now + 60 }), "not valid yet"),
        (json!({ "nbf": "later" }), "(nbf)"),
        (json!({ "aud": null }), "(aud)"),
        (json!({ "aud": "other" }), "another audience"),
        (json!({ "aud": ["a", "b"] }), "another audience"),
        (json!({ "aud": 7 }), "(aud)"),
        (json!({ "iss": null }), "(iss)"),
        (json!({ "iss": "them" }), "another issuer"),
        (json!({ "iss": ["us"] }), "(iss)"),
        (json!({ "iss": ["us", "them"] }), "(iss)"),
        (json!({ "iss": [] }), "another issuer"),
        (json!({ "iss": 7 }), "(iss)"),
        (json!({ "iss": { "us": "us" } }), "(iss)"),
        (json!({ "sub": null }), "(sub)"),
        (json!({ "sub": 7 }), "(sub)"),
        (json!({ "sub": "" }), "(sub)"),
        (json!({ "sub": "007" }), "(sub)"),
        (json!({ "sub": "seven" }), "(sub)"),
        (json!({ "sub": "9223372036854775808" }), "(sub)"),
        (json!({ "sub": "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b" }), "(sub)"),
        (json!({ "scope": 7 }), "scopes"),
    ] {
        setting.refused(&rsa(&with(good.clone(), changes)), expected);
    }
    for changes in [
        json!({ "aud": ["a", "kinfolk"] }),
        json!({ "exp": now - 29 }),
        json!({ "exp": now as f64 + 0.5 }),
        json!({ "nbf": now + 29 }),
        json!({ "exp": u64::MAX }),
    ] {
        setting.accepted(&rsa(&with(good.clone(), changes)));
    }
    let anybody = Setting::new(RSA_PUBLIC, |_| ());
    for issuer in [json!(["us"]), json!(7), json!(true)] {
        anybody.refused(&rsa(&with(anybody.claims(), json!({ "iss": issuer }))), "(iss)");
    }
    anybody.accepted(&rsa(&with(anybody.claims(), json!({ "iss": "them" }))));
}

#[test]
fn a_uuid_deployment_wants_uuids() {
    let setting = Setting::new(RSA_PUBLIC, |settings| settings.id_kind = IdKind::Uuid);
    setting.refused(&rsa(&setting.claims()), "(sub)");
    for uuid in ["0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b", "0190A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B"] {
        let caller = setting.accepted(&rsa(&with(setting.claims(), json!({ "sub": uuid }))));
        assert_eq!(caller.identity, Identity::User(IdKind::Uuid.parse(uuid).unwrap()));
    }
}

/// The public RSA key in forms that an identity provider, OpenSSL or SSH give it out in, or that an editor makes of them.
fn public_forms() -> Vec<Vec<u8>> {
    let set = jwk_set(&[("a", RSA, Algorithm::RS256)]);
    let keys: Value = serde_json::from_str(&set).unwrap();
    let base64: String = RSA_PUBLIC.lines().filter(|line| !line.contains("-----")).collect();
    let der = data_encoding::BASE64.decode(base64.as_bytes()).unwrap();
    let in_lines =
        base64.as_bytes().chunks(65).map(|line| String::from_utf8_lossy(line) + "\n").collect::<String>();
    let ssh = format!("ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ{}", &base64[..300]);
    let texts = [
        format!("\u{feff}{set}"),
        keys["keys"].to_string(),
        keys["keys"][0].to_string(),
        serde_json::to_string_pretty(&keys).unwrap(),
        RSA_PUBLIC.to_owned(),
        RSA_PUBLIC.trim().to_owned(),
        format!("from our issuer\n{RSA_PUBLIC}"),
        RSA_PUBLIC.replace('\n', " "),
        format!("---- BEGIN SSH2 PUBLIC KEY ----\n{base64}\n---- END SSH2 PUBLIC KEY ----\n"),
        format!("{ssh} somebody@somewhere\n"),
        format!("restrict,command=\"kinfolk\" {ssh}"),
        ssh["ssh-rsa ".len()..].to_owned(),
        format!("<RSAKeyValue><Modulus>{base64}</Modulus><Exponent>AQAB</Exponent></RSAKeyValue>"),
        data_encoding::BASE64.encode(set.as_bytes()),
        data_encoding::BASE64.encode(RSA_PUBLIC.as_bytes()),
        data_encoding::HEXLOWER.encode(&der),
        format!("base64:{base64}"),
        in_lines,
        base64,
    ];
    let utf_16 = set.encode_utf16().flat_map(u16::to_le_bytes).collect();
    texts.into_iter().map(String::into_bytes).chain([der, utf_16]).collect()
}

#[test]
fn a_public_key_is_no_secret() {
    // Whatever is allowed, and however the public key is spelled, it is no secret...
    for form in public_forms() {
        let shown = String::from_utf8_lossy(&form).into_owned();
        let error = Setting::shared(None, &form, &["HS256"]).err().expect(&shown).to_string();
        assert!(error.contains("token-secret") && error.contains("auth.token_keys"), "{error}: {shown}");
        assert!(!error.contains(&shown[..40]), "quoted: {error}");
    }
    // ...and as a public key it verifies nothing that was made by HMAC.
    let mut accepted = 0;
    for form in public_forms() {
        let both = Setting::with_files(Some(&form), Some(SECRET.as_bytes()), allow(&["RS256", "HS256"]));
        let Ok(both) = both else { continue };
        accepted += 1;
        both.accepted(&rsa(&both.claims()));
        for secret in
            [form.as_slice(), form.trim_ascii(), form.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&form)]
        {
            both.refused(&hmac(&both.claims(), secret), "signature");
        }
    }
    assert_eq!(accepted, 6, "two JWK sets and four spellings of PEM");
}

#[test]
fn a_secret_works_only_where_it_belongs() {
    // As it was when one setting held all kinds of keys: what to do now is said.
    let old = Setting::try_new(SECRET, allow(&["HS256"])).err().unwrap().to_string();
    assert!(old.contains("auth.token_secret") && old.contains("auth.token_keys"), "{old}");
    let mixed = Setting::try_new(RSA_PUBLIC, allow(&["RS256", "HS512"])).err().unwrap().to_string();
    assert!(mixed.contains("HS512") && mixed.contains("auth.token_secret"), "{mixed}");
    let unnamed = Setting::try_new(SECRET, |_| ()).err().unwrap().to_string();
    assert!(unnamed.contains("token-keys") && unnamed.contains("auth.token_secret"), "{unnamed}");
    let useless = Setting::shared(Some(RSA_PUBLIC), SECRET.as_bytes(), &["RS256"]).err().unwrap();
    assert!(useless.to_string().contains("auth.algorithms"), "{useless}");

    let set = jwk_set(&[("first", SECRET.as_bytes(), Algorithm::HS256), ("rsa", RSA, Algorithm::RS256)]);
    for algorithms in [&["RS256"][..], &["RS256", "HS256"]] {
        let secret = algorithms.contains(&"HS256").then_some(SECRET.as_bytes());
        let error = Setting::with_files(Some(set.as_bytes()), secret, allow(algorithms)).err().unwrap();
        assert!(error.to_string().contains("the key first is a shared secret"), "{error}");
    }
}

#[test]
fn a_secret_is_replaced_while_both_count_and_a_bad_file_changes_nothing() {
    let algorithms = ["RS256", "ES256", "HS256"];
    let setting = Setting::shared(Some(RSA_PUBLIC), SECRET.as_bytes(), &algorithms).unwrap();
    let new = "another shared secret that is long enough too";
    let (old_token, new_token) =
        (hmac(&setting.claims(), SECRET.as_bytes()), hmac(&setting.claims(), new.as_bytes()));
    let connected = setting.accepted(&old_token);
    setting.refused(&new_token, "signature");

    setting.replace_secret(format!("{new}\n{SECRET}\n").as_bytes());
    setting.accepted(&old_token);
    setting.accepted(&new_token);
    assert!(connected.check().is_ok());

    for form in public_forms() {
        setting.replace_secret(&form);
        let problem = setting.access.reload().unwrap_err().to_string();
        assert!(problem.contains("token-secret"), "{problem}");
        setting.accepted(&old_token);
        setting.refused(&hmac(&setting.claims(), form.trim_ascii()), "signature");
    }
    // The other file is not held up by that.
    setting.replace_keys(EC_PUBLIC);
    assert!(setting.access.authenticate(&rsa(&setting.claims())).is_err());
    setting.replace_keys(SECRET);
    assert!(setting.access.reload().unwrap_err().to_string().contains("token-keys"));

    setting.replace_secret(new.as_bytes());
    assert!(connected.check().is_err());
    setting.refused(&old_token, "signature");
    setting.accepted(&new_token);
}

#[test]
fn only_allowed_algorithms_count() {
    let setting = Setting::new(RSA_PUBLIC, allow(&["RS256"]));
    let key = EncodingKey::from_rsa_pem(RSA).unwrap();
    for algorithm in [Algorithm::RS384, Algorithm::PS256] {
        setting.refused(&sign_with(&Header::new(algorithm), &setting.claims(), &key), "not accepted");
    }
    // The allow-list holds inside of a key set too: this key says that it is for RS512.
    let setting = Setting::try_new(&jwk_set(&[("a", RSA, Algorithm::RS512)]), allow(&["RS256"]));
    assert!(setting.err().unwrap().to_string().contains("allowed algorithms"));
}

#[test]
fn none_is_no_algorithm() {
    let setting = Setting::new(RSA_PUBLIC, |_| ());
    let signed = rsa(&setting.claims());
    let payload = signed.split('.').nth(1).unwrap();
    for header in [r#"{"alg":"none"}"#, r#"{"alg":"None","typ":"JWT"}"#, r#"{"alg":""}"#, "{}"] {
        let header = data_encoding::BASE64URL_NOPAD.encode(header.as_bytes());
        for token in [format!("{header}.{payload}."), format!("{header}.{payload}")] {
            setting.refused(&token, "malformed");
        }
    }
    let allowed = Setting::try_new(RSA_PUBLIC, allow(&["RS256", "none"]));
    assert!(allowed.err().unwrap().to_string().contains("\"none\" is not an algorithm"));
}

#[test]
fn damaged_tokens_are_refused() {
    let setting = Setting::new(RSA_PUBLIC, |_| ());
    let token = rsa(&setting.claims());
    setting.refused("", "malformed");
    setting.refused("a.b.c", "malformed");
    let (message, signature) = token.rsplit_once('.').unwrap();
    let flipped = if signature.starts_with('A') { "B" } else { "A" };
    setting.refused(&format!("{message}.{flipped}{}", &signature[1..]), "signature");
    setting.refused(&format!("{message}."), "signature");
    setting.refused(&"a.".repeat(4 << 10), "malformed");
    setting.refused(&format!("{token}{}", " ".repeat(8 << 10)), "longer");
    let other = rsa(&with(setting.claims(), json!({ "sub": "8" })));
    let mixed: Vec<&str> = token.split('.').take(1).chain(other.split('.').skip(1).take(1)).collect();
    setting.refused(&format!("{}.{}", mixed.join("."), token.rsplit('.').next().unwrap()), "signature");
    let mut critical = Header::new(Algorithm::RS256);
    critical.crit = Some(vec!["b64".to_owned()]);
    let key = EncodingKey::from_rsa_pem(RSA).unwrap();
    setting.refused(&sign_with(&critical, &setting.claims(), &key), "critical");
}

#[test]
fn the_key_id_selects_the_key() {
    let second = rcgen::KeyPair::generate().unwrap().serialize_pem();
    let set = jwk_set(&[
        ("first", EC, Algorithm::ES256),
        ("second", second.as_bytes(), Algorithm::ES256),
        ("rsa", RSA, Algorithm::RS256),
    ]);
    let setting = Setting::new(&set, |_| ());
    let signed = |kid: Option<&str>, key: &[u8]| {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = kid.map(str::to_owned);
        sign_with(&header, &setting.claims(), &EncodingKey::from_ec_pem(key).unwrap())
    };
    setting.accepted(&signed(Some("first"), EC));
    setting.accepted(&signed(Some("second"), second.as_bytes()));
    setting.refused(&signed(Some("second"), EC), "signature");
    setting.refused(&signed(Some("third"), EC), "not accepted");
    setting.refused(&signed(Some("rsa"), EC), "not accepted");
    setting.refused(&signed(None, EC), "not accepted");
    // Of this algorithm there is one key only, so there is nothing to choose.
    setting.accepted(&rsa(&setting.claims()));
}

#[test]
fn keys_of_other_uses_are_passed_over() {
    let mut set: Value = serde_json::from_str(&jwk_set(&[("a", RSA, Algorithm::RS256)])).unwrap();
    let mut encryption = set["keys"][0].clone();
    encryption["use"] = json!("enc");
    let mut unknown = set["keys"][0].clone();
    unknown["alg"] = json!("RSA-OAEP-512");
    let odd = json!({ "kty": "AKP", "alg": "ML-DSA-44", "pub": "AA", "kid": "new" });
    set["keys"].as_array_mut().unwrap().extend([encryption, unknown, odd]);
    let setting = Setting::new(&set.to_string(), |_| ());
    setting.accepted(&rsa(&setting.claims()));
}

#[test]
fn scopes_narrow_and_moderation_is_explicit() {
    let plain = Setting::new(RSA_PUBLIC, |_| ());
    let moderated = Setting::new(RSA_PUBLIC, |settings| tokens(settings).allow_moderate = true);
    for (claims, without, allowed) in [
        (json!({ "scope": "openid profile read admin" }), "read,write", "read,write"),
        (json!({ "scope": "openid kinfolk:read" }), "read", "read"),
        (json!({ "scopes": ["kinfolk:read", "kinfolk:write"] }), "read,write", "read,write"),
        (json!({ "scopes": ["kinfolk:read kinfolk:moderate"] }), "read", "read,moderate"),
        (json!({ "scope": "kinfolk:read", "scopes": ["kinfolk:write"] }), "read,write", "read,write"),
        (json!({ "scope": "kinfolk:admin" }), "", ""),
        (json!({ "scope": "kinfolk:admin kinfolk:read" }), "read", "read"),
    ] {
        for (setting, expected) in [(&plain, without), (&moderated, allowed)] {
            let caller = setting.accepted(&rsa(&with(setting.claims(), claims.clone())));
            let names = expected.split(',').filter(|name| !name.is_empty());
            let expected: Scopes = names.map(|name| Scope::from_name(name).unwrap()).collect();
            assert_eq!(caller.scopes, expected, "{claims}");
        }
    }
}

#[test]
fn a_token_ends_also_on_open_connections_and_in_the_cache() {
    let setting = Setting::new(RSA_PUBLIC, |_| ());
    let token = rsa(&setting.claims());
    let connected = setting.accepted(&token);
    setting.clock.advance(629_000);
    connected.require(Scope::Read).unwrap();
    setting.accepted(&token);
    setting.clock.advance(1_000);
    assert_eq!(connected.require(Scope::Read).unwrap_err().code(), ErrorCode::Unauthenticated);
    assert_eq!(connected.admit(1).unwrap_err().code(), ErrorCode::Unauthenticated);
    setting.refused(&token, "expired");
}

#[test]
fn a_key_that_is_taken_away_takes_its_users_along() {
    let setting = Setting::new(&jwk_set(&[("a", RSA, Algorithm::RS256)]), |_| ());
    let token = rsa(&setting.claims());
    let connected = setting.accepted(&token);

    setting.replace_keys(&jwk_set(&[("b", EC, Algorithm::ES256), ("a", RSA, Algorithm::RS256)]));
    assert!(connected.check().is_ok(), "a key that stays is not disturbed by another");
    setting.accepted(&token);

    setting.replace_keys("{ damaged");
    assert!(setting.access.reload().unwrap_err().to_string().contains("line 1"));
    setting.accepted(&token);

    setting.replace_keys(&jwk_set(&[("b", EC, Algorithm::ES256)]));
    assert!(connected.check().is_err());
    assert!(setting.access.authenticate(&token).is_err());

    setting.replace_keys(&jwk_set(&[("a", RSA, Algorithm::RS256)]));
    setting.accepted(&token);
}

#[test]
fn a_user_has_one_budget_over_all_connections() {
    let setting = Setting::new(RSA_PUBLIC, |settings| {
        settings.limits.user = Some(Rate::per_hour(1).with_burst(3));
    });
    let first = setting.accepted(&rsa(&setting.claims()));
    let second = setting.accepted(&rsa(&with(setting.claims(), json!({ "jti": "another" }))));
    first.admit(2).unwrap();
    second.admit(1).unwrap();
    assert_eq!(first.admit(1).unwrap_err().code(), ErrorCode::RateLimited);
    let other = setting.accepted(&rsa(&with(setting.claims(), json!({ "sub": "8" }))));
    other.admit(1).unwrap();
}

#[test]
fn keys_that_protect_nothing_are_refused() {
    for (keys, algorithms, expected) in [
        ("", &["RS256"][..], "neither a JWK set"),
        (EC_PUBLIC, &["RS256"], "allowed algorithms"),
        (RSA_1024_PUBLIC, &["RS256"], "2048 bits"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n", &["RS256"], "no end"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", &["RS256"], "malformed"),
        ("{}", &["RS256"], "JWK set"),
        (r#"{"keys":[]}"#, &["RS256"], "allowed algorithms"),
        (r#"{"keys":[{"kty":"oct","k":"c2hvcnQ","kid":"a"}]}"#, &["RS256"], "the key a is a shared secret"),
    ] {
        let error = Setting::try_new(keys, allow(algorithms)).err().unwrap().to_string();
        assert!(error.contains(expected) && error.contains("token-keys"), "{error}: {expected}");
    }
    let private = std::str::from_utf8(RSA).unwrap();
    let error = Setting::try_new(private, |_| ()).err().unwrap().to_string();
    assert!(error.contains("not a public key"), "{error}");
    assert!(Setting::try_new(RSA_PUBLIC, |settings| tokens(settings).audiences.clear()).is_err());
    assert!(Setting::try_new(RSA_PUBLIC, allow(&[])).is_err());
    assert!(Setting::with_files(None, None, |_| ()).is_err());
}

#[test]
fn debug_output_has_no_secrets() {
    let setting = Setting::shared(None, SECRET.as_bytes(), &["HS256"]).unwrap();
    let token = hmac(&setting.claims(), SECRET.as_bytes());
    let shown = format!("{:?} {:?}", setting.accepted(&token), setting.access);
    assert!(!shown.contains(SECRET) && !shown.contains(token.rsplit('.').next().unwrap()), "{shown}");
    // Bytes are shown as numbers by careless implementations.
    assert!(!shown.contains("97, 32, 115"), "{shown}");
}

proptest! {
    /// Whatever is sent as a credential is refused as one, and whatever is in a key file is refused or read.
    #[test]
    fn nonsense_is_refused(text in any::<String>(), parts in prop::collection::vec("[A-Za-z0-9_-]{0,40}", 1..5)) {
        let setting = Setting::new(RSA_PUBLIC, |_| ());
        let payload = |part: &String| data_encoding::BASE64URL_NOPAD.encode(format!("{{\"alg\":\"{part}\"}}").as_bytes());
        let encoded: Vec<_> = parts.iter().map(payload).collect();
        for credential in [text.clone(), parts.join("."), encoded.join("."), format!("kf_{text}")] {
            let error = setting.access.authenticate(&credential).unwrap_err();
            prop_assert_eq!(error.code(), ErrorCode::Unauthenticated);
        }
        for content in [text.clone(), format!("-----BEGIN {text}"), format!("{{{text}"), format!("-----BEGIN PUBLIC KEY-----{text}-----END PUBLIC KEY-----")] {
            let _ = TokenKeys::parse_public(content.as_bytes(), &[Algorithm::RS256], &setting.clock_port());
            let _ = TokenKeys::parse_secrets(content.as_bytes(), &[Algorithm::HS256], &setting.clock_port());
        }
    }
}
