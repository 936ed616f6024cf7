//! How often a caller may ask, how often an actor may change the graph, and how often threads may be written to. Who they
//! are is not decided here.
//!
//! A caller's own limit is the [`Budget`] that it carries. The limits on changes and comments belong to the actor, whoever
//! acts for it: a service that follows on behalf of a user spends that user's budget as well as its own.
//!
//! With authentication off all limits are off: nobody is known, so nobody can be told apart.

mod budget;
mod budgets;
mod comments;
mod rate;
mod toll;

pub use budget::{Budget, RateState};
pub(crate) use budgets::Budgets;
pub use comments::Taken;
use kinfolk_core::comments::Parent;
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
    /// Follows, unfollows, dismissals, posts and their deletions, and edits and deletions of comments, of one actor,
    /// whoever acts for it.
    pub changes: Option<Rate>,
    /// New comments of one author, whoever acts for it.
    pub author_comments: Option<Rate>,
    /// New comments in one thread, whoever writes them.
    pub parent_comments: Option<Rate>,
    /// So many users, actors, authors and threads each are remembered. Past that, those nearest to a full budget are
    /// forgotten.
    pub remembered: usize,
}

impl Default for LimitSettings {
    /// Services are trusted. A person taps some dozens of times a second at most, and a thousand follows in an hour
    /// is what large networks allow before they call it churn; the burst lets a new user follow a starter list. Nobody
    /// writes a comment every other second for long. A hundred a second is more than people can read, and still leaves
    /// room for the one thread that everybody writes to.
    fn default() -> Self {
        Self {
            key: None,
            user: Some(Rate::per_second(50).with_burst(100)),
            changes: Some(Rate::per_hour(1_000).with_burst(400)),
            author_comments: Some(Rate::per_minute(30)),
            parent_comments: Some(Rate::per_second(100).with_burst(1_000)),
            remembered: 100_000,
        }
    }
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
    /// Limits as set. [`crate::Access::limits`] makes the right ones for whoever may ask.
    pub fn new(settings: &LimitSettings) -> Self {
        let LimitSettings { changes, author_comments, parent_comments, remembered, .. } = *settings;
        Self {
            changes: changes.map(|rate| Budgets::new(rate, remembered)),
            authors: author_comments.map(|rate| Budgets::new(rate, remembered)),
            parents: parent_comments.map(|rate| Budgets::new(rate, remembered)),
        }
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
