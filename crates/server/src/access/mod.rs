//! Authenticates callers and decides what they may do. Rules about the graph are not here; neither are sockets.
//!
//! Services come with an API key, end users with a JSON Web Token that the application's identity provider has signed.
//! Both are read from files that may change while the server runs: [`Access::poll`] takes new keys in and turns
//! revoked ones away, also from connections that are open.

mod binding;
mod caller;
mod file_lock;
mod key_file;
mod keys;
mod permit;
mod scope;
mod token;

use std::path::PathBuf;
use std::sync::Arc;

pub use binding::require_safe_binding;
pub use caller::{Caller, Identity};
pub use key_file::{KeyEntry, KeyFile, NewKey};
pub(crate) use keys::KeyProof;
use keys::Keys;
use kinfolk_core::{Clock, Error, IdKind, Result, SystemClock, Timestamp};
pub(crate) use permit::{Actor, Permit, Viewer};
pub use scope::{Scope, Scopes};
pub use token::TokenSettings;
use token::Tokens;
use tokio::sync::watch;

use crate::limits::{Budget, BudgetName, Budgets, LimitSettings, Limits, SharedBudgets};

/// How callers are known, and how much they may do.
#[derive(Clone, Debug)]
pub struct AccessSettings {
    /// The deployment's kind of ids: the subject of a token must be one.
    pub id_kind: IdKind,
    /// The file of API keys, if services are admitted.
    pub keys_file: Option<PathBuf>,
    /// How end users' tokens are checked, if end users are admitted.
    pub tokens: Option<TokenSettings>,
    /// The rate limits of callers.
    pub limits: LimitSettings,
    /// Where the limits are shared with other processes; without it, they are those of this process alone.
    pub shared_budgets: Option<Arc<SharedBudgets>>,
}

/// Authenticates callers by their credentials.
#[derive(Debug)]
pub struct Access(Mode);

#[derive(Debug)]
enum Mode {
    /// Every request is made by this caller.
    Open(Caller),
    Guarded(Box<Guard>),
}

#[derive(Debug)]
struct Guard {
    keys: Option<Keys>,
    tokens: Option<Tokens>,
    /// Of end users, over all of their connections; none without a limit.
    users: Option<Budgets>,
    unlimited: Arc<Budget>,
    limits: LimitSettings,
    shared_budgets: Option<Arc<SharedBudgets>>,
    /// Set whenever files were read again.
    changed: watch::Sender<()>,
}

impl Access {
    /// Authentication is off: every caller has all scopes.
    pub fn open() -> Self {
        let budget = Arc::new(Budget::unlimited());
        Self(Mode::Open(Caller::new(Identity::Anyone, Scopes::all(), budget)))
    }

    /// Reads the keys. A file that can't be used is refused: a server should not start without its keys.
    pub fn new(settings: &AccessSettings) -> Result<Self> {
        Self::with_clock(settings, &(Arc::new(SystemClock) as _))
    }

    /// As [`Access::new`], with a clock that decides when keys and tokens expire.
    pub fn with_clock(settings: &AccessSettings, clock: &Arc<dyn Clock>) -> Result<Self> {
        let AccessSettings { id_kind, keys_file, tokens, limits, shared_budgets } = settings;
        let load_keys =
            |path: &PathBuf| Keys::load(path, limits.key, Arc::clone(clock), shared_budgets.clone());
        let keys = keys_file.as_ref().map(load_keys).transpose()?;
        let tokens =
            tokens.as_ref().map(|tokens| Tokens::load(tokens, *id_kind, Arc::clone(clock))).transpose()?;
        if keys.is_none() && tokens.is_none() {
            let detail = "authentication needs a file of API keys or keys for tokens: configure one of them";
            return Err(Error::InvalidInput { detail: detail.to_owned() });
        }
        let users = limits.user.map(|rate| {
            Budgets::new(rate, limits.budgets_max).shared(shared_budgets.as_ref(), BudgetName::User)
        });
        let unlimited = Arc::new(Budget::unlimited());
        let changed = watch::Sender::new(());
        let shared_budgets = shared_budgets.clone();
        let guard = Guard { keys, tokens, users, unlimited, limits: *limits, shared_budgets, changed };
        Ok(Self(Mode::Guarded(Box::new(guard))))
    }

    /// Whether authentication is off.
    pub fn is_open(&self) -> bool {
        matches!(self.0, Mode::Open(_))
    }

    /// The limits on what actors change: those of the settings, or none while authentication is off.
    pub fn limits(&self) -> Limits {
        match &self.0 {
            Mode::Open(_) => Limits::default(),
            Mode::Guarded(guard) => Limits::shared(&guard.limits, guard.shared_budgets.as_ref()),
        }
    }

    /// A caller that has shown no credential; refused unless authentication is off.
    pub fn anonymous(&self) -> Result<Caller> {
        match &self.0 {
            Mode::Open(anyone) => Ok(anyone.clone()),
            Mode::Guarded(_) => {
                Err(Error::Unauthenticated { detail: "a credential is needed: an API key or a user's token" })
            }
        }
    }

    /// The caller that an API key or a JWT belongs to.
    pub fn authenticate(&self, credential: &str) -> Result<Caller> {
        match &self.0 {
            Mode::Open(anyone) => Ok(anyone.clone()),
            Mode::Guarded(guard) => guard.authenticate(credential),
        }
    }

    /// What names an API key from now on, for a session that begins with it. Tokens of end users begin none.
    pub(crate) fn prove(&self, credential: &str) -> Result<KeyProof> {
        const EXPECTED: Error = Error::Unauthenticated { detail: "an API key is needed, such as kf_…" };
        let keys = self.keys().ok_or(EXPECTED)?;
        if key_file::is_key(credential) { keys.prove(credential) } else { Err(EXPECTED) }
    }

    /// The caller of a session, which is refused from the session's end on.
    pub(crate) fn resume(&self, proof: &KeyProof, ends_at: Timestamp) -> Result<Caller> {
        let ended = Error::Unauthenticated { detail: "the session has ended; sign in again" };
        let caller = Caller { expires_at: Some(ends_at), ..self.keys().ok_or(ended)?.resume(proof)? };
        caller.check()?;
        Ok(caller)
    }

    /// The API keys, without their secrets; none if services are not admitted.
    pub(crate) fn key_entries(&self) -> Vec<KeyEntry> {
        self.keys().map(Keys::entries).unwrap_or_default()
    }

    fn keys(&self) -> Option<&Keys> {
        match &self.0 {
            Mode::Open(_) => None,
            Mode::Guarded(guard) => guard.keys.as_ref(),
        }
    }

    /// Reads all files again. Reports a file that can't be used; what was read from it before stays valid.
    pub fn reload(&self) -> Result<()> {
        let Mode::Guarded(guard) = &self.0 else { return Ok(()) };
        let keys = guard.keys.as_ref().map_or(Ok(()), Keys::reload);
        let tokens = guard.tokens.as_ref().map_or(Ok(()), Tokens::reload);
        guard.changed.send_replace(());
        keys.and(tokens)
    }

    /// Changes whenever keys may have been revoked or expire at another time, for connections that keep their caller while
    /// they are silent. Nothing if authentication is off.
    pub(crate) fn changes(&self) -> Option<watch::Receiver<()>> {
        match &self.0 {
            Mode::Open(_) => None,
            Mode::Guarded(guard) => Some(guard.changed.subscribe()),
        }
    }

    /// Reloads the files that have changed; problems are logged. Reads small files and
    /// blocks for that long: call it every second or so, away from threads that serve.
    pub fn poll(&self) {
        let Mode::Guarded(guard) = &self.0 else { return };
        let mut changed =
            log_reload("API keys", guard.keys.as_ref().map_or(Ok(false), Keys::reload_if_changed));
        if let Some(tokens) = &guard.tokens {
            changed |= tokens.poll(log_reload);
        }
        if changed {
            guard.changed.send_replace(());
        }
    }
}

impl Guard {
    fn authenticate(&self, credential: &str) -> Result<Caller> {
        let refused =
            || Error::Unauthenticated { detail: "the credential is not of a kind that is accepted here" };
        let caller = if key_file::is_key(credential) {
            self.keys.as_ref().ok_or_else(refused)?.authenticate(credential)?
        } else {
            let budget = |user| {
                self.users.as_ref().map_or_else(|| Arc::clone(&self.unlimited), |users| users.of(user))
            };
            self.tokens.as_ref().ok_or_else(refused)?.authenticate(credential, budget)?
        };
        caller.check()?;
        Ok(caller)
    }
}

/// Logs the result of a reload; returns whether anything has changed.
fn log_reload(what: &'static str, reloaded: Result<bool>) -> bool {
    match &reloaded {
        Ok(false) => {}
        Ok(true) => tracing::info!(what, "took in a changed file"),
        Err(error) => {
            tracing::error!(what, %error, "a changed file can't be used; the former keys stay valid");
        }
    }
    reloaded.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use kinfolk_conformance::SimulatedClock;
    use kinfolk_core::{ErrorCode, Id};

    use super::*;
    use crate::limits::Rate;

    fn settings(keys_file: &Path) -> AccessSettings {
        AccessSettings {
            id_kind: IdKind::Integer,
            keys_file: Some(keys_file.to_owned()),
            tokens: None,
            limits: LimitSettings::NONE,
            shared_budgets: None,
        }
    }

    fn add(path: &Path, name: &str, scopes: &str) -> String {
        change(path, |file| {
            let scopes = scopes.split(',').map(|name| Scope::from_name(name).unwrap()).collect();
            let key = NewKey { name: name.to_owned(), scopes, limit: None, not_after: None };
            file.add(key, SystemClock.now()).unwrap()
        })
    }

    fn change<T>(path: &Path, change: impl FnOnce(&mut KeyFile) -> T) -> T {
        let mut file = KeyFile::read_or_new(path).unwrap();
        let result = change(&mut file);
        file.write(path).unwrap();
        result
    }

    fn id(key: &str) -> String {
        key.split('_').nth(1).unwrap().to_owned()
    }

    fn refused(access: &Access, credential: &str) {
        let error = access.authenticate(credential).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unauthenticated, "{credential}");
    }

    #[test]
    fn without_authentication_everybody_may_do_everything() {
        let access = Access::open();
        assert!(access.is_open());
        for caller in [access.anonymous().unwrap(), access.authenticate("whatever").unwrap()] {
            assert_eq!(caller.identity, Identity::Anyone);
            Scope::ALL.into_iter().for_each(|scope| caller.require(scope).unwrap());
            caller.admit(u32::MAX).unwrap();
        }
        for _ in 0..10 {
            access.limits().take_changes(Id::Integer(1), u32::MAX).unwrap();
        }
    }

    #[test]
    fn a_key_opens_what_its_scopes_say() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let key = add(&path, "feed", "read,write");
        let access = Access::new(&settings(&path)).unwrap();
        assert!(!access.is_open() && access.anonymous().is_err());
        let caller = access.authenticate(&key).unwrap();
        assert_eq!(caller.identity, Identity::Service("feed".into()));
        caller.require(Scope::Write).unwrap();
        assert_eq!(caller.require(Scope::Admin).unwrap_err().code(), ErrorCode::Forbidden);
    }

    #[test]
    fn wrong_keys_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let (key, other) = (add(&path, "feed", "read"), add(&path, "feed", "read"));
        let access = Access::new(&settings(&path)).unwrap();
        let secret = key.rsplit('_').next().unwrap();
        let other_secret = other.rsplit('_').next().unwrap();
        for wrong in [
            String::new(),
            "kf_".to_owned(),
            format!("kf_{}", id(&key)),
            format!("kf_{}_", id(&key)),
            format!("kf_{}_{}", id(&key), "0".repeat(64)),
            format!("kf_{}_{other_secret}", id(&key)),
            format!("kf_unknown_{secret}"),
            format!("{key}0"),
            key.to_uppercase(),
            key.replacen("kf", "fk", 1),
            "x".repeat(1 << 20),
        ] {
            refused(&access, &wrong);
        }
    }

    #[test]
    fn keys_are_rotated_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let old = add(&path, "feed", "read,write");
        let access = Access::new(&settings(&path)).unwrap();
        let connected = access.authenticate(&old).unwrap();

        let new = add(&path, "feed", "read,write");
        access.poll();
        access.authenticate(&old).unwrap();
        access.authenticate(&new).unwrap();
        assert!(connected.check().is_ok(), "a key that stays is not disturbed by another");

        change(&path, |file| file.revoke(&id(&old)).unwrap());
        access.poll();
        refused(&access, &old);
        access.authenticate(&new).unwrap();
        assert_eq!(connected.require(Scope::Read).unwrap_err().code(), ErrorCode::Unauthenticated);
    }

    #[test]
    fn a_secret_that_was_replaced_under_its_id_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let old = add(&path, "feed", "read");
        let access = Access::new(&settings(&path)).unwrap();
        let connected = access.authenticate(&old).unwrap();
        let other = add(&path, "feed", "read");
        change(&path, |file| file.revoke(&id(&old)).unwrap());
        let content = std::fs::read_to_string(&path).unwrap().replace(&id(&other), &id(&old));
        std::fs::write(&path, content).unwrap();
        access.reload().unwrap();
        assert!(connected.check().is_err());
        refused(&access, &old);
        access.authenticate(&other.replace(&id(&other), &id(&old))).unwrap();
    }

    #[test]
    fn a_damaged_file_keeps_the_keys_that_were_valid() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let key = add(&path, "feed", "read");
        let access = Access::new(&settings(&path)).unwrap();
        let connected = access.authenticate(&key).unwrap();
        let good = std::fs::read(&path).unwrap();

        std::fs::write(&path, "version = 1\n[[key]]\nid =").unwrap();
        access.poll();
        let problem = access.reload().unwrap_err().to_string();
        assert!(problem.contains("keys.toml") && problem.contains("line 3"), "{problem}");
        std::fs::remove_file(&path).unwrap();
        access.poll();
        access.authenticate(&key).unwrap();
        assert!(connected.check().is_ok());

        std::fs::write(&path, good).unwrap();
        access.poll();
        access.authenticate(&key).unwrap();
        assert!(connected.check().is_ok());
    }

    #[test]
    fn keys_expire_and_have_limits_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let clock = Arc::new(SimulatedClock::default());
        let key = change(&path, |file| {
            let limit = Some(Rate::per_hour(1).with_burst(2));
            let not_after = Some(clock.now().plus_millis(1_000));
            let scopes = Scopes::all();
            file.add(NewKey { name: "feed".to_owned(), scopes, limit, not_after }, clock.now()).unwrap()
        });
        let access = Access::with_clock(&settings(&path), &(Arc::clone(&clock) as _)).unwrap();
        let caller = access.authenticate(&key).unwrap();
        caller.admit(1).unwrap();
        access.authenticate(&key).unwrap().admit(1).unwrap();
        assert_eq!(caller.admit(1).unwrap_err().code(), ErrorCode::RateLimited);
        clock.advance(1_000);
        assert_eq!(caller.admit(1).unwrap_err().code(), ErrorCode::Unauthenticated);
        refused(&access, &key);
    }

    #[test]
    fn a_new_limit_reaches_open_connections() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let key = add(&path, "feed", "read");
        let access = Access::new(&settings(&path)).unwrap();
        let connected = access.authenticate(&key).unwrap();
        connected.admit(1_000).unwrap();
        let limited = std::fs::read_to_string(&path).unwrap() + "limit = \"1/h\"\n";
        std::fs::write(&path, limited).unwrap();
        access.poll();
        connected.admit(1).unwrap();
        assert_eq!(connected.admit(1).unwrap_err().code(), ErrorCode::RateLimited);
    }

    #[test]
    fn a_server_without_usable_keys_does_not_start() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Access::new(&settings(&folder.path().join("none.toml"))).unwrap_err();
        assert!(missing.to_string().contains("none.toml"), "{missing}");
        let nothing = AccessSettings { keys_file: None, ..settings(folder.path()) };
        assert!(Access::new(&nothing).unwrap_err().to_string().contains("configure"));
    }

    #[test]
    fn debug_output_has_no_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.toml");
        let key = add(&path, "feed", "read");
        let access = Access::new(&settings(&path)).unwrap();
        let shown = format!("{access:?} {:?} {:?}", access.authenticate(&key).unwrap(), settings(&path));
        let hash = KeyFile::read_or_new(&path).unwrap().entries()[0].hash();
        for secret in [key.rsplit('_').next().unwrap(), hash.to_hex().as_str()] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
