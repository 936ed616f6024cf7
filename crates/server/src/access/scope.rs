//! What a caller may be allowed to do, and sets of it.

use std::fmt;

use kinfolk_core::names;
use serde::{Deserialize, Serialize};

/// Something that a service may be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Act on what others have written.
    Moderate,
    /// Import, export, verify, back up.
    Admin,
}

names! { Scope { Read => "read", Write => "write", Moderate => "moderate", Admin => "admin" } }

/// A set of scopes.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
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

    /// Whether no scope is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The scopes in the set.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }

    /// The set as a number, for keeping it in an atomic.
    pub(super) fn bits(self) -> u8 {
        self.0
    }

    /// The set of that number.
    pub(super) fn from_bits(bits: u8) -> Self {
        Self(bits & Self::all().0)
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |set, scope| set | 1 << scope as u8))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_each_scope_once() {
        let scopes: Scopes = [Scope::Write, Scope::Read, Scope::Write].into_iter().collect();
        assert!(scopes.iter().eq([Scope::Read, Scope::Write]));
        assert!(scopes.contains(Scope::Read) && !scopes.contains(Scope::Admin));
        assert_eq!(Scopes::from_bits(Scopes::all().bits()), Scopes::all());
        assert!(Scopes::default().is_empty());
        for name in ["", "read,", "Read", "all"] {
            assert!(Scope::from_name(name).is_none(), "{name:?}");
        }
    }
}
