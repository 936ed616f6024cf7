//! Brings what callers spend in this process to the budgets that all processes share in Redis, and back what is left of them.

use std::sync::Arc;
use std::time::Duration;

use kinfolk_fleet::{BudgetReport, Fleet};
use kinfolk_server::{ExchangeCounts, SharedBudgets, Spending, Stat, counter, gauge};
use tokio::time::{Instant, sleep, sleep_until};

/// The interval between two exchanges: a caller of several processes may get what they admit in it beyond its limit.
const EXCHANGE_EVERY: Duration = Duration::from_millis(100);
/// The pause after an exchange that nobody has answered.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// Exchanges the budgets of this process again and again.
pub(super) async fn exchange_budgets(store: Fleet, budgets: Arc<SharedBudgets>) {
    let mut is_alone = false;
    loop {
        let next = Instant::now() + EXCHANGE_EVERY;
        let round = budgets.drain();
        let reports: Vec<BudgetReport> = round.spendings().iter().map(report).collect();
        let count = reports.len();
        let missing = match count {
            0 => Vec::new(),
            // It fails only while the store is being closed.
            _ => store.exchange_budgets(reports).await.unwrap_or_default(),
        };
        let answered = missing.iter().flatten().count();
        budgets.apply(round, missing);
        let was_alone = is_alone;
        is_alone = if count == 0 { was_alone } else { answered == 0 };
        match (was_alone, is_alone) {
            (false, true) => {
                tracing::warn!(
                    budgets = count,
                    "Redis does not answer: this process limits its callers by itself"
                );
            }
            (true, false) => tracing::info!("the limits of callers are shared with other processes again"),
            _ => {}
        }
        if count > 0 && answered == 0 {
            sleep(FAILURE_PAUSE).await;
        }
        sleep_until(next).await;
    }
}

fn report(spending: &Spending) -> BudgetReport {
    let Spending { name, spent_micros, at_least_micros, missing_micros } = spending;
    BudgetReport {
        name: name.to_string(),
        spent_micros: *spent_micros,
        at_least_micros: *at_least_micros,
        missing_micros: *missing_micros,
    }
}

/// What became of exchanges so far.
pub(super) fn budget_stats(counts: ExchangeCounts) -> Vec<Stat> {
    let metric = "kinfolk_fleet_budget_exchanges_total";
    let help = "Budgets of callers that were exchanged with Redis, each time, by outcome: exchanged, or failed because it did not answer.";
    let outcomes = [("exchanged", counts.exchanged), ("failed", counts.failed)];
    let mut stats: Vec<Stat> = outcomes
        .into_iter()
        .map(|(outcome, count)| Stat {
            of: Some(("outcome", outcome.to_owned())),
            ..counter(metric, help, count as f64)
        })
        .collect();
    let help = "Budgets of callers in the latest exchange.";
    stats.push(gauge("kinfolk_fleet_budgets_shared", help, counts.latest as f64));
    stats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_are_counted_by_outcome() {
        let stats = budget_stats(ExchangeCounts { exchanged: 7, failed: 2, latest: 3 });
        let shown: Vec<_> = stats.iter().map(|stat| (stat.name, stat.value as u64)).collect();
        let exchanges = "kinfolk_fleet_budget_exchanges_total";
        assert_eq!(shown, [(exchanges, 7), (exchanges, 2), ("kinfolk_fleet_budgets_shared", 3)]);
        assert_eq!(stats[1].of, Some(("outcome", "failed".to_owned())));
    }
}
