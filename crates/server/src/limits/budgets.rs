//! The budgets of many users or comment threads, by id. Memory is bounded: full budgets are evicted, since a new one is full,
//! too.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use foldhash::quality::RandomState;
use kinfolk_core::Id;
use parking_lot::Mutex;

use super::budget::monotonic;
use super::{Budget, BudgetName, Rate, SharedBudgets};

const SHARDS: usize = 16;

/// The budgets of one shard.
type Shard<K> = HashMap<K, Arc<Budget>, RandomState>;

/// One budget for each key, such as a user. Two connections of a user share one.
#[derive(Debug)]
pub(crate) struct Budgets<K = Id> {
    rate: Rate,
    /// Random, so that nobody can choose ids that meet in one shard.
    hasher: RandomState,
    shards: [Mutex<Shard<K>>; SHARDS],
    shard_entries_max: usize,
    /// How the budgets are shared with other processes, if they are.
    family: Option<SharedFamily<K>>,
}

/// Budgets of one kind that are shared with other processes.
#[derive(Debug)]
struct SharedFamily<K> {
    shared: Arc<SharedBudgets>,
    /// The name of each there.
    name: fn(K) -> BudgetName,
}

impl<K: Copy + Ord + Hash> Budgets<K> {
    /// Budgets of one rate; at most about `entries_max` of them.
    pub(crate) fn new(rate: Rate, entries_max: usize) -> Self {
        let shard_entries_max = entries_max.div_ceil(SHARDS).max(8);
        let (hasher, shards) = (RandomState::default(), Default::default());
        Self { rate, hasher, shards, shard_entries_max, family: None }
    }

    /// The same budgets, shared with other processes under these names if there is something to share them through.
    pub(crate) fn shared(self, shared: Option<&Arc<SharedBudgets>>, name: fn(K) -> BudgetName) -> Self {
        let family = shared.map(|shared| SharedFamily { shared: Arc::clone(shared), name });
        Self { family, ..self }
    }

    /// The budget of a key.
    pub(crate) fn of(&self, user: K) -> Arc<Budget> {
        self.of_at(user, monotonic)
    }

    fn of_at(&self, user: K, now: impl FnOnce() -> u64) -> Arc<Budget> {
        let shard = (self.hasher.hash_one(user) >> 32) as usize % SHARDS;
        let mut budgets = self.shards[shard].lock();
        if let Some(budget) = budgets.get(&user) {
            return Arc::clone(budget);
        }
        if budgets.len() >= self.shard_entries_max {
            evict(&mut budgets, self.shard_entries_max, now());
        }
        let budget = match &self.family {
            Some(SharedFamily { shared, name }) => shared.budget(Some(self.rate), name(user)),
            None => Arc::new(Budget::new(Some(self.rate))),
        };
        budgets.insert(user, Arc::clone(&budget));
        budget
    }
}

/// Makes room for an eighth of what a shard may hold, so that many more users can be added before the next search.
///
/// Full budgets that no connection holds are evicted first. If that is not enough, more users are active at once than fit:
/// those with the largest remaining budgets are evicted, so users with many requests stay.
fn evict<K: Copy + Ord + Hash>(budgets: &mut Shard<K>, entries_max: usize, now: u64) {
    let is_held = |budget: &Arc<Budget>| Arc::strong_count(budget) > 1;
    budgets.retain(|_, budget| is_held(budget) || budget.full_at() > now);
    let kept = entries_max - entries_max / 8;
    let excess = budgets.len().saturating_sub(kept);
    if excess == 0 {
        return;
    }
    let mut ranked: Vec<_> =
        budgets.iter().map(|(user, budget)| (is_held(budget), budget.full_at(), *user)).collect();
    ranked.select_nth_unstable(excess - 1);
    for (_, _, user) in ranked.iter().take(excess) {
        budgets.remove(user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(budgets: &Budgets) -> usize {
        budgets.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    #[test]
    fn a_user_has_one_budget() {
        let budgets = Budgets::new(Rate::per_second(1), 100);
        let first = budgets.of(Id::Integer(1));
        assert!(Arc::ptr_eq(&first, &budgets.of(Id::Integer(1))));
        assert!(!Arc::ptr_eq(&first, &budgets.of(Id::Integer(2))));
    }

    #[test]
    fn a_flood_of_users_is_bounded() {
        let budgets = Budgets::new(Rate::per_hour(10), 1_000);
        let held = budgets.of(Id::Integer(0));
        for user in 1..50_000 {
            budgets.of(Id::Integer(user));
        }
        assert!(entries(&budgets) <= 1_008, "{}", entries(&budgets));
        assert!(Arc::ptr_eq(&held, &budgets.of(Id::Integer(0))), "a budget in use is not forgotten");
    }

    #[test]
    fn whoever_asked_most_stays_known() {
        let budgets = Budgets::new(Rate::per_hour(10), 1_000);
        budgets.of(Id::Integer(0)).take(10).unwrap();
        for user in 1..50_000 {
            budgets.of(Id::Integer(user)).take(1).unwrap();
        }
        assert!(entries(&budgets) <= 1_008, "{}", entries(&budgets));
        assert!(
            budgets.of(Id::Integer(0)).take(1).is_err(),
            "the flood gave a new budget to who had none left"
        );
    }

    #[test]
    fn a_full_budget_is_forgotten_once_time_has_refilled_it() {
        let budgets = Budgets::new(Rate::per_second(10), 8);
        for user in 0..2_000 {
            budgets.of_at(Id::Integer(user), || 0);
        }
        let spent = budgets.of(Id::Integer(5_000));
        spent.take(5).unwrap();
        drop(spent);
        // A simulated year later nothing is missing from any budget, so all that are in the way can go.
        for user in 10_000..12_000 {
            budgets.of_at(Id::Integer(user), || 365 * 86_400 * 1_000_000_000);
        }
        assert!(budgets.of(Id::Integer(5_000)).take(10).is_ok());
    }
}
