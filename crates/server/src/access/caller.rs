//! A caller and what it may do, as long as its credential is valid. Credentials are not read here.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use kinfolk_core::{Clock, Error, Id, Result, SystemClock, Timestamp};

use super::scope::{Scope, Scopes};
use crate::limits::Budget;

/// Who a caller is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// Anybody on this machine: authentication is off.
    Anyone,
    /// A service with an API key of this name.
    Service(Arc<str>),
    /// An end user, known by a signed token.
    User(Id),
}

/// A caller, its scopes, and its budget.
///
/// A connection may keep its caller for long. Meanwhile a key can lose scopes, and a token expires:
/// [`Caller::check`] and with it [`Caller::require`] and [`Caller::admit`] refuse such a caller from that moment on.
/// Scopes taken from a key are gone at once; scopes added to it are there at the next authentication.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who it is.
    pub identity: Identity,
    /// What it may do.
    pub scopes: Scopes,
    /// What is left of its rate limit.
    pub budget: Arc<Budget>,
    /// The credential's own end; for keys, the standing knows.
    pub(super) expires_at: Option<Timestamp>,
    pub(super) standing: Arc<Standing>,
}

impl Caller {
    /// A caller whose credential never ends: any caller while authentication is off, or a test.
    pub fn new(identity: Identity, scopes: Scopes, budget: Arc<Budget>) -> Self {
        let standing = Arc::new(Standing::new(Arc::new(SystemClock), scopes, None));
        Self { identity, scopes, budget, expires_at: None, standing }
    }

    /// Refuses a caller whose credential was revoked or has expired. Two loads; a clock is read only for a
    /// credential that has an end.
    pub fn check(&self) -> Result<()> {
        self.standing.check(self.expires_at)
    }

    /// How long the credential is still valid; none if it has no end. It can end earlier: a key can be revoked.
    pub fn remaining(&self) -> Option<Duration> {
        self.standing.remaining(self.expires_at)
    }

    /// Admits `cost` requests, if the credential is valid and the rate limit allows them. One call for a pipeline is enough.
    pub fn admit(&self, cost: u32) -> Result<()> {
        self.check()?;
        self.budget.take(cost)
    }

    /// Refuses a caller without a scope.
    pub fn require(&self, scope: Scope) -> Result<()> {
        self.check()?;
        if self.holds(scope) {
            return Ok(());
        }
        Err(Error::Forbidden { detail: format!("this needs the scope {}", scope.name()) })
    }

    /// Whether this caller holds a scope that was not revoked since.
    pub fn holds(&self, scope: Scope) -> bool {
        self.scopes.contains(scope) && self.standing.scopes().contains(scope)
    }

    /// Refuses end users.
    pub fn require_service(&self) -> Result<()> {
        match self.identity {
            Identity::User(_) => Err(Error::Forbidden { detail: "this is for services only".to_owned() }),
            _ => Ok(()),
        }
    }
}

/// The current state of one key. Shared by all callers that authenticated with it, so that a change applies at once.
pub(super) struct Standing {
    clock: Arc<dyn Clock>,
    /// Milliseconds since 1970; 0 once revoked, [`Standing::NEVER`] without an end.
    ends_at: AtomicU64,
    scopes: AtomicU8,
}

impl Standing {
    const NEVER: u64 = u64::MAX;
    const REVOKED: u64 = 0;

    pub(crate) fn new(clock: Arc<dyn Clock>, scopes: Scopes, not_after: Option<Timestamp>) -> Self {
        let standing = Self { clock, ends_at: Self::NEVER.into(), scopes: 0.into() };
        standing.update(scopes, not_after);
        standing
    }

    /// What holds from now on.
    pub(crate) fn update(&self, scopes: Scopes, not_after: Option<Timestamp>) {
        self.scopes.store(scopes.bits(), Ordering::Relaxed);
        self.ends_at.store(not_after.map_or(Self::NEVER, Timestamp::millis), Ordering::Relaxed);
    }

    /// Refuses all callers with this key from now on, also on open connections.
    pub(crate) fn revoke(&self) {
        self.ends_at.store(Self::REVOKED, Ordering::Relaxed);
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.ends_at.load(Ordering::Relaxed) == Self::REVOKED
    }

    pub(crate) fn scopes(&self) -> Scopes {
        Scopes::from_bits(self.scopes.load(Ordering::Relaxed))
    }

    /// The earlier of both ends, in the form of `ends_at`.
    fn ends_at(&self, expires_at: Option<Timestamp>) -> u64 {
        let ends_at = self.ends_at.load(Ordering::Relaxed);
        expires_at.map_or(ends_at, |expires| expires.millis().min(ends_at))
    }

    fn remaining(&self, expires_at: Option<Timestamp>) -> Option<Duration> {
        let ends_at = Some(self.ends_at(expires_at)).filter(|&ends_at| ends_at != Self::NEVER)?;
        Some(Duration::from_millis(ends_at.saturating_sub(self.clock.now().millis())))
    }

    fn check(&self, expires_at: Option<Timestamp>) -> Result<()> {
        let ends_at = self.ends_at(expires_at);
        if ends_at == Self::REVOKED {
            return Err(Error::Unauthenticated { detail: "the credential was revoked; use another" });
        }
        if ends_at != Self::NEVER && self.clock.now().millis() >= ends_at {
            return Err(Error::Unauthenticated { detail: "the credential has expired; get a new one" });
        }
        Ok(())
    }
}

impl fmt::Debug for Standing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Standing").field("ends_at", &self.ends_at).field("scopes", &self.scopes()).finish()
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_conformance::SimulatedClock;
    use kinfolk_core::ErrorCode;

    use super::*;

    fn caller(identity: Identity) -> Caller {
        Caller::new(identity, Scopes::all(), Arc::new(Budget::unlimited()))
    }

    #[test]
    fn what_a_key_loses_its_callers_lose_at_once() {
        let clock = Arc::new(SimulatedClock::default());
        let mut caller = caller(Identity::Service("feed".into()));
        caller.standing = Arc::new(Standing::new(Arc::clone(&clock) as _, Scopes::all(), None));
        let connected = caller.clone();
        connected.require(Scope::Write).unwrap();

        caller.standing.update([Scope::Read].into_iter().collect(), None);
        assert_eq!(connected.require(Scope::Write).unwrap_err().code(), ErrorCode::Forbidden);
        connected.require(Scope::Read).unwrap();

        caller.standing.update(Scopes::all(), Some(clock.now().plus_millis(10)));
        assert!(connected.check().is_ok());
        clock.advance(10);
        assert_eq!(connected.require(Scope::Read).unwrap_err().code(), ErrorCode::Unauthenticated);

        caller.standing.update(Scopes::all(), None);
        caller.standing.revoke();
        assert_eq!(connected.admit(1).unwrap_err().code(), ErrorCode::Unauthenticated);
        assert!(connected.check().is_err());
    }

    #[test]
    fn the_earlier_end_counts() {
        let clock = Arc::new(SimulatedClock::default());
        let mut caller = caller(Identity::User(Id::Integer(1)));
        caller.standing = Arc::new(Standing::new(Arc::clone(&clock) as _, Scopes::all(), None));
        caller.expires_at = Some(clock.now().plus_millis(5));
        assert!(caller.check().is_ok());
        assert_eq!(caller.remaining(), Some(Duration::from_millis(5)));
        clock.advance(5);
        assert!(caller.check().is_err());
        assert_eq!(caller.remaining(), Some(Duration::ZERO));
        caller.expires_at = None;
        assert_eq!(caller.remaining(), None);
    }
}
