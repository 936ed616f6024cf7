//! The rate limits that all processes of a deployment share, in Redis: one key for each budget that was spent from lately. What a
//! budget limits, and what happens while Redis is away, is the business of the processes.
//!
//! The key `{DEPLOYMENT.budget.NAME}` holds the moment at which the budget is full again, in microseconds of the clock of its node.
//! It expires a second after that: a budget without a key is full.

use std::sync::Arc;
use std::time::Duration;

use kinfolk_core::Result;

use crate::Fleet;
use crate::cache::scripts;
use crate::redis::{Command, Reply};

/// How long the nodes may take.
const ANSWER_MAX: Duration = Duration::from_millis(500);

/// Budgets that are sent at once. Checks of the cache use the same connections, and come between.
const BUDGETS_MAX: usize = 500;

/// What a process has spent from a budget. Durations are what the spending takes to come in again, and may be negative.
///
/// An exchange makes the moment at which the shared budget is full again `max(full_at + spent, now + at_least)`, or `now + missing`
/// if there is no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetReport {
    /// The name of the budget in the deployment. It has no braces.
    pub name: String,
    /// What was spent, in microseconds.
    pub spent_micros: i64,
    /// What is missing at least afterwards, in microseconds.
    pub at_least_micros: i64,
    /// What is missing if nobody knows better, in microseconds.
    pub missing_micros: i64,
}

impl Fleet {
    /// Reports what was spent from budgets. Returns what is missing from each over all processes; nothing for those whose node did not
    /// answer: whether their reports were applied is not known.
    pub async fn exchange_budgets(&self, reports: Vec<BudgetReport>) -> Result<Vec<Option<Duration>>> {
        let shared = Arc::clone(&self.shared);
        self.run(async move {
            let mut missing = Vec::with_capacity(reports.len());
            if let Some(cache) = &shared.cache {
                let identity = shared.topology().identity;
                for reports in reports.chunks(BUDGETS_MAX) {
                    let commands: Vec<Command> =
                        reports.iter().map(|report| command(identity, report)).collect();
                    let replies = cache.cluster().call(&commands, ANSWER_MAX).await;
                    let nobody_answers = replies.iter().all(std::result::Result::is_err);
                    missing.extend(replies.into_iter().map(|reply| duration(&reply.ok()?)));
                    if nobody_answers {
                        break;
                    }
                }
            }
            missing.resize(reports.len(), None);
            Ok(missing)
        })
        .await
    }
}

fn command(identity: i64, report: &BudgetReport) -> Command {
    let tag = format!("{identity:x}.budget.{}", report.name);
    let mut command = Command::script(scripts::EXCHANGE_BUDGET, &tag);
    command.key(&format!("{{{tag}}}"));
    for micros in [report.spent_micros, report.at_least_micros, report.missing_micros] {
        command.argument(micros.to_string());
    }
    command
}

fn duration(reply: &Reply) -> Option<Duration> {
    Some(Duration::from_micros(u64::try_from(reply.integer()?).ok()?))
}
