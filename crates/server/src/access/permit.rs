//! What a guard hands to a handler as proof of its checks. Only a [`Caller`] that passes them makes one, and the store is
//! reachable with a [`Permit`] only, so no handler gets around its guard.

use kinfolk_core::{Error, Id, Result};

use super::{Caller, Identity, Scope};

/// Proof that the caller's credential is valid and holds a scope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permit {
    scope: Scope,
}

impl Permit {
    /// Whether it was issued for this scope.
    pub(crate) fn covers(self, scope: Scope) -> bool {
        self.scope == scope
    }
}

/// A user in whose name the caller may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Actor(Id);

impl Actor {
    pub(crate) fn id(self) -> Id {
        self.0
    }
}

/// A user whose private view the caller may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Viewer(Id);

impl Viewer {
    pub(crate) fn id(self) -> Id {
        self.0
    }
}

impl Caller {
    /// Refuses a caller whose credential has ended or lacks the scope.
    pub(crate) fn permit(&self, scope: Scope) -> Result<Permit> {
        self.require(scope)?;
        Ok(Permit { scope })
    }

    /// Who acts: an end user acts as itself; a service names the actor.
    pub(crate) fn actor(&self, named: Option<Id>) -> Result<Actor> {
        let user = self.user(named, "a user acts only as itself")?;
        user.map(Actor).ok_or(Error::ActorRequired)
    }

    /// The caller, if it is an end user, who may name only itself; otherwise the user that it names.
    fn user(&self, named: Option<Id>, only_itself: &str) -> Result<Option<Id>> {
        match (&self.identity, named) {
            (Identity::User(user), Some(named)) if *user != named => {
                Err(Error::Forbidden { detail: only_itself.to_owned() })
            }
            (Identity::User(user), _) => Ok(Some(*user)),
            (_, named) => Ok(named),
        }
    }

    /// Who views: an end user views as itself; a service names the viewer.
    pub(crate) fn viewer(&self, named: Option<Id>) -> Result<Viewer> {
        let unnamed = "the response depends on who views: name the viewer in the parameter viewer or the header \
                       Kinfolk-Actor, or use a user's token";
        let user = self.user(named, "a user sees only its own")?;
        user.map(Viewer).ok_or_else(|| Error::InvalidRequest { detail: unnamed.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kinfolk_core::ErrorCode;

    use super::super::Scopes;
    use super::*;
    use crate::limits::Budget;

    fn caller(identity: Identity) -> Caller {
        Caller::new(identity, Scopes::all(), Arc::new(Budget::unlimited()))
    }

    #[test]
    fn an_end_user_is_only_itself() {
        let (one, two) = (Id::Integer(1), Id::Integer(2));
        let user = caller(Identity::User(one));
        for named in [None, Some(one)] {
            assert_eq!(user.actor(named).unwrap().id(), one);
            assert_eq!(user.viewer(named).unwrap().id(), one);
        }
        assert_eq!(user.actor(Some(two)).unwrap_err().code(), ErrorCode::Forbidden);
        assert_eq!(user.viewer(Some(two)).unwrap_err().code(), ErrorCode::Forbidden);
        assert!(user.require_service().is_err());

        for identity in [Identity::Anyone, Identity::Service("feed".into())] {
            let service = caller(identity);
            assert_eq!(service.actor(Some(two)).unwrap().id(), two);
            assert_eq!(service.actor(None).unwrap_err().code(), ErrorCode::ActorRequired);
            assert!(service.require_service().is_ok());
            assert_eq!(service.viewer(Some(two)).unwrap().id(), two);
            assert_eq!(service.viewer(None).unwrap_err().code(), ErrorCode::InvalidRequest);
        }
    }

    #[test]
    fn a_permit_needs_its_scope() {
        let reader =
            Caller::new(Identity::Anyone, [Scope::Read].into_iter().collect(), Arc::new(Budget::unlimited()));
        let permit = reader.permit(Scope::Read).unwrap();
        assert!(permit.covers(Scope::Read) && !permit.covers(Scope::Write));
        assert_eq!(reader.permit(Scope::Write).unwrap_err().code(), ErrorCode::Forbidden);
    }
}
