//! Who is asking and what they may do. Rules about the graph are not here; neither are sockets.

use std::sync::Arc;

use kinfolk_core::{Error, Id, Result};

use crate::limits::Budget;

/// Something that a service may be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Ask.
    Read,
    /// Change.
    Write,
    /// Act on what others have written.
    Moderate,
    /// Import, export, verify, back up.
    Admin,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Moderate, Self::Admin];

    /// The name in configuration and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Moderate => "moderate",
            Self::Admin => "admin",
        }
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Every scope.
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    /// Whether a scope is in the set.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | 1 << scope as u8))
    }
}

/// Who a caller is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Anybody on this machine: authentication is off.
    Anyone,
    /// A service with an API key of this name.
    Service(Arc<str>),
    /// An end user, known by a signed token.
    User(Id),
}

/// Who is asking, what they may do, and how much of it.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Who.
    pub identity: Identity,
    /// What.
    pub scopes: Scopes,
    /// How much: what is left of the rate limit that applies to this caller.
    pub budget: Arc<Budget>,
}

impl Caller {
    /// Refuses a caller without a scope.
    pub fn require(&self, scope: Scope) -> Result<()> {
        if self.scopes.contains(scope) {
            return Ok(());
        }
        Err(Error::Forbidden { detail: format!("this needs the scope {}", scope.name()) })
    }

    /// Who acts: an end user is itself; a service names whom it acts for.
    pub fn actor(&self, named: Option<Id>) -> Result<Id> {
        match (&self.identity, named) {
            (Identity::User(user), None) => Ok(*user),
            (Identity::User(user), Some(named)) if *user == named => Ok(named),
            (Identity::User(_), Some(_)) => {
                Err(Error::Forbidden { detail: "a user acts only as itself".to_owned() })
            }
            (_, Some(named)) => Ok(named),
            (_, None) => Err(Error::ActorRequired),
        }
    }

    /// Refuses an end user who asks for what only another one may see.
    pub fn require_viewer(&self, viewer: Id) -> Result<()> {
        match self.identity {
            Identity::User(user) if user != viewer => {
                Err(Error::Forbidden { detail: "a user sees only its own".to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Refuses end users.
    pub fn require_service(&self) -> Result<()> {
        match self.identity {
            Identity::User(_) => Err(Error::Forbidden { detail: "this is for services only".to_owned() }),
            _ => Ok(()),
        }
    }
}

/// Knows who callers are by their credentials.
#[derive(Debug)]
pub struct Access {
    open: Caller,
}

impl Access {
    /// Authentication is off: everybody may do everything.
    pub fn open() -> Self {
        let budget = Arc::new(Budget::unlimited());
        Self { open: Caller { identity: Identity::Anyone, scopes: Scopes::all(), budget } }
    }

    /// Whether authentication is off.
    pub fn is_open(&self) -> bool {
        true
    }

    /// A caller that has shown no credential; refused unless authentication is off.
    pub fn anonymous(&self) -> Result<Caller> {
        Ok(self.open.clone())
    }

    /// The caller whom an API key or a JWT belongs to.
    pub fn authenticate(&self, _credential: &str) -> Result<Caller> {
        Ok(self.open.clone())
    }
}
