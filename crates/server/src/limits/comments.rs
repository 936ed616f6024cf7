//! How often comments may be written: by one author, and to one comment thread. Only written comments count.

use std::sync::Arc;

use kinfolk_core::comments::Parent;
use kinfolk_core::{Id, Result};

use super::{Budget, Limits};

/// One comment, taken out of the budgets of its author and its comment thread.
#[derive(Debug, Default)]
pub struct Taken {
    author: Option<Arc<Budget>>,
    parent: Option<Arc<Budget>>,
}

impl Taken {
    /// The comment was not written.
    pub fn give_back(self) {
        [self.author, self.parent].into_iter().flatten().for_each(|budget| budget.give_back(1));
    }
}

impl Limits {
    /// Takes one comment out of the budgets of its author and its comment thread: out of both or none.
    ///
    /// Only the store knows whether a comment is new or a retry. So a retry takes from the budgets, too, and gives it back:
    /// an author whose budget is used up waits until one comment fits, and can then retry as often as it likes.
    pub fn take_comment(&self, author: Id, parent: Parent) -> Result<Taken> {
        let mut taken = Taken::default();
        if let Some(authors) = &self.authors {
            let budget = authors.of(author);
            budget.take(1)?;
            taken.author = Some(budget);
        }
        if let Some(parents) = &self.parents {
            let budget = parents.of(parent);
            if let Err(refused) = budget.take(1) {
                taken.give_back();
                return Err(refused);
            }
            taken.parent = Some(budget);
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use kinfolk_core::ErrorCode;
    use kinfolk_core::comments::ParentKind;

    use super::super::{LimitSettings, Rate};
    use super::*;

    fn limits(author: u32, parent: u32) -> Limits {
        let rate = |burst| Some(Rate::per_hour(1).with_burst(burst));
        let settings = LimitSettings {
            author_comments: rate(author),
            parent_comments: rate(parent),
            ..LimitSettings::NONE
        };
        Limits::new(&settings)
    }

    fn post(id: u64) -> Parent {
        Parent::post(Id::Integer(id))
    }

    #[test]
    fn authors_and_threads_have_budgets_of_their_own() {
        let limits = limits(2, 3);
        let take = |author, parent| {
            limits.take_comment(Id::Integer(author), parent).map(drop).map_err(|error| error.code())
        };
        assert_eq!([take(1, post(1)), take(1, post(2))], [Ok(()), Ok(())]);
        assert_eq!(take(1, post(3)), Err(ErrorCode::RateLimited));
        assert_eq!([take(2, post(1)), take(3, post(1))], [Ok(()), Ok(())]);
        assert_eq!(take(4, post(1)), Err(ErrorCode::RateLimited));
        // Of the same id, but of another kind.
        assert_eq!(take(4, Parent { kind: ParentKind::Item, ..post(1) }), Ok(()));
        // What the full thread refused has cost its author nothing.
        assert_eq!([take(4, post(2)), take(4, post(2))], [Ok(()), Err(ErrorCode::RateLimited)]);
    }

    #[test]
    fn what_was_not_written_costs_nothing() {
        let limits = limits(1, 1);
        for _ in 0..10 {
            limits.take_comment(Id::Integer(1), post(1)).unwrap().give_back();
        }
        let _written = limits.take_comment(Id::Integer(1), post(1)).unwrap();
        assert!(limits.take_comment(Id::Integer(1), post(2)).is_err());
        assert!(limits.take_comment(Id::Integer(2), post(1)).is_err());
    }

    #[test]
    fn without_limits_nothing_is_refused() {
        for _ in 0..1_000 {
            Limits::default().take_comment(Id::Integer(1), post(1)).unwrap();
        }
    }
}
