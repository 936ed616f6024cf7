//! How often a caller may ask, and how often an actor may change the graph. Who they are is not decided here.
//!
//! A caller's own limit is the [`Budget`] that it carries. The limit on changes belongs to the actor, whoever acts
//! for it: a service that follows on behalf of a user spends that user's budget as well as its own.
//!
//! With authentication off all limits are off: nobody is known, so nobody can be told apart.

mod budget;
mod budgets;
mod rate;
mod toll;

pub use budget::{Budget, RateState};
pub(crate) use budgets::Budgets;
use kinfolk_core::{Id, Result};
pub use rate::Rate;
pub(crate) use toll::Toll;

/// How much is allowed. `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Requests of an API key that has no limit of its own.
    pub key: Option<Rate>,
    /// Requests of an end user, over all of its connections.
    pub user: Option<Rate>,
    /// Follows, unfollows, dismissals, posts and their deletions of one actor, whoever acts for it.
    pub changes: Option<Rate>,
    /// So many users and so many actors are remembered. Past that, those nearest to a full budget are forgotten.
    pub remembered: usize,
}

impl Default for LimitSettings {
    /// Services are trusted. A person taps some dozens of times a second at most, and a thousand follows in an hour
    /// is what large networks allow before they call it churn; the burst lets a new user follow a starter list.
    fn default() -> Self {
        Self {
            key: None,
            user: Some(Rate::per_second(50).with_burst(100)),
            changes: Some(Rate::per_hour(1_000).with_burst(400)),
            remembered: 100_000,
        }
    }
}

/// The limits that are not a caller's own: how often one actor may change something. The default is no limit.
#[derive(Debug, Default)]
pub struct Limits {
    changes: Option<Budgets>,
}

impl Limits {
    /// Limits as set. [`crate::Access::limits`] makes the right ones for whoever may ask.
    pub fn new(settings: &LimitSettings) -> Self {
        Self { changes: settings.changes.map(|rate| Budgets::new(rate, settings.remembered)) }
    }

    /// Takes one change by an actor out of its budget.
    pub fn take_change(&self, actor: Id) -> Result<()> {
        self.take_changes(actor, 1)
    }

    /// Takes many changes by one actor at once: all of them or none.
    pub fn take_changes(&self, actor: Id, count: u32) -> Result<()> {
        match &self.changes {
            Some(budgets) => budgets.of(actor).take(count),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::ErrorCode;

    use super::*;

    #[test]
    fn changes_are_counted_per_actor() {
        let settings =
            LimitSettings { changes: Some(Rate::per_hour(1).with_burst(2)), ..LimitSettings::default() };
        let limits = Limits::new(&settings);
        limits.take_changes(Id::Integer(1), 2).unwrap();
        let refused = limits.take_change(Id::Integer(1)).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::RateLimited);
        limits.take_change(Id::Integer(2)).unwrap();
    }

    #[test]
    fn without_limits_nothing_is_refused() {
        let limits = Limits::default();
        for _ in 0..1_000 {
            limits.take_changes(Id::Integer(1), u32::MAX).unwrap();
        }
    }
}
