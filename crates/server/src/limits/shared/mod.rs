//! Budgets that several processes share: what this one has spent, and what all of them together have left. It knows no store and
//! runs nothing: its caller calls [`SharedBudgets::drain`] and [`SharedBudgets::apply`] again and again.
//!
//! Requests are judged by the [`Budget`] of their process and wait for nobody. An exchange adds what was spent here to the shared
//! budget, and makes the budget here a copy of it. So a caller of several processes gets what its limit allows, and beyond it at
//! most what the processes admit between two exchanges. That is a debt: it is paid before more is allowed.
//!
//! Nothing is sent twice, because nobody knows whether an exchange that failed was applied. Instead, the next one says how much is
//! missing from the budget here, and the shared one is at least as far down.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use kinfolk_core::Id;
use kinfolk_core::comments::Parent;
use parking_lot::Mutex;

use super::budget::monotonic;
use super::{Budget, Rate};

/// Budgets of one round. The others wait for the next.
const ROUND_MAX: usize = 10_000;

/// Budgets that wait for a round. What is spent from others is noted when they are spent from again.
const WAITING_MAX: usize = 100_000;

/// A budget with less than half left is exchanged for so long after it was last spent from: other processes spend, too.
const REFRESH_NANOS: u64 = 2_000_000_000;

/// What was spent is noted this late at most. Shared budgets must be known for at least as long after they are full.
const LATE_MAX_MICROS: i64 = 1_000_000;

/// No duration of an exchange is longer, so that numbers of other systems hold it: about 30 years.
const MICROS_MAX: i64 = 1_000_000_000_000_000;

/// Whose budget it is. Its text is the same in all processes, and has letters, digits, dots and hyphens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BudgetName {
    /// Requests of the API key with this public id.
    Key(Box<str>),
    /// Requests of an end user.
    User(Id),
    /// Changes of an actor.
    Changes(Id),
    /// Comments of an author.
    Author(Id),
    /// Comments of a thread.
    Parent(Parent),
}

impl fmt::Display for BudgetName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(id) => write!(out, "key.{id}"),
            Self::User(id) => write!(out, "user.{id}"),
            Self::Changes(id) => write!(out, "changes.{id}"),
            Self::Author(id) => write!(out, "author.{id}"),
            Self::Parent(parent) => write!(out, "parent.{}.{}", parent.kind.name(), parent.id),
        }
    }
}

/// What a process reports of a budget. Durations are what the spending takes to come in again, and may be negative.
///
/// With `full_at` as the moment at which the shared budget is full again, which may be past, an exchange makes it
/// `max(full_at + spent, now + at_least)`. If it is not known, because it has been full for more than a second or because it was lost,
/// it becomes `now + missing`.
///
/// Spending is noted late, and counts from the end of the last round on. Otherwise a caller that keeps to its rate would be
/// refused: all that it has spent during a round would be missing at once. By that it gains what comes in during one round, and
/// no more, however many rounds there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spending {
    /// Whose budget it is.
    pub name: BudgetName,
    /// What was spent since the last exchange, in microseconds.
    pub spent_micros: i64,
    /// What is missing at least afterwards, in microseconds from now.
    pub at_least_micros: i64,
    /// What is missing as far as this process knows, in microseconds.
    pub missing_micros: i64,
}

/// The part of a budget that is there only if it is shared.
#[derive(Debug)]
pub(super) struct Sharing {
    name: BudgetName,
    budget: Weak<Budget>,
    shared: Arc<SharedBudgets>,
    /// Requests since the last exchange; negative if more were given back.
    spent: AtomicI64,
    /// Whether the budget waits for a round.
    is_waiting: AtomicBool,
}

impl Sharing {
    /// Counts what was taken, or given back if it is negative.
    pub(super) fn count(&self, cost: i64) {
        // Before the look at `is_waiting`. The task that resets it looks at what was spent afterwards: one of both sees the other.
        self.spent.fetch_add(cost, Ordering::AcqRel);
        if !self.is_waiting.load(Ordering::Acquire) {
            self.shared.note(self);
        }
    }

    /// What was taken since the last exchange.
    pub(super) fn spent(&self) -> i64 {
        self.spent.load(Ordering::Acquire)
    }
}

/// A budget that waits for a round.
#[derive(Debug)]
struct Waiting {
    budget: Arc<Budget>,
    /// When it was last found to be spent from, in nanoseconds of [`monotonic`].
    spent_at: u64,
    /// Whether an exchange has failed, so that the shared budget may lack what was spent here.
    is_behind: bool,
}

/// What an exchange has to bring to the shared budgets.
#[derive(Debug)]
pub struct Round {
    drained_at: u64,
    waiting: Vec<Waiting>,
    spendings: Vec<Spending>,
}

impl Round {
    /// What was spent, for each budget.
    pub fn spendings(&self) -> &[Spending] {
        &self.spendings
    }
}

/// What became of exchanges so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeCounts {
    /// Budgets that were exchanged, each time.
    pub exchanged: u64,
    /// Budgets that were not, because nobody answered.
    pub failed: u64,
    /// Budgets of the latest round.
    pub latest: u64,
}

/// The budgets of a process that it shares with others.
#[derive(Debug, Default)]
pub struct SharedBudgets {
    waiting: Mutex<VecDeque<Waiting>>,
    /// When the latest round began, in nanoseconds of [`monotonic`].
    drained_at: AtomicU64,
    exchanged: AtomicU64,
    failed: AtomicU64,
    latest: AtomicU64,
}

impl SharedBudgets {
    /// A full budget that is shared under a name.
    pub(crate) fn budget(self: &Arc<Self>, rate: Option<Rate>, name: BudgetName) -> Arc<Budget> {
        Arc::new_cyclic(|budget| {
            let sharing = Sharing {
                name,
                budget: Weak::clone(budget),
                shared: Arc::clone(self),
                spent: AtomicI64::new(0),
                is_waiting: AtomicBool::new(false),
            };
            Budget::with_sharing(rate, Some(Box::new(sharing)))
        })
    }

    /// Lets a budget wait for the next round, unless it waits already or too many do.
    fn note(&self, sharing: &Sharing) {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= WAITING_MAX || sharing.is_waiting.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(budget) = sharing.budget.upgrade() {
            waiting.push_back(Waiting { budget, spent_at: 0, is_behind: false });
        }
    }

    /// What was spent since the last round. [`SharedBudgets::apply`] takes the replies: a budget is in one round at a time.
    pub fn drain(&self) -> Round {
        self.drain_at(monotonic())
    }

    fn drain_at(&self, now: u64) -> Round {
        let since = self.drained_at.swap(now, Ordering::Relaxed);
        let late_micros = micros(i128::from(now.saturating_sub(since))).min(LATE_MAX_MICROS);
        let mut round = Round { drained_at: now, waiting: Vec::new(), spendings: Vec::new() };
        let drained: Vec<Waiting> = {
            let mut waiting = self.waiting.lock();
            let count = waiting.len().min(ROUND_MAX);
            waiting.drain(..count).collect()
        };
        for mut waiting in drained {
            let Some(sharing) = waiting.budget.sharing() else { continue };
            let spent = sharing.spent.swap(0, Ordering::AcqRel);
            if spent != 0 {
                waiting.spent_at = now;
            }
            let spent_micros = micros(i128::from(spent) * i128::from(waiting.budget.interval()));
            let missing = micros(i128::from(waiting.budget.full_at()) - i128::from(now));
            let at_least_micros = if waiting.is_behind { missing } else { spent_micros - late_micros };
            let (name, missing_micros) = (sharing.name.clone(), missing - late_micros);
            round.spendings.push(Spending { name, spent_micros, at_least_micros, missing_micros });
            round.waiting.push(waiting);
        }
        self.latest.store(round.spendings.len() as u64, Ordering::Relaxed);
        round
    }

    /// Makes the budgets of a round copies of the shared ones: how much is missing from each, or nothing if nobody answered for it.
    pub fn apply(&self, round: Round, missing: impl IntoIterator<Item = Option<Duration>>) {
        self.apply_at(round, missing, monotonic());
    }

    fn apply_at(&self, round: Round, missing: impl IntoIterator<Item = Option<Duration>>, now: u64) {
        let Round { drained_at, waiting, .. } = round;
        let mut missing = missing.into_iter();
        let mut again = Vec::new();
        for waiting in waiting {
            let Waiting { budget, spent_at, .. } = &waiting;
            let missing = missing.next().flatten();
            let count = if missing.is_some() { &self.exchanged } else { &self.failed };
            count.fetch_add(1, Ordering::Relaxed);
            let stays = match missing {
                Some(missing) => {
                    budget.copy_from(drained_at, missing);
                    now.saturating_sub(*spent_at) < REFRESH_NANOS && budget.is_low_at(now)
                }
                // Nothing is missing from a budget that is full: there is nothing to say of it.
                None => budget.full_at() > now,
            };
            if stays {
                again.push(Waiting { is_behind: missing.is_none(), ..waiting });
            } else if let Some(sharing) = waiting.budget.sharing() {
                sharing.is_waiting.store(false, Ordering::Release);
                // It may have been spent from meanwhile. Not a load: it has to come after the store, as `Sharing::count` needs it.
                if sharing.spent.fetch_add(0, Ordering::AcqRel) != 0 {
                    self.note(sharing);
                }
            }
        }
        self.waiting.lock().extend(again);
    }

    /// What became of exchanges so far.
    pub fn counts(&self) -> ExchangeCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ExchangeCounts {
            exchanged: read(&self.exchanged),
            failed: read(&self.failed),
            latest: read(&self.latest),
        }
    }
}

/// Nanoseconds as microseconds, within what an exchange may say. Rounded up: what was spent is never nothing.
fn micros(nanos: i128) -> i64 {
    let micros = nanos.div_euclid(1_000) + i128::from(nanos.rem_euclid(1_000) > 0);
    micros.clamp(i128::from(-MICROS_MAX), i128::from(MICROS_MAX)) as i64
}

#[cfg(test)]
mod tests;
