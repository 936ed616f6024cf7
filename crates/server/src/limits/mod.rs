//! Rate limits: requests of a caller, changes of an actor, comments of an author and a thread. `access` identifies callers.
//!
//! A caller's own limit is the [`Budget`] that it carries. The limits on changes and comments belong to the actor, regardless
//! of the caller: a service that follows on behalf of a user spends that user's budget as well as its own.
//!
//! With authentication off all limits are off, as callers can't be distinguished.

mod budget;
mod budgets;
mod comments;
mod rate;
mod row_cost;
mod shared;

use std::sync::Arc;

pub use budget::{Budget, RateState};
pub(crate) use budgets::Budgets;
pub use comments::Taken;
use kinfolk_core::comments::Parent;
use kinfolk_core::{Id, Result};
pub use rate::Rate;
pub(crate) use row_cost::RowCost;
pub use shared::{BudgetName, ExchangeCounts, Round, SharedBudgets, Spending};

/// The limits. `None` is no limit.
///
/// The configuration has the defaults. Services are trusted. A person taps some dozens of times a second at most, and a thousand
/// follows in an hour is what large networks allow before they call it churn; the burst lets a new user follow a starter list. No
/// person writes a comment every other second for long. A hundred a second is more than people can read, and still leaves room for
/// one very busy comment thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Requests of an API key that has no limit of its own.
    pub key: Option<Rate>,
    /// Requests of an end user, over all of its connections.
    pub user: Option<Rate>,
    /// Follows, unfollows, dismissals, posts and their deletions, and edits and deletions of comments, of one actor,
    /// regardless of the caller.
    pub changes: Option<Rate>,
    /// New comments of one author, regardless of the caller.
    pub author_comments: Option<Rate>,
    /// New comments in one comment thread, regardless of their authors.
    pub parent_comments: Option<Rate>,
    /// How many users, actors, authors and comment threads have a budget in memory, each. Past that, those nearest to a full
    /// budget are evicted.
    pub budgets_max: usize,
}

#[cfg(test)]
impl LimitSettings {
    /// No limits.
    pub(crate) const NONE: Self = Self {
        key: None,
        user: None,
        changes: None,
        author_comments: None,
        parent_comments: None,
        budgets_max: 100_000,
    };
}

/// The limits that are not a caller's own: how often one actor may change something, and how often a thread may be written
/// to. The default is no limit.
#[derive(Debug, Default)]
pub struct Limits {
    changes: Option<Budgets>,
    authors: Option<Budgets>,
    parents: Option<Budgets<Parent>>,
}

impl Limits {
    /// The limits of the settings, for this process alone. [`crate::Access::limits`] has none while authentication is off.
    pub fn new(settings: &LimitSettings) -> Self {
        Self::shared(settings, None)
    }

    /// The limits of the settings, for all processes together if there is something to share them through.
    pub fn shared(settings: &LimitSettings, shared: Option<&Arc<SharedBudgets>>) -> Self {
        let LimitSettings { changes, author_comments, parent_comments, budgets_max, .. } = *settings;
        let of_users = |rate, name| Budgets::new(rate, budgets_max).shared(shared, name);
        Self {
            changes: changes.map(|rate| of_users(rate, BudgetName::Changes)),
            authors: author_comments.map(|rate| of_users(rate, BudgetName::Author)),
            parents: parent_comments
                .map(|rate| Budgets::new(rate, budgets_max).shared(shared, BudgetName::Parent)),
        }
    }

    /// Takes changes by one actor out of its budget: all of them or none.
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
            LimitSettings { changes: Some(Rate::per_hour(1).with_burst(2)), ..LimitSettings::NONE };
        let limits = Limits::new(&settings);
        limits.take_changes(Id::Integer(1), 2).unwrap();
        let refused = limits.take_changes(Id::Integer(1), 1).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::RateLimited);
        limits.take_changes(Id::Integer(2), 1).unwrap();
    }

    #[test]
    fn without_limits_nothing_is_refused() {
        let limits = Limits::default();
        for _ in 0..1_000 {
            limits.take_changes(Id::Integer(1), u32::MAX).unwrap();
        }
    }
}
